"""The files that runs changed in their environments, as a report lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from harness.model.release import version_order
from harness.model.text import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

_SHOWN = 20


@frozen
class AlteredRow:
    """The files that the run of one release changed: the first few, and the number of the others."""

    release: str
    files: tuple[str, ...]
    more: int = 0


def altered_rows(altered: Mapping[str, tuple[str, ...]]) -> tuple[AlteredRow, ...]:
    """Return a row for each release, the oldest first. Paths are relative to site-packages if possible."""
    return tuple(
        AlteredRow(release, tuple(map(in_environment, files[:_SHOWN])), max(0, len(files) - _SHOWN))
        for release, files in sorted(altered.items(), key=lambda pair: version_order(pair[0]))
    )


def in_environment(file: str) -> str:
    """The path of an environment's file, relative to site-packages if it is there."""
    return plain(file.rpartition("site-packages/")[2])
