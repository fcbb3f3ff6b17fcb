"""Lines and functions that a failure may come from, according to the API of two releases. Only a run is proof."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from attrs import frozen

from harness.culprit.api_evidence import api_evidence
from harness.culprit.likelihood import failure_of

if TYPE_CHECKING:
    from harness.culprit.exchange import Exchange
    from harness.culprit.sides import Sides

_NEW_MESSAGE, _CHANGED_PARAMETERS = "new-message", "changed-parameters"


@frozen
class Pointers:
    """Suspect lines of the older and newer release (file, and line from 1), and functions by their dotted names."""

    older: frozenset[tuple[str, int]] = frozenset()
    newer: frozenset[tuple[str, int]] = frozenset()
    functions: frozenset[str] = frozenset()

    @classmethod
    def of(cls, exchange: Exchange, sides: Sides) -> Pointers:
        """Read the sources of both sides for evidence on the exception of the failing side."""
        older: set[tuple[str, int]] = set()
        newer: set[tuple[str, int]] = set()
        functions: set[str] = set()
        for change in exchange.package.packages:
            places = (change.before or "", exchange.before.packages), (change.after or "", exchange.after.packages)
            with contextlib.suppress(OSError):  # the environment was removed in the meantime
                for one in api_evidence(failure_of(sides), change.name, older=places[0], newer=places[1]):
                    (newer if one.kind == _NEW_MESSAGE else older).add((one.file, one.line))
                    if one.kind == _CHANGED_PARAMETERS:
                        functions.add(one.name)
        return cls(frozenset(older), frozenset(newer), frozenset(functions))

    @property
    def files(self) -> frozenset[str]:
        """The files of the lines, of either release."""
        return frozenset(file for file, _ in self.older | self.newer)

    def point_to(self, path: str, home: str, function: str, before: tuple[int, int], after: tuple[int, int]) -> bool:
        """Whether the pointers name a line of a region, or the function around it.

        `path` and `home` are the newer and the older path of the file; `before` and `after` are the first and last line
        of the region in each, counted from 1.
        """
        if any(file == home and before[0] <= line <= before[1] for file, line in self.older):
            return True
        if any(file == path and after[0] <= line <= after[1] for file, line in self.newer):
            return True
        return bool(function) and any(name.endswith(f".{function}") for name in self.functions)
