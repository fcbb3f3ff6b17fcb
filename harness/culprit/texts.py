"""The changed regions of several files at once, as units of a search: each is named "path#number"."""

from __future__ import annotations

import re
from collections.abc import Iterable

from attrs import frozen

from harness.culprit.regions import FileDifference, lines_of
from harness.culprit.sides import PackageFiles
from harness.model import Mixture
from harness.model.culprit import Region

_WORD = re.compile(r"[A-Za-z_]\w*")
COSMETIC = "comments, layout and docstrings"


@frozen
class Texts:
    """The differences of some files."""

    differences: dict[str, FileDifference]

    @classmethod
    def of(cls, files: tuple[str, ...], before: PackageFiles, after: PackageFiles) -> Texts | None:
        """None where one of the files is new, gone or no text: then the whole file is the region."""
        differences = {}
        for path in files:
            older, newer = before.read(path), after.read(path)
            if older is None or newer is None:
                return None
            try:
                differences[path] = FileDifference.between(path, older.decode(), newer.decode())
            except UnicodeDecodeError:
                return None
        return cls(differences)

    @property
    def all(self) -> frozenset[str]:
        """Every region."""
        return frozenset(f"{path}#{i}" for path, found in self.differences.items() for i in range(len(found.blocks)))

    def groups(self) -> dict[str, frozenset[str]]:
        """Regions by definition; those that change no meaning are one group."""
        groups: dict[str, frozenset[str]] = {}
        for path, found in self.differences.items():
            cosmetic = found.cosmetic()
            for name, numbers in found.groups().items():
                units = frozenset(f"{path}#{i}" for i in numbers if i not in cosmetic)
                if units:
                    groups[f"{path}::{name}"] = units
            if cosmetic:
                groups[COSMETIC] = groups.get(COSMETIC, frozenset()) | {f"{path}#{i}" for i in cosmetic}
        return groups

    def length(self, region: str) -> int:
        """Lines that a region takes away and adds."""
        path, _, number = region.rpartition("#")
        a, b, c, d = self.differences[path].blocks[int(number)]
        return b - a + d - c

    def names(self, region: str) -> frozenset[str]:
        """Words that a region takes away or adds."""
        path, _, number = region.rpartition("#")
        difference = self.differences[path]
        a, b, c, d = difference.blocks[int(number)]
        lines = (*lines_of(difference.before)[a:b], *lines_of(difference.after)[c:d])
        return frozenset(_WORD.findall("".join(lines)))

    def is_function(self, group: str) -> bool:
        """Whether a group ("path::name") is the body of a function."""
        path, _, name = group.partition("::")
        return path in self.differences and self.differences[path].is_function(name)

    def needs(self) -> dict[str, frozenset[str]]:
        """What each region can't be reverted without, and what that can't, to the end."""
        direct = {
            f"{path}#{number}": frozenset(f"{path}#{other}" for other in others)
            for path, found in self.differences.items()
            for number, others in found.requires().items()
        }
        closed = {}
        for region in direct:
            reached, border = {region}, {region}
            while border:
                border = {other for one in border for other in direct.get(one, ())} - reached
                reached |= border
            closed[region] = frozenset(reached - {region})
        return closed

    def lacking(self, old: frozenset[str]) -> frozenset[str]:
        """Further regions without which these can't be reverted, as far as names tell."""
        found = set()
        for path, difference in self.differences.items():
            found |= {f"{path}#{number}" for number in difference.lacking(_numbers(old, path))}
        return frozenset(found)

    def lacking_advanced(self, new: frozenset[str]) -> frozenset[str]:
        """The same the other way round: regions without which these can't be advanced."""
        found = set()
        for path, difference in self.differences.items():
            flipped = FileDifference.between(path, difference.after, difference.before)
            found |= {f"{path}#{number}" for number in flipped.lacking(_numbers(new, path))}
        return frozenset(found)

    def regions(self, units: Iterable[str]) -> tuple[Region, ...]:
        """The regions themselves, in the order of the files."""
        split = sorted((path, int(number)) for path, _, number in (unit.rpartition("#") for unit in units))
        return tuple(self.differences[path].region(number) for path, number in split)

    def mixture(self, old: frozenset[str], label: str) -> Mixture:
        """Every file with these regions as before and the others as after."""
        numbers = {path: _numbers(old, path) for path in self.differences}
        undefined = sorted({name for path, found in self.differences.items() for name in found.flaws(numbers[path])})
        return Mixture(
            files={path: found.mixed(numbers[path]).encode() for path, found in self.differences.items()},
            label=label,
            flaw=f"the mixture leaves names undefined: {', '.join(undefined)}" if undefined else "",
        )


def _numbers(units: frozenset[str], path: str) -> frozenset[int]:
    split = (unit.rpartition("#") for unit in units)
    return frozenset(int(number) for name, _, number in split if name == path)
