"""Bytecode is compiled once per wheel and linked into every later environment.

Nothing is compiled ahead: a run compiles what it imports, into a tree beside its environment
(PYTHONPYCACHEPREFIX), so that the environment itself is never altered. After the run new files are linked into a
folder of their wheel; the tree of the next environment with that wheel starts with links to them. A file stays
valid because hard-linked sources keep the time stamp that it records.
"""

from __future__ import annotations

import csv
import hashlib
import os
import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from harness.model import normalized_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.model import Lock, Pin


@frozen
class BytecodeStore:
    """Compiled modules under `root`, by interpreter (`cache_tag`, as in sys.implementation) and wheel."""

    root: Path
    cache_tag: str

    def link(self, lock: Lock, packages: Path, tree: Path, *, shown_as: Path) -> int:
        """Fill a bytecode tree with what is known of a lock's wheels; returns how many files.

        `packages` is the site-packages as it lies now, `shown_as` its path once it is used.
        """
        linked = 0
        base = below(tree, shown_as)
        for pin in lock.pins:
            kept = self._wheel(pin)
            if not kept.is_dir():
                continue
            for folder, _, names in os.walk(kept):
                relative = Path(folder).relative_to(kept)
                if not (packages / relative).is_dir():
                    continue
                target = base / relative
                target.mkdir(parents=True, exist_ok=True)
                for name in names:
                    _link(Path(folder) / name, target / name)
                    linked += 1
        return linked

    def share_stdlib(self, stdlib: Path, tree: Path) -> None:
        """Let a tree use the one folder of compiled standard library modules of this interpreter."""
        address = hashlib.sha256(str(stdlib).encode()).hexdigest()[:16]
        shared = self.root / self.cache_tag / f"stdlib-{address}"
        shared.mkdir(parents=True, exist_ok=True)
        link = below(tree, stdlib)
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(shared, target_is_directory=True)

    def harvest(self, lock: Lock, packages: Path, tree: Path) -> int:
        """Keep what a run compiled; returns how many files were new."""
        base = below(tree, packages)
        fresh = [path for path in base.rglob(f"*.{self.cache_tag}*.pyc") if path.stat().st_nlink == 1]
        if not fresh:
            return 0
        owner = _owners(packages, lock)
        kept = 0
        for path in fresh:
            relative = path.relative_to(base)
            pin = owner.get(relative.with_name(relative.name.split(".")[0] + ".py").as_posix())
            if pin is None:
                continue
            target = self._wheel(pin) / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            _link(path, target)
            kept += 1
        return kept

    def _wheel(self, pin: Pin) -> Path:
        return self.root / self.cache_tag / f"{pin.name}-{pin.version}-{pin.sha256[:16]}"


def below(tree: Path, path: Path) -> Path:
    """Where an interpreter keeps the bytecode of a folder under a prefix (PYTHONPYCACHEPREFIX)."""
    return tree / path.relative_to(path.anchor)


def _owners(packages: Path, lock: Lock) -> dict[str, Pin]:
    """Which wheel each source file came from, by the RECORD of each installed distribution."""
    by_name = {pin.name: pin for pin in lock.pins if pin.sha256}
    return {
        row: pin
        for record in packages.glob("*.dist-info/RECORD")
        if (pin := by_name.get(normalized_name(record.parent.name.split("-")[0]))) is not None
        for row in _rows(record)
    }


def _rows(record: Path) -> Iterator[str]:
    with record.open(encoding="utf-8", newline="") as file:
        for row in csv.reader(file):
            if row and row[0].endswith(".py"):
                yield row[0]


def _link(source: Path, target: Path) -> None:
    """Link over whatever is there, so that a reader sees the old file or the new one, whole."""
    partial = target.with_name(f"{target.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        os.link(source, partial)
    except FileExistsError:
        partial.unlink()
        os.link(source, partial)
    except OSError:  # another file system, or one without hard links
        shutil.copy2(source, partial)
    partial.replace(target)
