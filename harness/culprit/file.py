"""The file level: which files of the culprit make the difference.

In the newer environment a part of the culprit's files is put back to the older release. Added, removed, renamed and
compiled files count; all metadata of a distribution counts as one. What is found is then advanced in the older
environment; where that does not bring the difference, what it takes besides is looked for.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve, frozen

from harness.culprit.counterfactual import Ground, listed, places
from harness.culprit.exchange import Exchange
from harness.culprit.likelihood import ranked_files
from harness.culprit.mentions import lacked
from harness.culprit.reduction import Candidate, Reduced
from harness.culprit.region import find_inside
from harness.culprit.sides import Sides
from harness.culprit.texts import Texts
from harness.model import Verdict
from harness.model.culprit import Finding, Level, Proof

_REST = "files that the run did not use"
_MOST = 16
_ALONE = 16
_FEW = 3  # so many are looked into; more are only told


@frozen
class _Advance:
    """The proof that could be had, which units it took besides, whether these belong to the culprit, and the search."""

    proof: Proof
    besides: Candidate = frozenset()
    belong: bool = False
    search: Reduced | None = None
    notes: tuple[str, ...] = ()


def find_files(ground: Ground, sides: Sides, package: Finding) -> Finding | None:
    """The files that make the difference; None where the sides can't be taken apart or no file differs."""
    exchange = Exchange.of(ground, sides, package)
    if exchange is None or not exchange.units:
        return None
    count = len(exchange.units)
    names = listed(change.name for change in package.packages)
    ground.begin(Level.FILE, f"{count} files of {names} differ: which of them make the difference?")
    called = ground.traced(sides.after) if count > 1 else {}
    used, unused = ranked_files(exchange.units, sides, ground.plan, exchange.after, called)
    alone = _reverted_alone(exchange, used)
    if alone is not None and alone.shown is None and (inside := _inside(exchange, alone)) is not None:
        return evolve(inside, candidates=count)
    back = (alone,) if alone is not None and alone.shown is not None else _reverted(exchange, used, unused)
    found = back[-1].units
    advance = _advanced(exchange, found, tuple(unit for unit in (*used, *unused) if unit not in found))
    if advance.belong:
        found |= advance.besides
    spent = () if alone is None or alone in back else (alone,)
    searches = (*spent, *back, *([advance.search] if advance.search is not None else []))
    return Finding(
        Level.FILE,
        exchange.owning(exchange.paths(found)),
        files=exchange.named(found),
        proofs=(exchange.proof_back(found), advance.proof),
        candidates=count,
        runs=sum(search.runs for search in searches) + 2,
        unresolved=sum(search.unresolved for search in searches),
        is_minimal=back[-1].is_minimal and (advance.search is None or advance.search.is_minimal),
        needed_files=() if advance.belong else exchange.named(advance.besides),
        notes=(*ground.notes(back[-1]), *advance.notes),
    )


def _reverted_alone(exchange: Exchange, used: tuple[str, ...]) -> Reduced | None:
    """The likeliest files put back one by one, until one undoes the difference."""
    if not used:
        return None
    return exchange.ground.reduce(
        exchange.sides.before.verdict,
        used,
        lambda chosen: exchange.reverted(chosen),
        lambda chosen: f"reverted: {listed(sorted(chosen))}",
        only_first=min(len(used), _ALONE),
    )


def _inside(exchange: Exchange, alone: Reduced) -> Finding | None:
    """The first of the likely files that can't be put back whole, and of which some regions undo the difference."""
    ground, sides = exchange.ground, exchange.sides
    runs, unresolved = alone.runs, alone.unresolved
    for path, reason in list(alone.untestable.items())[:_FEW]:
        texts = Texts.of((path,), exchange.before, exchange.after)
        if texts is None or not texts.all:
            continue
        ground.begin(Level.FILE, f"{path} can't be put back whole ({reason}): do some of its regions do it?")
        inside = find_inside(ground, sides, texts, exchange.package)
        if inside is None:
            continue
        where = places(texts.regions(inside.units))
        back = ground.shown(
            f"the {sides.after.verdict.value} environment with only {where} of {path} reverted",
            inside,
            sides.before.verdict,
        )
        return Finding(
            Level.FILE,
            exchange.owning((path,)),
            files=(path,),
            proofs=(back, exchange.proof_forth((path,))),
            runs=runs + inside.runs + 1,
            unresolved=unresolved + inside.unresolved,
            notes=(f"{path} can't be put back whole: {reason}",),
        )
    return None


def _reverted(exchange: Exchange, used: tuple[str, ...], unused: tuple[str, ...]) -> tuple[Reduced, ...]:
    """The fewest units whose reversal undoes the difference; those that the run did not use are one unit at first."""
    ground, flipped = exchange.ground, exchange.sides.before.verdict
    lumps = {unit: frozenset({unit}) for unit in used} | ({_REST: frozenset(unused)} if unused else {})

    def reduce(units: dict[str, Candidate]) -> Reduced:
        return ground.reduce(
            flipped,
            tuple(units),
            lambda chosen: exchange.reverted(frozenset().union(*(units[name] for name in chosen))),
            lambda chosen: f"reverted: {listed(sorted(chosen))}",
            singles=0,
        )

    coarse = reduce(lumps)
    found = frozenset().union(*(lumps[name] for name in coarse.units))
    if _REST not in coarse.units:
        return (coarse,)
    if len(unused) == 1:
        return (evolve(coarse, units=found),)
    return coarse, reduce({unit: frozenset({unit}) for unit in (*used, *unused) if unit in found})


def _advanced(exchange: Exchange, found: Candidate, others: tuple[str, ...]) -> _Advance:
    """The counterfactual the other way, with what else it takes.

    Where the older environment runs with these units and is as before, others make the difference together with them:
    all are the culprit. Where it can't be run, that may be for files that these import: new ones are of the culprit,
    changed ones are only told.
    """
    alone = exchange.proof_forth(found)
    expected = exchange.sides.after.verdict
    if alone.holds or not others:
        return _Advance(alone)
    ran = alone.verdict is not Verdict.SKIP
    if not ran:
        texts = [path for unit in found for path in exchange.units[unit]]
        near = lacked(texts, exchange.paths(others), exchange.before.read, exchange.after.read)
        others = tuple(unit for unit in others if not near.isdisjoint(exchange.units[unit]))
        if not others:
            return _Advance(alone)
        proof = exchange.proof_forth(found.union(others))
        if not proof.holds:
            return _Advance(alone)
        if len(others) > _FEW:
            return _Advance(proof, frozenset(others), notes=(_takes(found, alone, others),))
    search = evolve(exchange.ground, most=_MOST).reduce(
        expected,
        others,
        lambda chosen: exchange.advanced(found | chosen),
        lambda chosen: f"advanced: {listed(sorted(found | chosen))}",
    )
    besides = search.units
    proof = exchange.proof_forth(found | besides)
    if search.gave_up or not proof.holds:
        note = f"{listed(sorted(found))} alone does not bring it; what else it takes was not found"
        return _Advance(alone, search=search, notes=(note,))
    takes = _takes(found, alone, besides)
    belong = ran or all(map(exchange.is_added, besides))
    return _Advance(proof, besides, belong, search, (takes, *exchange.ground.notes(search)))


def _takes(found: Candidate, alone: Proof, besides: Iterable[str]) -> str:
    return (
        f"{listed(sorted(found))} alone: {alone.verdict.value}, {alone.reason}; it takes {listed(sorted(besides))} too"
    )
