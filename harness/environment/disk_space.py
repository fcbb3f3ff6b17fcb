"""Room for an environment is made, or missed, before it is built - not when the disk is full."""

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

_RESERVE = 512 * 2**20  # for what a run itself writes, and for others on this disk
# No probe of another harness runs longer in an environment without using it anew.
_IN_USE_S = 3600.0
_DAY_S = 86400.0
_HINT = "harness clean and uv cache prune free some; HARNESS_CACHE_DIR and UV_CACHE_DIR name other places"


@frozen
class DiskSpace:
    """The disk below a workspace and below uv's cache.

    `limit` is how many bytes the workspace may take (None: all there are). Files that uv's cache shares count for
    the cache, not for the workspace: to remove them from here frees nothing. `reporter` gets a note of what was
    removed; what was used after `since` (seconds since the epoch) is in use by this run.
    """

    workspace: Workspace
    limit: int | None = None
    reporter: Reporter = SILENT
    since: float = field(factory=time.time)

    def reserve(self, estimate: DiskEstimate, uv_cache: Path) -> None:
        """See to it that there is room. Raises `NoSpace` if there can't be."""
        if self.limit is not None:
            self._keep_within(self.limit, estimate)
        root = self.workspace.building
        if file_system(uv_cache) == file_system(root):
            _expect_free(root, estimate.own + estimate.unpacked)
        else:
            _expect_free(root, estimate.own)
            _expect_free(uv_cache, estimate.unpacked)

    def _keep_within(self, limit: int, estimate: DiskEstimate) -> None:
        """Remove the longest unused environments, none that this run or, likely, another is using."""
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
            sentence = f"removed {count}, the longest unused, to stay below {size_in_words(limit)}: {freed}"
            self.reporter.report(Note(sentence))
        if taken + estimate.own > limit:
            raise NoSpace(
                f"the harness's own cache takes {size_in_words(taken)}, another environment up to "
                f"{size_in_words(estimate.own)}: more than the {size_in_words(limit)} that --max-disk allows",
                hint="a larger --max-disk, or harness clean --all, which also frees compiled modules",
            )


def _expect_free(folder: Path, needed: int) -> None:
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(there).free
    if free - needed < _RESERVE:
        raise NoSpace(
            f"a new environment needs up to {size_in_words(needed)} at {folder}: {size_in_words(free)} are free, and "
            f"{size_in_words(_RESERVE)} stay free",
            hint=_HINT,
        )
