"""The region level: which changed lines inside the culprit's files make the difference.

Regions of one definition are tried together first, then one by one; a region that uses a name which only another one
defines is never tried without it.
"""

from __future__ import annotations

from attrs import evolve, frozen

from harness.investigation.culprit import Finding, Level, Region
from harness.investigation.levels.file import both_contents
from harness.investigation.levels.ground import Ground, listed, versions
from harness.investigation.likelihood import ranked_groups
from harness.investigation.reduction import Candidate, Reduced
from harness.investigation.regions import FileDifference
from harness.investigation.sides import METADATA, PackageFiles, Sides
from harness.model import Mixture
from harness.probe import Probe

_COSMETIC = "comments, layout and docstrings"


@frozen
class _Texts:
    """The differences of some files; a region is named "path#number"."""

    differences: dict[str, FileDifference]

    @classmethod
    def of(cls, files: tuple[str, ...], before: PackageFiles, after: PackageFiles) -> _Texts | None:
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
                groups[_COSMETIC] = groups.get(_COSMETIC, frozenset()) | {f"{path}#{i}" for i in cosmetic}
        return groups

    def needs(self) -> dict[str, frozenset[str]]:
        """What each region can't be reverted without."""
        return {
            f"{path}#{number}": frozenset(f"{path}#{other}" for other in others)
            for path, found in self.differences.items()
            for number, others in found.requires().items()
        }

    def regions(self, units: frozenset[str]) -> tuple[Region, ...]:
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


def find_regions(ground: Ground, sides: Sides, found: Finding) -> Finding | None:
    """The regions that make the difference; None where the files can't be cut into regions."""
    content = both_contents(ground, sides, found)
    if content is None or METADATA in found.files:
        return None
    texts = _Texts.of(found.files, *content)
    if texts is None:
        return None
    if len(texts.all) == 1:
        return evolve(found, level=Level.REGION, regions=texts.regions(texts.all), candidates=1, runs=0)
    ground.watcher.level(Level.REGION, f"{len(texts.all)} regions of {listed(found.files)} changed: which of them?")
    groups = texts.groups()
    ranked = ranked_groups(groups, sides, ground.plan, ground.traced(sides.after), last=_COSMETIC)
    needs = texts.needs()
    coarse = _reduce(ground, sides, texts, {name: groups[name] for name in ranked}, needs, found)
    inside = {unit: frozenset({unit}) for name in coarse.units for unit in sorted(groups[name])}
    fine = _reduce(ground, sides, texts, inside, needs, found) if len(inside) > 1 else coarse
    units = frozenset().union(*(groups.get(name, frozenset({name})) for name in fine.units))
    regions = texts.regions(units)
    where = places(regions)
    alone = texts.mixture(texts.all - units, f"only {where} as in {versions(found.packages, newer=True)}")
    reverted = f"the {sides.after.verdict.value} environment with only {where} reverted"
    advanced = f"the {sides.before.verdict.value} environment with only {where} advanced"
    return Finding(
        Level.REGION,
        found.packages,
        files=tuple(sorted({region.file for region in regions})),
        regions=regions,
        proofs=(
            ground.shown(reverted, fine if fine.shown else coarse, sides.before.verdict),
            ground.proof(advanced, ground.mixed(sides.before, alone), sides.after.verdict),
        ),
        candidates=len(texts.all),
        runs=coarse.runs + (fine.runs if fine is not coarse else 0) + 1,
        unresolved=coarse.unresolved + (fine.unresolved if fine is not coarse else 0),
        is_minimal=fine.is_minimal,
        notes=ground.notes(fine),
    )


def _reduce(
    ground: Ground,
    sides: Sides,
    texts: _Texts,
    units: dict[str, frozenset[str]],
    needs: dict[str, frozenset[str]],
    found: Finding,
) -> Reduced:
    """The smallest set of these units, each some regions, whose reversal flips the newer side's verdict."""
    owner = {region: name for name, regions in units.items() for region in regions}
    older = versions(found.packages, newer=False)

    def regions_of(chosen: Candidate) -> frozenset[str]:
        return frozenset().union(*(units[name] for name in chosen))

    def requires(chosen: Candidate) -> frozenset[str]:
        needed = (other for region in regions_of(chosen) for other in needs.get(region, ()))
        return frozenset(owner[other] for other in needed if other in owner)

    def probe_of(chosen: Candidate) -> Probe:
        old = regions_of(chosen)
        # What a region needs is reverted with it even where it is no candidate any more.
        old |= frozenset(other for region in old for other in needs.get(region, ()))
        return ground.mixed(sides.after, texts.mixture(old, f"{places(texts.regions(old))} as in {older}"))

    def label_of(chosen: Candidate) -> str:
        return f"reverted: {places(texts.regions(regions_of(chosen)))}"

    return ground.reduce(sides.before.verdict, tuple(units), probe_of, label_of, requires)


def places(regions: tuple[Region, ...]) -> str:
    """Where regions are: function and lines."""
    return listed(
        f"{region.function or region.file.rpartition('/')[2]} (lines {region.after[0]}-{max(region.after)})"
        if region.after[1] >= region.after[0]
        else f"{region.function or region.file.rpartition('/')[2]} (at line {region.after[0]})"
        for region in regions
    )
