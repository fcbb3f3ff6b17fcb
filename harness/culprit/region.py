"""The region level: which changed lines inside the culprit's files make the difference.

Regions of one definition are tried together first, then one by one; a region that uses a name which only another one
defines is never tried without it.
"""

from __future__ import annotations

from attrs import evolve

from harness.culprit.advance import advanced_alone
from harness.culprit.counterfactual import Ground, listed, places, versions
from harness.culprit.exchange import both_contents
from harness.culprit.likelihood import quoted_in_message, ranked_groups
from harness.culprit.reduction import Candidate, Reduced
from harness.culprit.sides import Sides
from harness.culprit.texts import COSMETIC, Texts
from harness.model.culprit import Finding, Level
from harness.probe import Probe

_MOST_INSIDE = 12


def find_regions(ground: Ground, sides: Sides, found: Finding) -> Finding | None:
    """The regions that make the difference; None where the files can't be cut into regions."""
    content = both_contents(ground, sides, found)
    if content is None:
        return None
    texts = Texts.of(found.files, *content)
    if texts is None:
        return None
    if len(texts.all) == 1:
        return evolve(found, level=Level.REGION, regions=texts.regions(texts.all), candidates=1, runs=0)
    ground.begin(Level.REGION, f"{len(texts.all)} regions of {listed(found.files)} changed: which of them?")
    groups = texts.groups()
    ranked = ranked_groups(groups, sides, ground.plan, ground.traced(sides.after), last=COSMETIC)
    needs = texts.needs()
    lone, likely = _by_turns(texts, groups, ranked, quoted_in_message(sides))
    single = _reduce(ground, sides, texts, {unit: frozenset({unit}) for unit in lone}, needs, found, only_first=likely)
    if single.shown is not None:
        coarse = single
        inside = {unit: frozenset({unit}) for unit in lone if unit in single.units}
    else:
        coarse = _reduce(ground, sides, texts, {name: groups[name] for name in ranked}, needs, found, first=True)
        order = [name for name in ranked if name in coarse.units]
        inside = {unit: frozenset({unit}) for name in order for unit in sorted(groups[name], key=_by_number)}
    fine = _reduce(ground, sides, texts, inside, needs, found) if len(inside) > 1 else coarse
    searches = {id(search): search for search in (single, coarse, fine)}.values()
    units = frozenset().union(*(groups.get(name, frozenset({name})) for name in fine.units))
    units = units.union(*(needs.get(region, frozenset()) for region in units))
    regions = texts.regions(units)
    where = places(regions)
    reverted = f"the {sides.after.verdict.value} environment with only {where} reverted"
    advance = advanced_alone(ground, sides, texts, units, found)
    return Finding(
        Level.REGION,
        found.packages,
        files=tuple(sorted({region.file for region in regions})),
        regions=regions,
        proofs=(
            ground.shown(reverted, fine if fine.shown else coarse, sides.before.verdict),
            advance.proof,
        ),
        candidates=len(texts.all),
        runs=sum(search.runs for search in searches) + advance.runs,
        unresolved=sum(search.unresolved for search in searches),
        is_minimal=fine.is_minimal,
        needs=advance.needs,
        notes=(*ground.notes(fine), *advance.notes),
    )


def find_inside(ground: Ground, sides: Sides, texts: Texts, found: Finding) -> Reduced | None:
    """Regions of likely definitions whose reversal alone undoes the difference, looked for with few runs.

    For a file that can't be put back whole. None where there are none; `units` are regions.
    """
    groups = texts.groups()
    ranked = ranked_groups(groups, sides, ground.plan, ground.traced(sides.after), last=COSMETIC)
    needs = texts.needs()
    lone, likely = _by_turns(texts, groups, ranked, quoted_in_message(sides))
    attempts = (
        ({unit: frozenset({unit}) for unit in lone}, min(likely, _MOST_INSIDE)),
        ({name: groups[name] for name in ranked if name != COSMETIC}, _MOST_INSIDE // 2),
    )
    for units, most in attempts:
        reduced = _reduce(ground, sides, texts, units, needs, found, only_first=most) if units and most else None
        if reduced is not None and reduced.shown is not None:
            return evolve(reduced, units=frozenset().union(*(units[name] for name in reduced.units)))
    return None


def _reduce(
    ground: Ground,
    sides: Sides,
    texts: Texts,
    units: dict[str, frozenset[str]],
    needs: dict[str, frozenset[str]],
    found: Finding,
    *,
    only_first: int = 0,
    first: bool = False,
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

    return ground.reduce(
        sides.before.verdict, tuple(units), probe_of, label_of, requires, only_first=only_first, first=first
    )


def _by_turns(
    texts: Texts, groups: dict[str, frozenset[str]], ranked: tuple[str, ...], quoted: frozenset[str]
) -> tuple[tuple[str, ...], int]:
    """All regions in an order to try them alone, and how many of them are worth that.

    Worth it are those inside functions: the longest of each function, then the second longest of each, and so on; in a
    function, those that touch a name which the error's message quotes come before longer ones. A declaration (a base
    class, an import) that is put back alone often just switches off what fails.
    """
    turns: list[tuple[int, int, str]] = []
    others: list[str] = []
    for rank, name in enumerate(ranked):
        weight = {unit: (texts.names(unit).isdisjoint(quoted), -texts.length(unit)) for unit in groups[name]}
        longest = sorted(groups[name], key=lambda unit: (weight[unit], _by_number(unit)))
        if texts.is_function(name):
            turns += [(turn, rank, unit) for turn, unit in enumerate(longest)]
        else:
            others += longest
    return (*(unit for _, _, unit in sorted(turns)), *others), len(turns)


def _by_number(region: str) -> tuple[str, int]:
    path, _, number = region.rpartition("#")
    return path, int(number)
