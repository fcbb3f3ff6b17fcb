"""Prints what a bundle has, and what was read back from it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rich.text import Text

from harness.model.text import counted
from harness.terminal.answer import print_observation
from harness.terminal.console import print_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness.bundle import Absorbed, Packed
    from harness.terminal.console import Console


def print_packed(console: Console, packed: Packed, output: Path, archive: Path | None, verdicts: Sequence[str]) -> None:
    """Print what was packed, what was not, sizes, and the next step; `verdicts` are those of known answers."""
    for probe in packed.probes:
        packed_wheels = counted(len(probe.packed), "wheel")
        print_text(console, Text.assemble(("packed ", "bold green"), f"{probe.label} ({packed_wheels})"))
    for (asked, _), verdict in zip(packed.known, verdicts, strict=True):
        print_text(
            console, Text.assemble(("known already ", "bold"), f"{asked.label}: {verdict}; --fresh packs it again")
        )
    for label, why in packed.failed:
        print_text(console, Text.assemble(("not packed ", "bold yellow"), f"{label}: {why}"))
    if not packed.probes:
        console.print(Text("nothing is left to pack"))
        return
    files = {wheel.file for probe in packed.probes for wheel in probe.packed}
    print_text(console, f"  {counted(len(files), 'wheel')}, {mebibytes(packed.wheel_bytes)}, in {archive or output}")
    if packed.left_out:
        names = ", ".join(f"{name} {version}" for name, version in sorted(packed.left_out.items()))
        size = f" ({mebibytes(packed.left_out_bytes)})" if packed.left_out_bytes else ""  # 0 if the index has no sizes
        print_text(console, f"  left out, since it is there: {names}{size}")
    first = packed.probes[0].probe
    print_text(
        console,
        f"  for Python {first.lock.minor} on {first.lock.platform} only; to run on {first.combination.device.value}",
    )
    console.print(Text(f"  there: python {output.name}/run.py"), soft_wrap=True)
    console.print(Text(f"  back here: {shlex.join(['harness', 'absorb', str(output)])}"), soft_wrap=True)


def print_absorbed(console: Console, absorbed: Absorbed) -> None:
    """Print each observation as `harness probe` does, then what is missing or refused."""
    for taken in absorbed.taken:
        print_text(console, f"{taken.label}{' (known already)' if taken.known else ''}", style="bold")
        judgement = taken.judgement
        print_observation(
            console, taken.observation, judgement.verdict if judgement else None, judgement.reason if judgement else ""
        )
    for label, why in absorbed.missing:
        print_text(console, Text.assemble(("missing ", "bold yellow"), f"{label}: {why}"))
    for label, why in absorbed.refused:
        print_text(console, Text.assemble(("refused ", "bold red"), f"{label}: {why}"))
    new = sum(not taken.known for taken in absorbed.taken)
    told = f"{counted(new, 'observation')} taken, {len(absorbed.taken) - new} known already"
    print_text(console, f"{told}, {len(absorbed.missing)} missing, {len(absorbed.refused)} refused")


def mebibytes(size: int) -> str:
    """A number of bytes with a unit."""
    return f"{size / 2**20:.0f} MiB" if size >= 2**20 else f"{size / 1024:.0f} KiB"
