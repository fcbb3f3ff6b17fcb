"""The file and region levels: one search over the changed regions and files of a package.

It reverts sets of edits in the newer environment, each with everything tied to it, until no smaller set removes the
difference. The result is narrowed to the lines that matter (`refining`), and added to the older environment with the
edits that it needs there (`line_needs`).
"""

from __future__ import annotations

import time
from contextlib import ExitStack

from attrs import evolve

from harness.culprit.consistency import Consistency
from harness.culprit.counterfactual import Trials
from harness.culprit.evidence import used_units
from harness.culprit.exchange import Exchange
from harness.culprit.forked_search import pursued
from harness.culprit.line_needs import Advanced, advanced, advanced_alone, belongs
from harness.culprit.line_search import (
    REST,
    LineSearch,
    file_units,
    files_of,
    is_not_mixable,
    prepared,
    reverted_in_words,
)
from harness.culprit.reduction import Candidate, Reduced
from harness.culprit.refining import Refined, refined
from harness.culprit.sides import Sides
from harness.culprit.ties import Unit
from harness.model import Observation, Verdict
from harness.model.culprit import Finding, Level, Region
from harness.model.words import listed
from harness.probe import Judge
from harness.request.parsing import told_duration

_MOST = 40
_FEW = 3


def find_lines(trials: Trials, sides: Sides, package: Finding, until: Level) -> tuple[Finding, ...]:
    """Find the files that make the difference, and the regions if `until` is deep enough.

    Returns () if no files differ or they can't be exchanged. If nothing smaller than the package could be proved, the
    only finding is the package itself, with a note that says why.
    """
    exchange = Exchange.of(trials, sides, package)
    if exchange is None or not exchange.units:
        return ()
    seconds = trials.plan.question.time_s
    trials = evolve(trials, until=time.monotonic() + seconds, judge=_strict(trials, sides, package))
    exchange = evolve(exchange, trials=trials)
    used = used_units(exchange.units, sides)
    names = listed(change.name for change in package.packages)
    trials.begin(
        Level.REGION if until.depth >= Level.REGION.depth else Level.FILE,
        f"{len(exchange.units)} files of {names} differ, {len(used)} of them ran: which lines make the difference? "
        f"(at most {_MOST} runs and {told_duration(seconds)})",
    )
    with ExitStack() as stack:
        if trials.spare is not None:
            stack.enter_context(trials.spare.used())
        search, traced = prepared(trials, sides, exchange, used)
        search, reduced = pursued(search, used, stack, most=_MOST)
        return _findings(search, reduced, package, until, traced)


def _strict(trials: Trials, sides: Sides, package: Finding) -> Judge:
    """The judge for mixtures, or the usual one if the message of the bug differs from run to run."""
    failing = sides.after if sides.after.verdict is Verdict.BAD else sides.before
    strict = trials.judge.for_mixtures(failing.observation)
    again = [one.observation for one in package.proofs if one.verdict is Verdict.BAD and one.observation is not None]
    return strict if all(strict(seen).verdict is Verdict.BAD for seen in again) else trials.judge


def _findings(search: LineSearch, reduced: Reduced, package: Finding, until: Level, traced: int) -> tuple[Finding, ...]:
    """The findings from a search: its result is narrowed further and proved in the other direction."""
    spent = [reduced]
    if REST in reduced.units and not is_not_mixable(search, reduced):
        search, reduced = _into_the_rest(search, reduced)
        spent.append(reduced)
    if reduced.shown is None and not reduced.gave_up and len(files_of(search, reduced.units)) <= _FEW:
        # Nothing smaller was sufficient, but all of it is only a few files.
        reduced = evolve(reduced, shown=_run_whole(search, reduced.units))
    if reduced.shown is None:
        return (evolve(package, notes=(*package.notes, _open(search, reduced))),)
    core, fine, forth = _both_ways(search, reduced := _apart(search, reduced), until)
    if forth.is_needless and (instead := _instead(search, reduced, forth)) is not None:
        core, fine, forth = _both_ways(search, reduced := _apart(search, instead), until)
    found = evolve(
        _files_found(search, reduced, core, forth),
        runs=sum(one.runs for one in spent) + forth.runs + traced,
        unresolved=sum(one.unresolved for one in spent),
    )
    if until.depth < Level.REGION.depth or not all(map(search.edits.is_region, core)):
        return (found,)
    return found, _lines_found(search, found, core, reduced.units - core, fine, forth)


def _both_ways(search: LineSearch, reduced: Reduced, until: Level) -> tuple[Candidate, Refined | None, Advanced]:
    """The found regions that matter, their lines if narrowed further, and the proof in the older environment."""
    core, fine = _core(search, reduced.units), None
    if until.depth >= Level.REGION.depth and all(map(search.edits.is_region, core)):
        likeliest = core
        core, fine = _narrowed(search, reduced.units, core)
        if fine is None and likeliest < core and (alone := advanced_alone(search, likeliest, core)) is not None:
            return likeliest, None, alone
    return core, fine, advanced(search, core, reduced.units)


def _instead(search: LineSearch, reduced: Reduced, forth: Advanced) -> Reduced | None:
    """Search among the edits that the found lines need, because these make the difference without the found lines.

    The found lines may have removed the bug only by breaking the mixture in a way that hides it. Returns None if
    reverting the needed edits does not remove the difference.
    """
    units = search.consistency.reverted(forth.needs)
    shown = _run_whole(search, units)
    if shown is None:
        return None
    found = search.pursue({unit: search.weights.get(unit, 1.0) for unit in units}, most=_MOST)
    if found.shown is None:
        found = evolve(found, units=units, shown=shown)
    return found.after(reduced)


def _files_found(search: LineSearch, reduced: Reduced, core: Candidate, forth: Advanced) -> Finding:
    """The finding on the files that make the difference, with both proofs."""
    exchange = search.exchange
    alone = search.reverted(reduced.units)
    sentence = reverted_in_words(search, reduced.units)
    back = search.trials.shown(sentence, reduced, search.sides.before.verdict, lambda: alone)
    files = files_of(search, core | (forth.needs if belongs(search, core, forth) else frozenset()))
    return Finding(
        Level.FILE,
        exchange.owning(exchange.paths(file_units(search, core))),
        files=files,
        proofs=(back, forth.proof),
        candidates=len(exchange.units),
        is_minimal=reduced.is_minimal,
        needed_files=tuple(name for name in files_of(search, forth.needs) if name not in files),
        notes=(*_notes(search, reduced), *forth.notes),
    )


def _narrowed(search: LineSearch, units: Candidate, core: Candidate) -> tuple[Candidate, Refined | None]:
    """The regions that matter, and the lines in them that make the difference, None if they can't be narrowed.

    That some regions are only needed by others is a guess from names until a run proves it. So the lines of all regions
    are tried, and if no run separates the regions, all are returned except those that only serve others.
    """
    regions = frozenset(unit for unit in units if search.edits.is_region(unit))
    fine = refined(
        search.trials,
        search.edits,
        regions,
        units - regions,
        base=search.sides.after,
        expected=search.sides.before.verdict,
        packages=search.exchange.package.packages,
    )
    if core == regions:
        return core, fine
    if fine is None:
        return (regions - search.serving) or core, None
    owners = frozenset(unit for unit in regions if any(_overlap(search, unit, one) for one in fine.regions))
    return owners or core, fine


def _overlap(search: LineSearch, unit: Unit, region: Region) -> bool:
    """Whether a unit and a region share lines on the newer side."""
    _, _, c, d = search.edits.block(unit)
    first, last = region.after
    return search.edits.path_of(unit) == region.file and first <= d and c < last


def _lines_found(
    search: LineSearch, files: Finding, core: Candidate, along: Candidate, fine: Refined | None, forth: Advanced
) -> Finding:
    """The finding on the regions in those files, narrowed to the lines that matter."""
    back, *_ = files.proofs
    regions = fine.regions if fine is not None else search.edits.regions(core)
    return evolve(
        files,
        level=Level.REGION,
        files=tuple(sorted({region.file for region in regions})),
        regions=regions,
        proofs=(fine.proof if fine is not None else back, forth.proof),
        candidates=sum(map(search.edits.is_region, search.all)),
        runs=fine.runs if fine is not None else 0,
        unresolved=0,
        needs=search.edits.regions(forth.needs),
        reverted_along=search.edits.regions(along) if fine is None else (),
    )


def _into_the_rest(search: LineSearch, reduced: Reduced) -> tuple[LineSearch, Reduced]:
    """Continue the search with each unused file as a unit, because the unit of all of them is part of the result."""
    rest = {
        unit: paths for unit, paths in search.exchange.units.items() if set(paths) <= set(search.edits.wholes[REST])
    }
    wholes = {unit: paths for unit, paths in search.edits.wholes.items() if unit != REST} | rest
    edits = evolve(search.edits, wholes=wholes)
    consistency = Consistency(edits, search.consistency.ties)
    weights = {unit: search.weights.get(unit, 1.0) for unit in (*sorted(reduced.units - {REST}), *rest)}
    split = evolve(search, edits=edits, consistency=consistency, weights=weights)
    found = split.pursue(weights, most=_MOST)
    if found.shown is None:
        found = evolve(found, shown=reduced.shown)
    return split, found


def _apart(search: LineSearch, reduced: Reduced) -> Reduced:
    """Reduce several regions to fewer, if a run shows that these are sufficient without those tied to them.

    It tries the regions that no other one needs, then the most likely one alone; not those that the search has tried
    in vain.
    """
    flipped = search.sides.before.verdict
    if len(reduced.units) < 2 or not all(map(search.edits.is_region, reduced.units)):
        return reduced
    likeliest = frozenset({max(sorted(reduced.units), key=lambda unit: search.weights.get(unit, 0.0))})
    tried = [
        fewer
        for fewer in dict.fromkeys((_core(search, reduced.units), likeliest))
        if fewer != reduced.units and (fewer not in reduced.told or reduced.told[fewer][0] is flipped)
    ]
    for count, fewer in enumerate(tried, 1):
        sentence = reverted_in_words(search, fewer)
        proof = search.trials.proof(sentence, search.reverted(fewer), flipped)
        if proof.holds:
            return evolve(
                reduced,
                units=fewer,
                shown=proof.observation,
                unproven=frozenset(),
                is_minimal=reduced.is_minimal or len(fewer) == 1,
                runs=reduced.runs + count,
            )
    return evolve(reduced, runs=reduced.runs + len(tried))


def _core(search: LineSearch, units: Candidate) -> Candidate:
    """The units of a set that no other one of them needs; units that need each other are kept."""
    needs = {unit: search.consistency.reverted({unit}) for unit in units}
    core = {
        unit
        for unit in units
        if not any(unit in needs[other] and other not in needs[unit] for other in units if other != unit)
    }
    return frozenset(core) or units


def _run_whole(search: LineSearch, units: Candidate) -> Observation | None:
    """The run with these units reverted; None if it does not remove the difference."""
    proof = search.trials.proof(reverted_in_words(search, units), search.reverted(units), search.sides.before.verdict)
    return proof.observation if proof.holds else None


def _notes(search: LineSearch, reduced: Reduced) -> tuple[str, ...]:
    """Notes on what the search could not show."""
    named = frozenset(search.names({unit}) for unit in reduced.unproven)
    told = search.trials.notes(evolve(reduced, unproven=named))
    return (f"{told[0]}{_out_of_time(search)}", *told[1:]) if reduced.gave_up else told


def _open(search: LineSearch, reduced: Reduced) -> str:
    """A note on why nothing smaller than the package was proved."""
    count = len(search.exchange.units)
    names = listed(change.name for change in search.exchange.package.packages)
    if is_not_mixable(search, reduced):
        tried = f"{reduced.unresolved} of {len(reduced.told)}"
        return (
            f"its files were not told apart: {names} has compiled files, and {tried} "
            "mixtures of them with Python files of the other release could not be judged"
        )
    return f"none of its {count} files was shown to make the difference in {reduced.runs} runs{_out_of_time(search)}"


def _out_of_time(search: LineSearch) -> str:
    """What to do if the time budget ran out; "" if it did not."""
    until, seconds = search.trials.until, search.trials.plan.question.time_s
    if until is None or time.monotonic() < until:
        return ""
    more = f"{seconds * 3 / 60:.0f}m"
    return f"; the {told_duration(seconds)} were up, and the same command with --time {more} goes on where it stopped"
