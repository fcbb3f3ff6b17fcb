"""Prints a drafted repro: what was read, the file itself, what is risky in it, its gaps, and how to go on."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rich.text import Text

from harness.drafting.tracebacks import stable_part
from harness.model.text import counted, listed, one_line
from harness.terminal.console import print_line, print_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.drafting.draft import Draft
    from harness.terminal.console import Console

_WIDTH = 100


def print_draft(console: Console, drafted: Draft, path: Path) -> None:
    """Print what was read, the file, its risks and gaps, and the next commands."""
    for number, line in enumerate(drafted.source.splitlines(), start=1):
        print_line(console, Text.assemble((f"{number:4} ", "dim"), line))
    console.print()
    print_text(
        console, Text.assemble(("wrote ", "bold green"), f"{path}, from what the report says; nothing of it was run")
    )
    for name, text in _read(drafted):
        print_text(console, f"  {name:<10} {text}")
    for text in (*drafted.stand_ins.replaced, *drafted.changes):
        print_text(console, f"  {'changed':<10} {text}")
    if drafted.hazards:
        print_text(
            console, f"\nrisky in it ({counted(len(drafted.hazards), 'line')}); read these before you run it", "bold"
        )
    for hazard in drafted.hazards:
        print_text(console, f"  line {hazard.line}: {hazard.what}: {one_line(hazard.code, _WIDTH)}")
    if drafted.gaps:
        print_text(console, f"\nto fill in ({counted(len(drafted.gaps), 'gap')}), marked # FILL IN", "bold")
    for gap in drafted.gaps:
        print_text(console, f"  line {drafted.line_of(gap)}: {gap.what}: {gap.todo}")
    print_text(console, "\nto go on", "bold")
    for command in next_commands(path, drafted):
        print_text(console, f"  {command}")


def next_commands(path: Path, drafted: Draft) -> tuple[str, ...]:
    """Return the commands to type next: one run, then a bisection."""
    place = shlex.quote(str(path))
    subject = drafted.subjects[0] if drafted.subjects else ""
    bisect = [f"harness bisect {subject} --repro {place}"] if subject else []
    return (f"harness probe ./{place}" if "/" not in place else f"harness probe {place}",
            f"harness bisect --repro {place}", *bisect)  # fmt: skip


def _read(drafted: Draft) -> Iterator[tuple[str, str]]:
    told = drafted.told
    installed = {name: told.installed[name] for name in told.installed}
    if installed:
        yield "versions", listed((f"{name} {version}" for name, version in installed.items()), 12)
    if told.python:
        yield "python", told.python
    if drafted.raised is not None:
        one = drafted.raised.told
        yield "signature", f"{one.name}: {one_line(stable_part(one.message) or one.message, _WIDTH)}"
        if (frame := drafted.raised.frame) is not None:
            yield "raised in", f"{frame.short}, {frame.function}"
    if drafted.subjects:
        yield "subjects", ", ".join(drafted.subjects)
