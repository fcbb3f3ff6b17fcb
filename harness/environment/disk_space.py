"""The disk: refuses an environment early if there is too little space for it, and removes those used least recently.

A wheel is unpacked once, into the harness's wheel store. Environments are linked from it, so each further one needs
little. uv's own cache gets index pages; a wheel that it has already is copied from there.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Container, Iterable, Iterator
from pathlib import Path

from attrs import field, frozen

from harness.atomic import remove_partial
from harness.environment.wheel_store import WheelStore
from harness.environment.workspace import Location, Workspace
from harness.errors import NoSpace
from harness.events import SILENT, Note, Reporter
from harness.model import Pin
from harness.model.text import counted, size_in_words
from harness.run.locks import UNFINISHED, remove_abandoned

# Unpacked bytes per byte of a wheel, the maximum measured among the 134 wheels of a CUDA stack: GPU libraries compress
# little (1.4 to 1.95 times), everything else more (up to 4.5 times), and all of them together 2.1 times.
_LARGE = 150 * 2**20
_LARGE_UNPACKED, _UNPACKED = 2.0, 4.5
# Folders and scripts of an environment of 85 wheels took 11 MiB, the bytecode of what it imported 90 MiB.
_OWN = 128 * 2**20
_RESERVE = 512 * 2**20  # for what a run writes, and for other programs
# No probe uses an environment for longer without marking it as used again.
_IN_USE_S = 3600.0
_DAY_S = 86400.0
_BLOCK = 512  # the unit of st_blocks on every file system
_HINT = "run harness clean, or set HARNESS_CACHE_DIR to another disk"


@frozen
class DiskEstimate:
    """Upper limits in bytes: to download, and for all of the environment, its unpacked wheels included.

    `unsized` counts the wheels to download whose size is unknown; the other numbers do not include them.
    """

    download: int = 0
    own: int = _OWN
    unsized: int = 0

    @classmethod
    def of(cls, pins: Iterable[Pin], size_of: Callable[[Pin], int | None], uv_wheels: Path) -> DiskEstimate:
        """The estimate for wheels that the wheel store lacks, from their sizes and what uv has in `uv_wheels`.

        uv does not promise the layout of its cache. If it changes, the wheels count as missing there.
        """
        download = own = unsized = 0
        pins = list(pins)
        cached = cached_by_uv(pins, uv_wheels)
        for pin in pins:
            packed = size_of(pin) or 0
            own += int(packed * (_LARGE_UNPACKED if packed >= _LARGE else _UNPACKED))
            if pin not in cached:
                download, unsized = download + packed, unsized + (not packed)
        return cls(download, own + _OWN, unsized)

    @property
    def is_nothing(self) -> bool:
        """Whether nothing has to be downloaded."""
        return not self.download and not self.unsized

    def __str__(self) -> str:
        parts = []
        if self.download:
            parts.append(f"about {size_in_words(self.download)} to download, up to {size_in_words(self.own)} on disk")
        if self.unsized:
            what = f"{counted(self.unsized, 'wheel')} of unknown size"
            parts.append(f"and {what}" if parts else f"{what} to download")
        return ", ".join(parts) or "nothing to download, uv's cache has all of it"


def cached_by_uv(pins: Iterable[Pin], uv_wheels: Path) -> list[Pin]:
    """The pins whose wheels uv has unpacked already, below the folder `uv_wheels` of its cache."""
    indexes = [uv_wheels / "pypi", *(uv_wheels / "index").glob("*"), *(uv_wheels / "flat").glob("*")]
    return [
        pin for pin in pins if any(_is_of(entry, pin) for index in indexes for entry in (index / pin.name).glob("*"))
    ]


def _is_of(entry: Path, pin: Pin) -> bool:
    """Whether an entry is the wheel of a pin. uv names it after version and tags, with a digest for long tags."""
    version, _, rest = entry.name.partition("-")
    is_digest = version == pin.version and "-" not in rest
    return (is_digest or entry.name == pin.wheel.partition("-")[2].removesuffix(".whl")) and entry.is_dir()


@frozen
class DiskSpace:
    """The disk that holds a workspace.

    `limit` is how many bytes the workspace may use (None: unlimited). `reporter` gets a note about removals.
    Environments used after `since` (seconds since the epoch) belong to this run. `free_bytes` returns the free bytes on
    the disk of a folder.
    """

    workspace: Workspace
    limit: int | None = None
    reporter: Reporter = SILENT
    since: float = field(factory=time.time)
    free_bytes: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free

    def reserve(self, estimate: DiskEstimate, let_go: Callable[[], None] = lambda: None) -> None:
        """Make sure that there is enough space. Raises `NoSpace` if there is not.

        On a nearly full disk, the least recently used environments that no process keeps are removed, if that makes
        enough space; a removed environment is rebuilt when it is needed. `let_go` is called before that.
        """
        if self.limit is not None:
            self._keep_within(self.limit, estimate)
        missing = self._missing(estimate)
        if missing > 0:
            let_go()
            folders = list(kept_folders(self.workspace))
            if sum(folder.size for folder in folders) >= missing:
                self._remove(folders, missing, "because the disk is nearly full")
        if self._missing(estimate) > 0:
            free = self.free_bytes(self.workspace.building)
            raise NoSpace(
                f"a new environment needs up to {size_in_words(estimate.own)} at {self.workspace.root}; only "
                f"{size_in_words(free)} are free, and {size_in_words(_RESERVE)} must stay free",
                hint=_HINT,
            )

    def _missing(self, estimate: DiskEstimate) -> int:
        return estimate.own + _RESERVE - self.free_bytes(self.workspace.building)

    def _keep_within(self, limit: int, estimate: DiskEstimate) -> None:
        """Remove the least recently used environments, but none that this or another run may be using."""
        in_use_days = max(_IN_USE_S, time.time() - self.since) / _DAY_S
        taken = own_bytes(self.workspace.root)
        if taken + estimate.own > limit:
            unused = [folder for folder in kept_folders(self.workspace) if folder.unused_days > in_use_days]
            self._remove(unused, taken + estimate.own - limit, f"to stay below {size_in_words(limit)}")
            taken = own_bytes(self.workspace.root)
        if taken + estimate.own > limit:
            raise NoSpace(
                f"the cache uses {size_in_words(taken)} and a new environment up to {size_in_words(estimate.own)}, "
                f"more than the {size_in_words(limit)} of --max-disk",
                hint="raise --max-disk, or run harness clean",
            )

    def _remove(self, candidates: Iterable[Kept], missing: int, why: str) -> None:
        count = freed = 0
        for folder in candidates:
            if freed >= missing:
                break
            if folder.location.remove():
                count, freed = count + 1, freed + folder.size
        if count:
            prune_wheels(self.workspace)
            removed = f"removed {counted(count, 'environment')} {why}, the least recently used first"
            self.reporter.report(Note(f"{removed}; freed {size_in_words(freed)}"))


@frozen
class Kept:
    """Where one environment is, the bytes that removing it frees, and the days since its last use.

    A file that several environments share counts for the one that was used last: removing all of them frees it. Files
    of the wheel store count, because `prune_wheels` removes them too.
    """

    location: Location
    size: int
    unused_days: float


def kept_folders(workspace: Workspace) -> Iterator[Kept]:
    """Every finished environment, the least recently used first; each is measured when it is asked for."""
    now = time.time()
    shared = {inode for store in _stores(workspace) for inode in store.inodes()}
    used: list[tuple[float, str]] = []
    for path in workspace.environments.iterdir():
        with contextlib.suppress(OSError):  # another harness may be removing it
            if path.is_dir() and not path.is_symlink():
                used.append((path.stat().st_mtime, path.name))
    links: dict[tuple[int, int], int] = {}
    for last, name in sorted(used):
        location = Location(workspace, name)
        size = own_bytes(location.folder, location.pycache, held=shared, links=links)
        yield Kept(location, size, (now - last) / _DAY_S)


def prune_wheels(workspace: Workspace) -> int:
    """Remove installed wheels that no environment uses; returns how many."""
    return sum(store.prune() for store in _stores(workspace))


def remove_leftovers(workspace: Workspace) -> None:
    """Remove what killed harnesses left: half-made environments and clones, scratch folders, half-written files."""
    for parent in (workspace.building, workspace.scratch):
        remove_abandoned(parent)
    remove_abandoned(workspace.clones, UNFINISHED)
    remove_abandoned(workspace.stubs, UNFINISHED)
    remove_abandoned(workspace.downloads, older_than_s=_DAY_S)  # until then an interrupted download can go on
    remove_partial([workspace.records, workspace.index, *workspace.wheels.glob("*/*")])


def _stores(workspace: Workspace) -> list[WheelStore]:
    folders = [folder for folder in workspace.wheels.iterdir() if folder.is_dir() and not folder.is_symlink()]
    return [WheelStore(workspace, folder.name) for folder in folders]


def own_bytes(
    *folders: Path, held: Container[tuple[int, int]] = (), links: dict[tuple[int, int], int] | None = None
) -> int:
    """Bytes that removing these folders frees: files whose links are all in them, counted once.

    Files in `held` (device and inode) have one more link elsewhere, which is removed too. With the same `links` in
    each call, files count too whose other links are in the folders of earlier calls, which are removed before.
    """
    total = 0
    missing = {} if links is None else links  # links of a file that were not seen yet
    left = [str(folder) for folder in folders if folder.is_dir()]
    while left:
        with contextlib.suppress(OSError), os.scandir(left.pop()) as entries:  # another harness may be removing it
            for entry in entries:
                stat = entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    left.append(entry.path)
                elif stat.st_nlink > 1:
                    file = (stat.st_dev, stat.st_ino)
                    missing[file] = missing.get(file, stat.st_nlink - (file in held)) - 1
                    if missing[file]:
                        continue
                total += stat.st_blocks * _BLOCK
    return total
