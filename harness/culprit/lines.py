"""From a package down to lines: one search over changed regions and files, whole change sets first.

In the newer environment a set of edits is reverted with everything tied to it, until nothing smaller removes the
difference. The result is narrowed to its own lines (`refining`), and added to the older environment with what the ties
say it needs.
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
from harness.request.durations import told_duration

_MOST = 40
_FEW = 3


def find_lines(trials: Trials, sides: Sides, package: Finding, until: Level) -> tuple[Finding, ...]:
    """The files, and with `until` the regions, that make the difference; () if files can't be exchanged.

    If nothing smaller than the package was shown, the only finding is the package itself, with the open questions.
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
    search, traced = prepared(trials, sides, exchange, used)
    with ExitStack() as stack:
        search, reduced = pursued(search, used, stack, most=_MOST)
        return _findings(search, reduced, package, until, traced)


def _strict(trials: Trials, sides: Sides, package: Finding) -> Judge:
    """The judge of mixtures; the plain one where the bug's message is another one in each run."""
    failing = sides.after if sides.after.verdict is Verdict.BAD else sides.before
    strict = trials.judge.for_mixtures(failing.observation)
    again = [one.observation for one in package.proofs if one.verdict is Verdict.BAD and one.observation is not None]
    return strict if all(strict(seen).verdict is Verdict.BAD for seen in again) else trials.judge


def _findings(search: LineSearch, reduced: Reduced, package: Finding, until: Level, traced: int) -> tuple[Finding, ...]:
    """The result of a search, narrowed further and shown in the other direction."""
    spent = [reduced]
    if REST in reduced.units and not is_not_mixable(search, reduced):
        search, reduced = _into_the_rest(search, reduced)
        spent.append(reduced)
    if reduced.shown is None and not reduced.gave_up and len(files_of(search, reduced.units)) <= _FEW:
        # All of it is no more than a few files: nothing smaller was enough.
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
    """The regions that matter of those that were found, the lines of them, and the proof in the older environment."""
    core, fine = _core(search, reduced.units), None
    if until.depth >= Level.REGION.depth and all(map(search.edits.is_region, core)):
        likeliest = core
        core, fine = _narrowed(search, reduced.units, core)
        if fine is None and likeliest < core and (alone := advanced_alone(search, likeliest, core)) is not None:
            return likeliest, None, alone
    return core, fine, advanced(search, core, reduced.units)


def _instead(search: LineSearch, reduced: Reduced, forth: Advanced) -> Reduced | None:
    """What the found lines needed, where that is the culprit: it makes the difference without them, both ways.

    A mixture may also pass because it is broken in a way that hides the bug.
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
    """The files that make the difference, with both proofs."""
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
    """The regions that matter, and the lines of them that do.

    Which of several regions are only needed by others is a guess from names until one of them was shown alone. So the
    lines of all are looked at, and without a run that tells them apart all of them are named.
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
    """Whether a unit has some of the newer lines of a region."""
    _, _, c, d = search.edits.block(unit)
    first, last = region.after
    return search.edits.path_of(unit) == region.file and first <= d and c < last


def _lines_found(
    search: LineSearch, files: Finding, core: Candidate, along: Candidate, fine: Refined | None, forth: Advanced
) -> Finding:
    """The lines in those files, narrowed to what matters of them."""
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
    """The unused files one by one, if they are part of the result."""
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
    """Fewer of several regions, if they work without the others tied to them.

    Regions that no other one needs are tried, then the most likely one alone.
    """
    if len(reduced.units) < 2 or not all(map(search.edits.is_region, reduced.units)):
        return reduced
    likeliest = frozenset({max(sorted(reduced.units), key=lambda unit: search.weights.get(unit, 0.0))})
    tried = [fewer for fewer in dict.fromkeys((_core(search, reduced.units), likeliest)) if fewer != reduced.units]
    for count, fewer in enumerate(tried, 1):
        sentence = reverted_in_words(search, fewer)
        proof = search.trials.proof(sentence, search.reverted(fewer), search.sides.before.verdict)
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
    """The units of a set that were chosen themselves, not because another one needs them."""
    needs = {unit: search.consistency.reverted({unit}) for unit in units}
    core = {
        unit
        for unit in units
        if not any(unit in needs[other] and other not in needs[unit] for other in units if other != unit)
    }
    return frozenset(core) or units


def _run_whole(search: LineSearch, units: Candidate) -> Observation | None:
    """The run with all of a few files reverted; None if it could not be judged as expected."""
    proof = search.trials.proof(reverted_in_words(search, units), search.reverted(units), search.sides.before.verdict)
    return proof.observation if proof.holds else None


def _notes(search: LineSearch, reduced: Reduced) -> tuple[str, ...]:
    """What the search could not show."""
    named = frozenset(search.names({unit}) for unit in reduced.unproven)
    told = search.trials.notes(evolve(reduced, unproven=named))
    return (f"{told[0]}{_out_of_time(search)}", *told[1:]) if reduced.gave_up else told


def _open(search: LineSearch, reduced: Reduced) -> str:
    """Why nothing smaller than the package was shown."""
    count = len(search.exchange.units)
    names = listed(change.name for change in search.exchange.package.packages)
    if is_not_mixable(search, reduced):
        return (
            f"its files were not told apart: {names} has compiled files, and {reduced.unresolved} of {reduced.runs} "
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
