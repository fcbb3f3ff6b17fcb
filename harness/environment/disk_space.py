"""Frees disk space before an environment is built, or refuses early if there is too little."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

from attrs import field, frozen

from harness.environment.cleaning import Kept, kept_folders, own_bytes, prune_wheels, remove
from harness.environment.disk_estimate import DiskEstimate, file_system
from harness.errors import NoSpace
from harness.events import SILENT, Note, Reporter
from harness.model.text import size_in_words

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness.environment.workspace import Workspace

_RESERVE = 512 * 2**20  # for what a run writes, and for other programs
# No probe uses an environment for longer without marking it as used again.
_IN_USE_S = 3600.0
_DAY_S = 86400.0
_HINT = "run harness clean or uv cache prune, or set HARNESS_CACHE_DIR and UV_CACHE_DIR to another disk"


@frozen
class DiskSpace:
    """The disk that holds a workspace, and the one that holds uv's cache.

    `limit` is how many bytes the workspace may use (None: unlimited). Files shared with uv's cache do not count,
    because removing them here frees nothing. `reporter` gets a note about removed environments. Environments used after
    `since` (seconds since the epoch) belong to this run. `free_bytes` returns the free bytes on the disk of a folder.
    """

    workspace: Workspace
    limit: int | None = None
    reporter: Reporter = SILENT
    since: float = field(factory=time.time)
    free_bytes: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free

    def make_room(self, estimate: DiskEstimate) -> None:
        """Remove the least recently used environments that no process keeps, if that makes enough space.

        This is for a disk that is nearly full; a removed environment is rebuilt when it is needed.
        """
        missing = estimate.own + estimate.unpacked + _RESERVE - self.free_bytes(self.workspace.building)
        kept = kept_folders(self.workspace)
        if sum(one.size for one in kept) < missing:
            return
        removed: list[Kept] = []
        while kept and sum(one.size for one in removed) < missing:
            if remove(kept[0], self.workspace):
                removed.append(kept[0])
            del kept[0]
        if removed:
            prune_wheels(self.workspace)
            self._report(removed, "because the disk is nearly full")

    def _report(self, removed: list[Kept], why: str) -> None:
        count = "1 environment" if len(removed) == 1 else f"{len(removed)} environments"
        freed = size_in_words(sum(kept.size for kept in removed))
        self.reporter.report(Note(f"removed {count} {why}, the least recently used first; freed {freed}"))

    def reserve(self, estimate: DiskEstimate, uv_cache: Path) -> None:
        """Make sure that there is enough space. Raises `NoSpace` if there is not."""
        if self.limit is not None:
            self._keep_within(self.limit, estimate)
        root = self.workspace.building
        if file_system(uv_cache) == file_system(root):
            self._expect_free(root, estimate.own + estimate.unpacked)
        else:
            self._expect_free(root, estimate.own)
            self._expect_free(uv_cache, estimate.unpacked)

    def _keep_within(self, limit: int, estimate: DiskEstimate) -> None:
        """Remove the least recently used environments, but none that this or another run may be using."""
        taken = own_bytes(self.workspace.root)
        in_use_days = max(_IN_USE_S, time.time() - self.since) / _DAY_S
        removed = []
        for kept in kept_folders(self.workspace):
            if taken + estimate.own <= limit or kept.unused_days <= in_use_days:
                break
            if remove(kept, self.workspace):
                taken -= kept.size
                removed.append(kept)
        if removed:
            prune_wheels(self.workspace)
            taken = own_bytes(self.workspace.root)
            self._report(removed, f"to stay below {size_in_words(limit)}")
        if taken + estimate.own > limit:
            raise NoSpace(
                f"the cache uses {size_in_words(taken)} and a new environment up to {size_in_words(estimate.own)}, "
                f"more than the {size_in_words(limit)} of --max-disk",
                hint="raise --max-disk, or run harness clean --all",
            )

    def _expect_free(self, folder: Path, needed: int) -> None:
        there = next(parent for parent in (folder, *folder.parents) if parent.exists())
        free = self.free_bytes(there)
        if free - needed < _RESERVE:
            raise NoSpace(
                f"a new environment needs up to {size_in_words(needed)} at {folder}; only {size_in_words(free)} are "
                f"free, and {size_in_words(_RESERVE)} must stay free",
                hint=_HINT,
            )
