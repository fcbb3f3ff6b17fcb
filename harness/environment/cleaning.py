"""Finds the size and age of finished environments, and removes them."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from harness.atomic import remove_partial
from harness.environment.environment_record import EnvironmentRecord
from harness.environment.file_locks import remove_abandoned
from harness.environment.manifest import Manifest
from harness.environment.wheel_store import WheelStore

if TYPE_CHECKING:
    from collections.abc import Container

    from harness.environment.workspace import Workspace

_DAY_S = 86400.0
_BLOCK = 512  # the unit of st_blocks on every file system


@frozen
class Kept:
    """One environment: the bytes that removing it frees (without shared files), and the days since its last use.

    Files of the wheel store that only this environment uses count, because `prune_wheels` removes them too.
    """

    path: Path
    size: int
    unused_days: float


def kept_folders(workspace: Workspace) -> list[Kept]:
    """Every finished environment, the least recently used first."""
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
    """Remove an environment and its records, unless it is in use; returns whether it was removed."""
    return EnvironmentRecord(workspace, kept.path.name).remove(kept.path)


def prune_wheels(workspace: Workspace) -> int:
    """Remove installed wheels that no environment uses; returns how many."""
    records = (EnvironmentRecord(workspace, path.name).manifest_path for path in workspace.environments.iterdir())
    used = {key for path in records if (manifest := Manifest.read(path)) is not None for key in manifest.wheels}
    return sum(store.prune(used) for store in _stores(workspace))


def remove_leftovers(workspace: Workspace) -> None:
    """Remove the leftovers of killed harnesses: half-built environments, scratch folders, half-written files."""
    for parent in (workspace.building, workspace.scratch):
        remove_abandoned(parent)
    for store in _stores(workspace):
        store.remove_partial()
    entries = (entry for parent in (workspace.wheels, workspace.bytecode) for entry in parent.glob("*/*"))
    remove_partial([workspace.records, workspace.index, *entries])


def _stores(workspace: Workspace) -> list[WheelStore]:
    return [WheelStore.named(workspace, folder.name) for folder in workspace.wheels.iterdir() if folder.is_dir()]


def own_bytes(*folders: Path, held: Container[tuple[int, int]] = ()) -> int:
    """Bytes that removing these folders frees: files whose links are all in them, counted once.

    Files in `held` (device and inode) have one more link elsewhere, which is removed too.
    """
    total = 0
    missing: dict[tuple[int, int], int] = {}  # links of a file that were not seen yet
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
