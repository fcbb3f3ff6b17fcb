"""Estimates the disk space that an environment needs, from its lock and from uv's cache.

uv unpacks each wheel into its cache once. The first environment with it copies it from there into the harness's wheel
store. Environments are linked from the store, so each further one needs little.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from harness.model.text import counted, size_in_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harness.model import Lock, Pin

# Unpacked bytes per byte of a wheel, the maximum measured among the 134 wheels of a CUDA stack: GPU libraries compress
# little (1.4 to 1.95 times), everything else more (up to 4.5 times), and all of them together 2.1 times.
_LARGE = 150 * 2**20
_LARGE_UNPACKED, _UNPACKED = 2.0, 4.5
# Folders and scripts of an environment of 85 wheels took 11 MiB, the bytecode of what it imported 90 MiB.
_OWN = 128 * 2**20
_SIZE = re.compile(r"[0-9]{1,18}")


def size_in_lock(pin: Pin) -> int | None:
    """The bytes of a wheel, if the index reported them."""
    return pin.size


@frozen
class DiskEstimate:
    """Upper limits in bytes: to download, unpacked in uv's cache, and for the environment itself.

    `unsized` counts the wheels to download whose size is unknown; the other numbers do not include them.
    """

    download: int = 0
    unpacked: int = 0
    own: int = _OWN
    unsized: int = 0

    @property
    def is_nothing(self) -> bool:
        """Whether nothing has to be downloaded."""
        return not self.download and not self.unsized

    def __str__(self) -> str:
        told = []
        if self.download:
            told.append(
                f"about {size_in_words(self.download)} to download, up to {size_in_words(self.unpacked)} on disk"
            )
        if self.unsized:
            what = f"{counted(self.unsized, 'wheel')} of unknown size"
            told.append(f"and {what}" if told else f"{what} to download")
        return ", ".join(told) or "nothing to download, uv's cache has all of it"


@frozen
class DiskEstimator:
    """Estimates from uv's cache (folder `shelf`), the harness's store (`is_stored`), and wheel sizes (`size_of`).

    uv does not promise the layout of its cache. If the layout changes, wheels count as missing, and the estimate is too
    high.
    """

    shelf: Path
    size_of: Callable[[Pin], int | None] = size_in_lock
    is_stored: Callable[[Pin], bool] = lambda _: False

    def estimate(self, lock: Lock) -> DiskEstimate:
        """The disk space needed to build the environment of a lock."""
        download = unpacked = copied = unsized = 0
        for pin in lock.pins:
            if self.is_stored(pin):
                continue
            entries = list(_entries(self.shelf, pin.name))
            if (mine := next((entry for entry in entries if _is_of(entry, pin)), None)) is not None:
                copied += _recorded(mine)
                continue
            packed = self.size_of(pin)
            size = _unpacked(packed) if packed else _size_of_another(entries)
            if size is None:
                unsized += 1
                continue
            copied += size
            unpacked += size
            download += packed or int(size / _LARGE_UNPACKED)
        return DiskEstimate(download, unpacked, copied + _OWN, unsized)


def _unpacked(packed: int) -> int:
    return int(packed * (_LARGE_UNPACKED if packed >= _LARGE else _UNPACKED))


def _entries(shelf: Path, project: str) -> Iterator[Path]:
    """The unpacked wheels of a project, from any index: folders, or links to them."""
    for index in (shelf / "pypi", *_listed(shelf / "index"), *_listed(shelf / "flat")):
        yield from (entry for entry in _listed(index / project) if entry.is_dir())


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _is_of(entry: Path, pin: Pin) -> bool:
    """Whether an entry is the wheel of a pin. uv names it after version and tags, with a digest for long tags."""
    tagged = pin.wheel.partition("-")[2].removesuffix(".whl")
    version, _, rest = entry.name.partition("-")
    return entry.name == tagged or (version == pin.version and "-" not in rest)


def _size_of_another(entries: list[Path]) -> int | None:
    """The largest known size of other releases of the project, the best guess if nothing else is known."""
    return max((size for entry in entries if (size := _recorded(entry))), default=None)


def _recorded(entry: Path) -> int:
    """The bytes of all files of an unpacked wheel, from its RECORD; 0 if that can't be read."""
    for record in entry.glob("*.dist-info/RECORD"):
        try:
            with record.open(encoding="utf-8", errors="replace", newline="") as file:
                return sum(int(row[2]) for row in csv.reader(file) if len(row) == 3 and _SIZE.fullmatch(row[2]))
        except (OSError, csv.Error):
            return 0
    return 0


def file_system(folder: Path) -> int:
    """The file system that a folder is on, or will be on once it exists."""
    return next(parent for parent in (folder, *folder.parents) if parent.exists()).stat().st_dev
