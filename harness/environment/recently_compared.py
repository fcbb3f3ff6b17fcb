"""Remembers the environments that were compared with their manifest a moment ago, so that a run starts at once.

A run is compared again when it ends, so a change in between is noticed then; it is only unknown whose change it was.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from attrs import define, field

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.environment.manifest import Manifest

_LASTS_S = 120.0
_MOST = 8  # each has tens of thousands of files


@define
class RecentlyCompared:
    """The manifests of environments that matched them, by name, for `lasts_s` seconds; only the last eight are kept."""

    lasts_s: float = _LASTS_S
    clock: Callable[[], float] = time.monotonic
    _found: dict[str, tuple[float, Manifest]] = field(factory=dict, init=False)

    def note(self, name: str, manifest: Manifest) -> None:
        """Note that an environment matches its manifest now."""
        others = [item for item in self._found.items() if item[0] != name]
        self._found = dict([*others[1 - _MOST :], (name, (self.clock(), manifest))])

    def manifest(self, name: str, lock_id: str) -> Manifest | None:
        """The manifest that an environment matched a moment ago, None if it is too long ago or of another lock."""
        since, manifest = self._found.get(name, (0.0, None))
        if manifest is None or manifest.lock != lock_id or self.clock() - since >= self.lasts_s:
            return None
        return manifest

    def forget(self) -> None:
        """Forget all of them: environments share files, so a change in one may be a change in others."""
        self._found = {}
