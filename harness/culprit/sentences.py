"""Describes what is exchanged between two sides: places in files, versions, one release with parts of another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.model.text import listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.model import Change
    from harness.model.culprit import Region


def places(regions: Iterable[Region]) -> str:
    """The places of regions: definition (else file) and lines, in the newer text unless the lines were removed."""
    return listed(_place(region) for region in regions)


def _place(region: Region) -> str:
    first, last = region.after if region.after[1] >= region.after[0] else region.before
    lines = f"lines {first}-{last}" if last > first else f"line {first}"
    return f"{region.function or region.file.rpartition('/')[2]} ({lines})"


def versions(packages: Iterable[Change], *, newer: bool) -> str:
    """The packages with their versions on one side."""
    return listed(f"{change.name} {(change.after if newer else change.before) or '(absent)'}" for change in packages)


def exchanged_in_words(packages: Sequence[Change], what: str, *, newer_base: bool) -> str:
    """The newer release with parts of the older one, or the reverse, as in "shop 1.1 with shop.py from 1.0"."""
    only = packages[0] if len(packages) == 1 else None
    if only is None or only.before is None or only.after is None:
        return f"{versions(packages, newer=newer_base)} with {what} from {versions(packages, newer=not newer_base)}"
    base, other = (only.after, only.before) if newer_base else (only.before, only.after)
    return f"{only.name} {base} with {what} from {other}"
