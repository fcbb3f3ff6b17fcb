"""Edits: the smallest units that a mixture moves between two releases, and how they are told. Only reads files.

Each region (a changed run of lines, "path#number") is an edit. So is a file that can't be compared by lines because it
is new, removed, compiled or data. A rename is an edit of its own, apart from the regions of the file.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from attrs import field, frozen

from harness.culprit.regions import FileDifference, defines, function_at, lines_of
from harness.culprit.sides import PackageFiles
from harness.culprit.syntax import outline_of
from harness.model.culprit import Region
from harness.model.text import listed, numbered_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness.model import Change


Unit = str
Units = frozenset[Unit]
UNCHANGED: Unit = ""  # all lines that are equal on both sides

WORD = re.compile(r"[A-Za-z_]\w*")


@frozen(slots=False)
class Edits:
    """All edits between two sides; an edit is also called a unit.

    `differences` maps files to their regions, `homes` maps renamed files to their older paths, and `wholes` maps the
    other units to their files. Paths are relative to site-packages; a renamed file is named by its newer path.
    """

    before: PackageFiles
    after: PackageFiles
    differences: dict[str, FileDifference]
    homes: dict[str, str]
    wholes: dict[Unit, tuple[str, ...]]

    @classmethod
    def of(
        cls,
        units: Mapping[Unit, tuple[str, ...]],
        before: PackageFiles,
        after: PackageFiles,
        cut: Collection[Unit],
        check: Callable[[], None] = lambda: None,
    ) -> Edits:
        """Make edits from units of difference (`sides.differing`); text files in `cut` are split into regions.

        `check` is called before each of these files is read.
        """
        differences: dict[str, FileDifference] = {}
        homes: dict[str, str] = {}
        wholes: dict[Unit, tuple[str, ...]] = {}
        for unit, paths in units.items():
            difference = None
            if unit in cut and paths[-1] == unit:
                check()
                difference = _compared(unit, paths[0], before, after)
            if difference is None:
                wholes[unit] = paths
                continue
            if difference.blocks:
                differences[unit] = difference
            if paths[0] != unit:
                homes[unit] = paths[0]
                wholes[unit] = paths
        return cls(before, after, differences, homes, wholes)

    @functools.cached_property
    def all(self) -> frozenset[Unit]:
        """Every unit."""
        regions = (
            f"{path}#{i}" for path, difference in self.differences.items() for i in range(len(difference.blocks))
        )
        return frozenset(self.wholes).union(regions)

    def is_region(self, unit: Unit) -> bool:
        """Whether a unit is a region rather than a whole file."""
        return unit not in self.wholes

    def path_of(self, unit: Unit) -> str:
        """The file of a region; the name of any other unit."""
        return unit if unit in self.wholes else unit.rpartition("#")[0]

    def block(self, unit: Unit) -> tuple[int, int, int, int]:
        """The lines of a region as (a, b, c, d): [a, b) before and [c, d) after, counted from 0."""
        path, _, number = unit.rpartition("#")
        return self.differences[path].blocks[int(number)]

    def lines(self, unit: Unit) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The lines of a region before and after; empty for a whole file."""
        if unit in self.wholes:
            return (), ()
        difference = self.differences[self.path_of(unit)]
        a, b, c, d = self.block(unit)
        return lines_of(difference.before)[a:b], lines_of(difference.after)[c:d]

    def words(self, unit: Unit) -> frozenset[str]:
        """The identifiers and keywords in the lines of a region, of both sides."""
        before, after = self.lines(unit)
        return frozenset(WORD.findall("".join((*before, *after))))

    def defining(self, names: Collection[str]) -> frozenset[Unit]:
        """The regions that define one of these names on one side only."""
        return frozenset(
            f"{path}#{number}"
            for path, difference in self.differences.items()
            for name in names
            if name in difference.before or name in difference.after
            for number, (older, newer) in enumerate(difference.texts)
            if defines(older, name) is not defines(newer, name)
        )

    def function(self, unit: Unit) -> str:
        """The qualified name of the definition around a region; "" for module level or a whole file."""
        if unit in self.wholes:
            return ""
        path, _, number = unit.rpartition("#")
        return self.differences[path].function_of(int(number))

    def around(self, file: str, line: int, old: Collection[Unit]) -> frozenset[Unit]:
        """The regions in the function around a line of a file, in the mixture with the units in `old` reverted."""
        path = next((path for path in self.differences if file in (path, self.homes.get(path))), None)
        if path is None:
            return frozenset()
        difference = self.differences[path]
        function = function_at(difference.mixed(self.by_file(old).get(path, ())), line)
        numbers = range(len(difference.blocks)) if function else ()
        return frozenset(f"{path}#{number}" for number in numbers if difference.function_of(number) == function)

    def regions(self, units: Iterable[Unit]) -> tuple[Region, ...]:
        """The regions among these units, sorted by file and position."""
        split = sorted((self.path_of(unit), int(unit.rpartition("#")[2])) for unit in units if self.is_region(unit))
        return tuple(self.differences[path].region(number) for path, number in split)

    def files(self, old: Collection[Unit], *, newer_base: bool) -> dict[str, bytes | None]:
        """The files to exchange to have the units in `old` as on the older side, and the others as on the newer one.

        They are exchanged in the environment of the newer side with `newer_base`, else of the older side. None removes
        a file.
        """
        exchanged: dict[str, bytes | None] = {}
        by_file, source = self.by_file(old), self.before if newer_base else self.after
        for path in self.differences.keys() | self.homes.keys():
            difference = self.differences.get(path)
            numbers = by_file.get(path, frozenset())
            count = len(difference.blocks) if difference is not None else 0
            home = self.homes.get(path, path)
            at_home = path in old or home == path
            untouched = (not numbers and (home == path or path not in old)) if newer_base else (
                len(numbers) == count and at_home)  # fmt: skip
            if untouched:
                continue
            text = difference.mixed(numbers).encode() if difference is not None else self.after.read(path)
            exchanged[home if at_home else path] = text
            if home != path and at_home is newer_base:
                exchanged[path if at_home else home] = source.read(path if at_home else home)
        for unit, paths in self.wholes.items():
            if unit not in self.homes and (unit in old) is newer_base:
                exchanged |= {path: source.read(path) for path in paths}
        return exchanged

    def by_file(self, units: Collection[Unit]) -> dict[str, frozenset[int]]:
        """The numbers of the regions among these units, by file."""
        regions: dict[str, set[int]] = {}
        for unit in units:
            if unit not in self.wholes:
                path, _, number = unit.rpartition("#")
                regions.setdefault(path, set()).add(int(number))
        return {path: frozenset(numbers) for path, numbers in regions.items()}

    def quiet(self) -> frozenset[Unit]:
        """Regions of Python files that only change comments, docstrings, layout, or which names are imported.

        A name that is imported from elsewhere than before is not quiet.
        """
        regions: set[Unit] = set()
        for path, difference in self.differences.items():
            older, newer = outline_of(difference.before), outline_of(difference.after)
            for number, (a, b, c, d) in enumerate(difference.blocks if path.endswith(".py") else ()):
                was, now = older.imported(a + 1, b), newer.imported(c + 1, d)
                if was is None or now is None:
                    continue
                if all(was[name] == now[name] for name in was.keys() & now.keys()):
                    regions.add(f"{path}#{number}")
        return frozenset(regions)


@frozen
class Ranges:
    """The lines of a text that belong to units: first line, last line (both from 1) and unit, in order."""

    rows: tuple[tuple[int, int, Unit], ...]
    _lasts: list[int] = field(init=False, eq=False, repr=False)

    @_lasts.default
    def _last_lines(self) -> list[int]:
        return [last for _, last, _ in self.rows]

    def at(self, line: int) -> Unit:
        """The unit that a line belongs to, or `UNCHANGED`."""
        return next(iter(self.within(line, line)), UNCHANGED)

    def within(self, first: int, last: int) -> frozenset[Unit]:
        """The units that have any of these lines, from `first` to `last`, both included."""
        index = bisect_left(self._lasts, first)
        units = set()
        while index < len(self.rows) and self.rows[index][0] <= last:
            units.add(self.rows[index][2])
            index += 1
        return frozenset(units)


def ranges_of(difference: FileDifference, *, is_newer: bool) -> Ranges:
    """The lines of each region in one of both texts."""
    blocks = ((c, d) if is_newer else (a, b) for a, b, c, d in difference.blocks)
    return Ranges(tuple((a + 1, b, f"{difference.path}#{n}") for n, (a, b) in enumerate(blocks) if b > a))


def _compared(unit: Unit, older: str, before: PackageFiles, after: PackageFiles) -> FileDifference | None:
    old, new = before.read(older), after.read(unit)
    if old is None or new is None:
        return None
    try:
        return FileDifference.between(unit, old.decode(), new.decode())
    except UnicodeDecodeError:
        return None


def places(regions: Iterable[Region], *, newer: bool = True) -> str:
    """The places of regions: definition (else file) and lines in the newer or the older text, or else in the other."""
    spans: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for region in regions:
        texts = (region.after, region.before) if newer else (region.before, region.after)
        span = next((text for text in texts if text[1] >= text[0]), texts[0])
        spans.setdefault((region.file, region.function), []).append(span)
    return listed(
        f"{function or file.rpartition('/')[2]} ({numbered_lines(lines)})" for (file, function), lines in spans.items()
    )


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
