"""What finished environments weigh, how long they lie unused, and how they are removed."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from harness.environment.environment_record import EnvironmentRecord
from harness.environment.file_locks import remove_abandoned
from harness.environment.wheel_store import WheelStore

if TYPE_CHECKING:
    from collections.abc import Container

    from harness.environment.workspace import Workspace

_DAY_S = 86400.0
_BLOCK = 512  # the unit of st_blocks, whatever the file system's own is


@frozen
class Kept:
    """One environment: bytes that its removal frees (files shared with others count for nothing), days unused.

    The files that it alone has of the wheel store count, as they are removed too (`prune_wheels`).
    """

    path: Path
    size: int
    unused_days: float


def kept_folders(workspace: Workspace) -> list[Kept]:
    """Every finished environment, the longest unused first."""
    now = time.time()
    shared = {inode for store in _stores(workspace) for inode in store.inodes()}
    kept = []
    for path in workspace.environments.iterdir():
        with contextlib.suppress(OSError):  # another harness may be removing it
            if path.is_dir():
                size = own_bytes(path, workspace.pycache / path.name, held=shared)
                kept.append(Kept(path, size, (now - path.stat().st_mtime) / _DAY_S))
    return sorted(kept, key=lambda folder: -folder.unused_days)


def remove(kept: Kept, workspace: Workspace) -> bool:
    """Remove an environment with all that is kept of it, unless a harness uses it; whether it was removed."""
    return EnvironmentRecord(workspace, kept.path.name).remove(kept.path)


def prune_wheels(workspace: Workspace) -> int:
    """Remove the installed wheels that no environment has any more; returns how many."""
    return sum(store.prune() for store in _stores(workspace))


def remove_leftovers(workspace: Workspace) -> None:
    """Remove what harnesses have left that were killed: half-built environments, scratch folders, half-kept wheels."""
    for parent in (workspace.building, workspace.scratch):
        remove_abandoned(parent)
    for store in _stores(workspace):
        store.remove_partial()


def _stores(workspace: Workspace) -> list[WheelStore]:
    return [WheelStore.named(workspace, folder.name) for folder in workspace.wheels.iterdir() if folder.is_dir()]


def own_bytes(*folders: Path, held: Container[tuple[int, int]] = ()) -> int:
    """Bytes on disk that removing these folders would free: of files of which every link lies in them, each once.

    Of the files `held` (device and inode) one link more, elsewhere, goes with them.
    """
    total = 0
    missing: dict[tuple[int, int], int] = {}  # links of a file that were not met yet
    left = [folder for folder in folders if folder.is_dir()]
    while left:
        with contextlib.suppress(OSError), os.scandir(left.pop()) as entries:  # another harness may be removing it
            for entry in entries:
                stat = entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    left.append(Path(entry.path))
                elif stat.st_nlink > 1:
                    file = (stat.st_dev, stat.st_ino)
                    missing[file] = missing.get(file, stat.st_nlink - (file in held)) - 1
                    if missing[file]:
                        continue
                total += stat.st_blocks * _BLOCK
    return total
