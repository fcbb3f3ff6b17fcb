"""Edits: the smallest units that a mixture moves between two releases. Pure except for reading the files.

Each region (a changed run of lines, "path#number") is an edit. So is a file that can't be compared by lines because it
is new, removed, compiled or data. A rename is an edit of its own, apart from the regions of the file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise

from attrs import define, evolve, field, frozen

from harness.culprit.facts import Facts, Symbol, module_of
from harness.culprit.nesting import moved_together
from harness.culprit.pieces import serves_only
from harness.culprit.reading_facts import read_facts
from harness.culprit.regions import FileDifference, lines_of
from harness.culprit.sides import PackageFiles
from harness.culprit.syntax import outline_of
from harness.culprit.ties import Ranges, SideFacts, Ties, Unit, tied
from harness.model.culprit import Region

_WORD = re.compile(r"[A-Za-z_]\w*")
_CLASS = re.compile(r"\s*class\s+(\w+)")


@frozen
class Edits:
    """All edits between two sides; an edit is also called a unit.

    `differences` maps files to their regions, `homes` maps renamed files to their older paths, and `wholes` maps the
    other units to their files. Paths are relative to site-packages; a renamed file is named by its newer path. `facts`
    are those of the Python files in `differences`, of the older and of the newer text.
    """

    before: PackageFiles
    after: PackageFiles
    differences: dict[str, FileDifference]
    homes: dict[str, str]
    wholes: dict[Unit, tuple[str, ...]]
    facts: dict[Unit, tuple[Facts | None, Facts | None]] = field(factory=dict, eq=False, repr=False)

    @classmethod
    def of(
        cls, units: Mapping[Unit, tuple[str, ...]], before: PackageFiles, after: PackageFiles, cut: Collection[Unit]
    ) -> Edits:
        """Make edits from units of difference (`sides.differing`); text files in `cut` are split into regions."""
        differences: dict[str, FileDifference] = {}
        homes: dict[str, str] = {}
        wholes: dict[Unit, tuple[str, ...]] = {}
        facts: dict[Unit, tuple[Facts | None, Facts | None]] = {}
        for unit, paths in units.items():
            found = _compared(unit, paths[0], before, after) if unit in cut and paths[-1] == unit else None
            if found is None:
                wholes[unit] = paths
                continue
            if found.blocks:
                differences[unit] = found
            if found.blocks and unit.endswith(".py"):  # read now, while its syntax trees are at hand
                sides = ((paths[0], found.before, False), (unit, found.after, True))
                older, newer = (read_facts(path, text, _ranges(found, at).touches) for path, text, at in sides)
                facts[unit] = (older, newer)
            if paths[0] != unit:
                homes[unit] = paths[0]
                wholes[unit] = paths
        return cls(before, after, differences, homes, wholes, facts)

    @property
    def all(self) -> frozenset[Unit]:
        """Every unit."""
        regions = (f"{path}#{i}" for path, found in self.differences.items() for i in range(len(found.blocks)))
        return frozenset(self.wholes).union(regions)

    def is_region(self, unit: Unit) -> bool:
        """Whether a unit is a region rather than a whole file."""
        return unit not in self.wholes

    def path_of(self, unit: Unit) -> str:
        """The file of a region; the name of any other unit."""
        return unit if unit in self.wholes else unit.rpartition("#")[0]

    def numbers(self, units: Iterable[Unit], path: str) -> frozenset[int]:
        """The numbers of the regions of one file among these units."""
        split = (unit.rpartition("#") for unit in units if unit not in self.wholes)
        return frozenset(int(number) for name, _, number in split if name == path)

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
        return frozenset(_WORD.findall("".join((*before, *after))))

    def function(self, unit: Unit) -> str:
        """The qualified name of the definition around a region; "" for module level or a whole file."""
        if unit in self.wholes:
            return ""
        path, _, number = unit.rpartition("#")
        return self.differences[path].function_of(int(number))

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
        by_file = self.by_file(old)
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
            if home != path:
                exchanged[path if at_home else home] = None
        source = self.before if newer_base else self.after
        for unit, paths in self.wholes.items():
            if unit not in self.homes and (unit in old) is newer_base:
                exchanged |= {path: source.read(path) for path in paths}
        return exchanged

    def by_file(self, units: Collection[Unit]) -> dict[str, frozenset[int]]:
        """The numbers of the regions among these units, by file."""
        found: dict[str, set[int]] = {}
        for unit in units:
            if unit not in self.wholes:
                path, _, number = unit.rpartition("#")
                found.setdefault(path, set()).add(int(number))
        return {path: frozenset(numbers) for path, numbers in found.items()}

    def quiet(self) -> frozenset[Unit]:
        """Regions of Python files that only change comments, docstrings or layout."""
        found: set[Unit] = set()
        for path, difference in self.differences.items():
            if not path.endswith(".py"):
                continue
            older, newer = outline_of(difference.before).quiet, outline_of(difference.after).quiet
            if older is None or newer is None:
                continue
            for number, (a, b, c, d) in enumerate(difference.blocks):
                silent = all(n + 1 in older for n in range(a, b)) and all(n + 1 in newer for n in range(c, d))
                if silent or _is_rewrapped(lines_of(difference.before)[a:b], lines_of(difference.after)[c:d]):
                    found.add(f"{path}#{number}")
        return frozenset(found)

    def changes_bases(self, unit: Unit) -> bool:
        """Whether a region changes the first line of a class that both sides have."""
        older, newer = ({found[1] for line in lines if (found := _CLASS.match(line))} for lines in self.lines(unit))
        return not older.isdisjoint(newer)

    def serving(self) -> frozenset[Unit]:
        """Regions of Python files that only add or remove imported names; they only matter to users of the names."""
        return frozenset(
            f"{path}#{number}"
            for path, found in self.differences.items()
            if path.endswith(".py")
            for number, block in enumerate(found.blocks)
            if serves_only(block, found.before, found.after, (lines_of(found.before), lines_of(found.after)))
        )

    def ties(self) -> Ties:
        """The ties between edits, from the sources of both sides."""
        before, after = SideFacts(), SideFacts()
        pairs: list[tuple[Unit, Unit]] = []
        for path, difference in self.differences.items():
            for one, other in moved_together(difference) if path.endswith(".py") else ():
                pairs += [(f"{path}#{one}", f"{path}#{other}"), (f"{path}#{other}", f"{path}#{one}")]
        for is_newer, facts in ((False, before), (True, after)):
            reader = _SideReader(self, is_newer, facts)
            pairs += reader.read()
        return Ties.of((*pairs, *tied(before, after)))


@define
class _SideReader:
    """Collects the facts of one side in `facts`."""

    edits: Edits
    is_newer: bool
    facts: SideFacts
    _keys: dict[str, str] = field(factory=dict)  # dotted module name -> its path in symbols

    def read(self) -> list[tuple[Unit, Unit]]:
        """Read all Python files; returns pairs of units that share a statement and must move together."""
        texts = self._texts()
        self._keys = {module_of(path): key for key, (path, _, _) in texts.items()}
        pairs: list[tuple[Unit, Unit]] = []
        for key, (path, text, ranges) in texts.items():
            known = self.edits.facts.get(key)
            found = known[self.is_newer] if known is not None else read_facts(path, text, ranges.touches)
            if found is None or not ranges.rows:
                continue
            found = self._translated(found, path, key)
            self.facts.add(key, found, ranges)
            for first, last in found.statements:
                sharing = sorted(ranges.within(first, last))
                pairs += [pair for one, other in pairwise(sharing) for pair in ((one, other), (other, one))]
        for unit in self.edits.wholes:
            for path in self._paths(unit):
                if path.endswith(".py"):
                    self.facts.defines.setdefault(("module", module_of(path)), set()).add(unit)
        return pairs

    def _paths(self, unit: Unit) -> tuple[str, ...]:
        """The paths on this side of a unit that is not a region."""
        if unit in self.edits.homes:
            return (unit,) if self.is_newer else (self.edits.homes[unit],)
        if unit not in self.edits.wholes[unit]:  # one unit for many files, such as all compiled ones
            return ()
        here = self.edits.after if self.is_newer else self.edits.before
        return tuple(path for path in self.edits.wholes[unit] if path in here.digests)

    def _texts(self) -> dict[str, tuple[str, str, Ranges]]:
        """Map each Python file to its path on this side, its text, and the units of its lines."""
        found: dict[str, tuple[str, str, Ranges]] = {}
        for path, difference in self.edits.differences.items():
            if path.endswith(".py"):
                ranges = _ranges(difference, self.is_newer)
                here = path if self.is_newer else self.edits.homes.get(path, path)
                found[path] = (here, difference.after if self.is_newer else difference.before, ranges)
        files = self.edits.after if self.is_newer else self.edits.before
        for unit in self.edits.wholes:
            for path in self._paths(unit):
                if path.endswith(".py") and path not in found and unit not in self.edits.differences:
                    text = (files.read(path) or b"").decode(errors="replace")
                    found[path] = (path, text, Ranges(((1, len(text) + 1, unit),)))
        return found

    def _translated(self, facts: Facts, path: str, key: str) -> Facts:
        """Give symbols the same names on both sides; an import from a module becomes a name in it, or a submodule."""

        def named(symbol: Symbol) -> Symbol:
            if symbol[0] == "taken":
                _, module, name = symbol
                below = f"{module}.{name}"
                if below in self._keys or module not in self._keys:
                    return ("module", below)
                return ("name", self._keys[module], name)
            return (symbol[0], key, *symbol[2:]) if len(symbol) > 2 and symbol[1] == path else symbol

        return evolve(
            facts,
            defines=[(named(symbol), line) for symbol, line in facts.defines],
            uses=[(named(symbol), line) for symbol, line in facts.uses],
        )


def _ranges(difference: FileDifference, is_newer: bool) -> Ranges:
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


def _is_rewrapped(before: tuple[str, ...], after: tuple[str, ...]) -> bool:
    """Whether the lines differ only in where they are wrapped."""
    if not before or not after or "#" in "".join((*before, *after)):
        return False
    one, other = ("".join("".join(lines).split()).replace(",)", ")").replace(",]", "]") for lines in (before, after))
    return one == other and _indent(before[0]) == _indent(after[0]) and (one[-1:] in ")]}" or len(before) == len(after))


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
