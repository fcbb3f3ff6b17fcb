"""One probe of a bundle as files, which the run script reads and which must come back unchanged."""

from __future__ import annotations

import json
import stat
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cattrs
from attrs import field, frozen

from harness.errors import BadRepro, UserMistake
from harness.model import Combination, Device, Lock
from harness.model.repro import parse_repro
from harness.probe import Probe, probe_key

if TYPE_CHECKING:
    from collections.abc import Iterable

SCHEMA = 1
# The files come from another machine, so they are not trusted.
UNREADABLE = (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError)


@frozen
class PackedWheel:
    """A wheel in the bundle, with its SHA-256."""

    name: str
    version: str
    file: str
    sha256: str


@frozen
class PackedProbe:
    """Everything needed to run one probe elsewhere and to identify it afterwards.

    `key` is the key of its observation for an unknown GPU; `variables` are the repro's environment variables; `wall_s`
    is in seconds, `memory` in bytes (None: the machine's limit); `gpu_queries` are the commands that list GPUs;
    `packed` are the wheels of `lock` in the bundle, `from_node` names and versions of those that the machine has
    already.
    """

    key: str
    label: str
    script: str
    device: Device
    capability: str
    wall_s: float
    lock: Lock
    packed: tuple[PackedWheel, ...]
    from_node: dict[str, str]
    variables: dict[str, str]
    memory: int | None = None
    params: dict[str, Any] = field(factory=dict)
    pass_env: tuple[str, ...] = ()
    gpu_queries: tuple[tuple[str, ...], ...] = ()
    requirements: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()
    as_of: str | None = None
    attempt: int = 0
    drift: tuple[str, ...] = ()
    schema: int = SCHEMA

    def write(self, folder: Path, source: str) -> None:
        """Write probe, script and requirements into the probe's folder. Raises `OSError`."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / self.script).write_text(source, encoding="utf-8")
        (folder / "requirements.txt").write_text(as_requirements(self.packed), encoding="utf-8")
        (folder / "probe.json").write_text(json.dumps(cattrs.unstructure(self), indent=1) + "\n", encoding="utf-8")

    def probe(self, source: str) -> Probe:
        """Return the probe that was packed, with the script's text `source`. Raises `BadRepro`."""
        repro = parse_repro(source, name=self.script.removesuffix(".py"), path=self.script).with_params(self.params)
        return Probe(
            repro,
            Combination(
                python=self.lock.python,
                requirements=self.requirements,
                holds=self.holds,
                as_of=datetime.fromisoformat(self.as_of) if self.as_of else None,
                device=self.device,
            ),
            attempt=self.attempt,
            lock=self.lock,
        )


def read_packed(folder: Path) -> tuple[PackedProbe, Probe]:
    """Read a packed probe and its probe. Raises `UserMistake` if they can't be read or were changed."""
    try:
        told = json.loads(inside(folder, "probe.json").read_text(encoding="utf-8"))
        packed = cattrs.structure(told, PackedProbe)
        probe = packed.probe(inside(folder, packed.script).read_text(encoding="utf-8"))
    except (*UNREADABLE, cattrs.BaseValidationError, BadRepro) as error:
        raise UserMistake(f"its probe in {folder} can't be read: {_said(error)}") from error
    if packed.schema != SCHEMA:
        raise UserMistake(f"its probe has schema {packed.schema}, this harness reads {SCHEMA}")
    known = {pin.name: pin for pin in packed.lock.pins}
    fits = all(
        (pin := known.get(wheel.name)) is not None
        and pin.version == wheel.version
        and (not pin.digests or wheel.sha256 in pin.digests)
        for wheel in packed.packed
    )
    # The key is a hash of repro, parameters, device and lock, so it differs if any of them was changed.
    if not fits or packed.key != folder.name or packed.key != packed_key(probe, packed.lock, packed.capability):
        raise UserMistake("its repro, parameters, device or lock are not those that were packed")
    return packed, probe


def inside(folder: Path, name: str) -> Path:
    """Return the path of a regular file directly in this folder.

    Raises `ValueError` if it is a link, a pipe, or elsewhere, `OSError` if it does not exist.
    """
    path = folder / name
    if Path(name).name != name or folder.is_symlink() or not stat.S_ISREG(path.lstat().st_mode):
        raise ValueError(f"{name} is not a regular file in its folder")
    return path


def packed_key(probe: Probe, lock: Lock, capability: str) -> str:
    """The key of a probe's observation before its GPU is known."""
    return probe_key(probe, lock, gpus=(), capability=capability)


def as_requirements(wheels: Iterable[PackedWheel]) -> str:
    """Return requirement lines for pip, each with the hash of the packed wheel."""
    return "".join(f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}\n" for wheel in wheels)


def _said(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
