"""The counterfactual the other way: the culprit's regions as they became, everything else as it was.

First in the older environment itself. Where the newer lines can't stand there, or need more to show the difference,
in the newer environment with the rest of the file reverted; then the fewest further regions that they need are found
there - or in the older environment, where the newer one can't do with so much reverted.
"""

from __future__ import annotations

from attrs import evolve, frozen

from harness.culprit.counterfactual import Ground, places, versions
from harness.culprit.reduction import Candidate
from harness.culprit.sides import Sides
from harness.culprit.texts import COSMETIC, Texts
from harness.model import Verdict
from harness.model.culprit import Finding, Proof, Region
from harness.probe import Probe

_MOST = 16


@frozen
class Advance:
    """The proof that could be had, the runs it took, and what it needed."""

    proof: Proof
    runs: int
    notes: tuple[str, ...] = ()
    needs: tuple[Region, ...] = ()


def advanced_alone(ground: Ground, sides: Sides, texts: Texts, units: frozenset[str], found: Finding) -> Advance:
    """Whether these regions alone bring the newer side's verdict, or with which others they do."""
    where = places(texts.regions(units))
    newer = versions(found.packages, newer=True)
    alone = texts.mixture(texts.all - units, f"only {where} as in {newer}")
    before, after = sides.before.verdict.value, sides.after.verdict.value
    pure = ground.proof(
        f"the {before} environment with only {where} advanced", ground.mixed(sides.before, alone), sides.after.verdict
    )
    if pure.holds:
        return Advance(pure, 1)
    rest = f"the {after} environment with all of {', '.join(texts.differences)} reverted but {where}"
    partly = ground.proof(rest, ground.mixed(sides.after, alone), sides.after.verdict)
    if partly.holds:
        return Advance(partly, 2, (f"{pure.sentence}: {pure.verdict.value}, {pure.reason}",))
    others = _declarations_first(texts, units)
    if not others:
        return Advance(pure, 2)

    candidates = frozenset(others)
    in_older = partly.verdict is Verdict.SKIP and pure.verdict is not Verdict.SKIP
    base = sides.before if in_older else sides.after

    def probe_of(chosen: Candidate) -> Probe:
        kept = units | chosen
        label = f"only {places(texts.regions(kept))} as in {newer}"
        return ground.mixed(base, texts.mixture(texts.all - kept, label))

    def requires(chosen: Candidate) -> frozenset[str]:
        return texts.lacking_advanced(units | chosen) & candidates

    reduced = evolve(ground, most=_MOST).reduce(
        sides.after.verdict,
        others,
        probe_of,
        lambda chosen: f"advanced: {where} with {places(texts.regions(chosen))}",
        requires,
    )
    runs = 2 + reduced.runs
    if reduced.shown is None:
        return Advance(pure, runs, (f"{where} alone does not bring it; what else it needs was not found",))
    needs = texts.regions(reduced.units)
    along = places(needs)
    told = f"the {before} environment with only {where} and {along} advanced" if in_older else f"{rest} and {along}"
    proof = ground.shown(told, reduced, sides.after.verdict)
    alone_was = pure if in_older else partly
    note = f"{where} alone was {alone_was.verdict.value} ({alone_was.reason}); it takes {along} as well"
    return Advance(proof, runs, (note,), needs)


def _declarations_first(texts: Texts, units: frozenset[str]) -> tuple[str, ...]:
    """The other regions that change a meaning.

    A change inside a function mostly needs a declaration that came with it: those of classes come first.
    """
    ranked: list[tuple[int, str]] = []
    for group, regions in texts.groups().items():
        if group != COSMETIC:
            kind = 2 if texts.is_function(group) else 0 if group.partition("::")[2] else 1
            ranked += [(kind, region) for region in regions - units]
    return tuple(region for _, region in sorted(ranked))
