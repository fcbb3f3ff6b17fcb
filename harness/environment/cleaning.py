"""What finished environments weigh, how long they lie unused, and how they are removed."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen
from filelock import FileLock, Timeout

if TYPE_CHECKING:
    from harness.environment.workspace import Workspace

_DAY_S = 86400.0
_BLOCK = 512  # the unit of st_blocks, whatever the file system's own is


@frozen
class Kept:
    """One environment: bytes that its removal frees (files shared with others count for nothing), days unused."""

    path: Path
    size: int
    unused_days: float


def kept_folders(workspace: Workspace) -> list[Kept]:
    """Every finished environment and every abandoned build, the longest unused first."""
    now = time.time()
    folders = [p for parent in (workspace.environments, workspace.building) for p in parent.iterdir() if p.is_dir()]
    kept = [
        Kept(path, own_bytes(path, workspace.pycache / path.name), (now - path.stat().st_mtime) / _DAY_S)
        for path in folders
    ]
    return sorted(kept, key=lambda folder: -folder.unused_days)


def remove(kept: Kept, workspace: Workspace) -> bool:
    """Remove an environment and its bytecode tree, unless it is being built; whether it was removed."""
    is_finished = kept.path.parent == workspace.environments
    name = kept.path.name if is_finished else kept.path.name.rpartition("-")[0]
    try:
        with FileLock(workspace.locks / f"{name}.lock", timeout=0):
            # Renamed first: a half-removed folder must not be taken for an environment.
            doomed = workspace.building / f"{name}-removed"
            if is_finished:
                kept.path.rename(doomed)
                shutil.rmtree(workspace.pycache / name, ignore_errors=True)
            else:
                doomed = kept.path
            shutil.rmtree(doomed, ignore_errors=True)
    except Timeout:
        return False
    return True


def discard(folder: Path, workspace: Workspace) -> None:
    """Remove one finished environment that is cheap to make again (a mixture)."""
    remove(Kept(folder, 0, 0.0), workspace)


def own_bytes(*folders: Path) -> int:
    """Bytes on disk that removing these folders would free: of files of which every link lies in them, each once."""
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
                    missing[file] = missing.get(file, stat.st_nlink) - 1
                    if missing[file]:
                        continue
                total += stat.st_blocks * _BLOCK
    return total
