"""Frees disk space before an environment is built, or refuses early if there is too little."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

from attrs import field, frozen

from harness.environment.cleaning import kept_folders, own_bytes, prune_wheels, remove
from harness.environment.disk_estimate import DiskEstimate, file_system
from harness.errors import NoSpace
from harness.events import SILENT, Note, Reporter
from harness.model.size import size_in_words

if TYPE_CHECKING:
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
    `since` (seconds since the epoch) belong to this run.
    """

    workspace: Workspace
    limit: int | None = None
    reporter: Reporter = SILENT
    since: float = field(factory=time.time)

    def reserve(self, estimate: DiskEstimate, uv_cache: Path) -> None:
        """Make sure that there is enough space. Raises `NoSpace` if there is not."""
        if self.limit is not None:
            self._keep_within(self.limit, estimate)
        root = self.workspace.building
        if file_system(uv_cache) == file_system(root):
            _expect_free(root, estimate.own + estimate.unpacked)
        else:
            _expect_free(root, estimate.own)
            _expect_free(uv_cache, estimate.unpacked)

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
            count = "1 environment" if len(removed) == 1 else f"{len(removed)} environments"
            freed = size_in_words(sum(kept.size for kept in removed))
            sentence = (
                f"removed {count} to stay below {size_in_words(limit)}, the least recently used first; freed {freed}"
            )
            self.reporter.report(Note(sentence))
        if taken + estimate.own > limit:
            raise NoSpace(
                f"the cache uses {size_in_words(taken)} and a new environment up to {size_in_words(estimate.own)}, "
                f"more than the {size_in_words(limit)} of --max-disk",
                hint="raise --max-disk, or run harness clean --all",
            )


def _expect_free(folder: Path, needed: int) -> None:
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(there).free
    if free - needed < _RESERVE:
        raise NoSpace(
            f"a new environment needs up to {size_in_words(needed)} at {folder}; only {size_in_words(free)} are free, "
            f"and {size_in_words(_RESERVE)} must stay free",
            hint=_HINT,
        )
