"""The file and region levels: one search over the changed regions and files of a package, proved in both directions.

It reverts sets of edits in the newer environment, each with everything tied to it, until no smaller set removes the
difference. The result is narrowed to the lines that matter (`refining`), and added to the older environment with the
edits that it needs there. What its runs show is proved in fresh processes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable

from attrs import evolve

from harness.culprit.advancing import (
    Advanced,
    added_first,
    advance,
    advanced,
    advanced_alone,
    belongs,
    counted_besides,
    run_whole,
)
from harness.culprit.cause import causes_of
from harness.culprit.clues import message_of, parts_of, used_units
from harness.culprit.code_search import (
    COMPILED,
    REST,
    CodeSearch,
    fewest,
    file_units,
    files_of,
    opened,
    prepared,
    reverted_in_words,
    warmed,
    watched,
)
from harness.culprit.compiled import compiled_cause, compiled_that_ran, few, removed_from_compiled
from harness.culprit.edits import Unit, Units
from harness.culprit.proofs import Trials
from harness.culprit.put_back import put_back
from harness.culprit.refining import Refined, refined
from harness.culprit.sides import Exchange, Sides
from harness.culprit.subsets import OutOfTime, Reduced
from harness.model import Observation, Verdict
from harness.model.culprit import MOST_BESIDES, Finding, Level, Region
from harness.model.text import counted, listed
from harness.question.parsing import duration_in_words

_FEW = 3


def find_lines(trials: Trials, sides: Sides, package: Finding, until: Level) -> tuple[Finding, ...]:
    """Find the files that make the difference, and the regions if `until` is deep enough.

    Returns () if no files differ or they can't be exchanged. If nothing smaller than the package could be proved, the
    only finding is the package itself, with a note that says why.
    """
    exchange = Exchange.of(trials.prober, sides, package)
    if exchange is None or not exchange.units:
        return ()
    fresh = [proof.observation for proof in package.proofs if proof.observation is not None]
    seconds = _limit(trials, sides, fresh)
    trials = evolve(trials.for_mixtures(sides, package.proofs), until=time.monotonic() + seconds)
    if findings := put_back(trials, sides, exchange, until):
        return findings
    trials.repeat_beside(1)  # no lane is needed while the sources are parsed
    sides, traced_files = watched(trials, sides, exchange)
    used = used_units(exchange.units, sides)
    names = listed(change.name for change in package.packages)
    trials.begin(
        Level.REGION if until.depth >= Level.REGION.depth else Level.FILE,
        f"{len(exchange.units)} files of {names} differ, {len(used)} of them ran: which lines make the difference? "
        f"(at most {duration_in_words(seconds)})",
    )
    compiled, is_mixable = compiled_cause(CodeSearch.uncut(trials, sides, exchange, used))
    if compiled is not None:
        return (compiled,)
    try:
        search, traced = prepared(trials, sides, exchange, used, traced_files)
        if not is_mixable and (removed := removed_from_compiled(search)) is not None:
            return (removed,)
        with warmed(search) as search:
            result = _findings(search, fewest(search, only_in_parts=not is_mixable), package, until, traced)
            if differently := _passed_differently(search, result[-1]):
                search = evolve(search, trials=evolve(search.trials, judge=search.trials.judge.strictly()))
                alike = _findings(search, fewest(search, only_in_parts=not is_mixable), package, until, traced)
                if alike[-1].level is not Level.PACKAGE:
                    return alike
                note = f"with these lines reverted, it {differently}"
                return tuple(evolve(finding, notes=(*finding.notes, note)) for finding in result)
            return result
    except OutOfTime:
        note = f"{_out_of_time(seconds)}; the {len(exchange.units)} files that differ are not compared yet"
        return (evolve(package, notes=(*package.notes, note)),)


def _passed_differently(search: CodeSearch, finding: Finding) -> str:
    """How the run that shows a culprit one way only passed, without what all passing releases print; else ""."""
    shown = [proof.observation for proof in finding.proofs if proof.holds and proof.observation is not None]
    if finding.level is Level.PACKAGE or len(shown) != 1:
        return ""
    strict = search.trials.judge.strictly()(shown[0])
    return strict.reason if strict.verdict is Verdict.SKIP else ""


_LIKELIEST = 2  # files that are named where the time ran out
_LEAST_S, _MOST_S, _RUNS = 120.0, 600.0, 40


def _limit(trials: Trials, sides: Sides, fresh: Iterable[Observation] = ()) -> float:
    """The time for the search in seconds: as asked, else two minutes, or the time of 40 runs up to ten minutes."""
    limit = trials.question.policy.time_s
    runs = (sides.before.observation, sides.after.observation, *fresh)
    run = max(run.duration_s for run in runs)
    return limit if limit is not None else min(max(_LEAST_S, math.ceil(_RUNS * run / 60) * 60.0), _MOST_S)


def _findings(search: CodeSearch, reduced: Reduced, package: Finding, until: Level, traced: int) -> tuple[Finding, ...]:
    """The findings from a search: its result is narrowed further and proved in the other direction."""
    spent = [reduced]
    if REST in reduced.units and not search.is_over:
        search, reduced = _into(search, reduced, frozenset({REST}))
        spent.append(reduced)
    if reduced.shown is not None and not search.is_over and (files := _unread(search, reduced)):
        search, reduced = _into(search, reduced, files)
        spent.append(reduced)
    if reduced.shown is None and reduced.is_minimal and len(files_of(search, reduced.units)) <= _FEW:
        # Nothing smaller was sufficient, but all of it is only a few files.
        reduced = evolve(reduced, shown=run_whole(search, reduced.units))
    if reduced.shown is None:
        reduced = evolve(
            reduced, runs=sum(result.runs for result in spent), unresolved=sum(result.unresolved for result in spent)
        )
        return (evolve(package, notes=(*package.notes, _unknown(search, reduced), *_open(search, reduced))),)
    if len(_core(search, reduced.units)) > MOST_BESIDES and not search.is_over:
        fewer = added_first(search, reduced)
        if fewer is not None and len(fewer.units) < len(reduced.units):
            spent.append(reduced := fewer)
    core, fine, forth = _both_ways(search, reduced, until)
    instead = _instead(search, core, forth, spent)
    if instead is not None:
        core, fine, forth = _both_ways(search, reduced := instead, until)
    finding = evolve(
        _file_finding(search, reduced, core, forth, reduced.units - core if fine is None else frozenset()),
        runs=sum(result.runs for result in spent) + forth.runs + traced,
        unresolved=sum(result.unresolved for result in spent),
    )
    places = {(search.edits.path_of(unit), search.edits.function(unit)) for unit in core}
    if len(places) > MOST_BESIDES and not finding.is_proved:
        notes = _together(search, core, finding), *finding.notes
        is_few = len(finding.files) <= _FEW
        return (evolve(finding, notes=notes) if is_few else evolve(package, notes=(*package.notes, *notes)),)
    if until.depth < Level.REGION.depth or not all(map(search.edits.is_region, core)):
        return (finding,)
    return finding, _region_finding(search, finding, core, reduced.units - core, fine, forth)


def _both_ways(search: CodeSearch, reduced: Reduced, until: Level) -> tuple[Units, Refined | None, Advanced]:
    """The found regions that matter, their lines if narrowed further, and the proof in the older environment."""
    core, fine = _core(search, reduced.units), None
    if until.depth >= Level.REGION.depth and all(map(search.edits.is_region, core)) and not search.is_late:
        likeliest = core
        core, fine = _narrowed(search, reduced.units, core)
        ranked = sorted(core, key=lambda unit: (-search.weights.get(unit, 0.0), unit))[:_FEW]
        for part in dict.fromkeys((likeliest, *(frozenset({unit}) for unit in ranked))) if fine is None else ():
            alone = advanced_alone(search, part, core) if part < core else None
            if alone is not None and (part == likeliest or _is_needless(search, core - part, part)):
                return part, None, alone
    return core, fine, advanced(search, core, reduced.units)


def _is_needless(search: CodeSearch, units: Units, part: Units) -> bool:
    """Whether the rest of a culprit does not make the difference in the older environment, or can't without `part`."""
    if not part.isdisjoint(search.consistency.advanced(units)):
        return True
    return not search.trials.proof_if_likely(advance(search, units)).holds


def _instead(search: CodeSearch, core: Units, forth: Advanced, spent: list[Reduced]) -> Reduced | None:
    """Search among the edits that the found lines (`core`) need, because these make the difference without the lines.

    The found lines may have removed the bug only by breaking the mixture in a way that hides it. Returns None if
    reverting the needed edits does not remove the difference; `spent` gets each search.
    """
    if forth.instead is None:
        return None
    units = search.consistency.reverted(forth.needs)
    result = search.reduced({unit: search.weights.get(unit, 1.0) for unit in units - core or units})
    spent.append(result)
    if result.shown is not None:
        return result
    return evolve(result, units=units, shown=forth.instead, is_minimal=result.is_minimal or len(units) == 1)


def _file_finding(search: CodeSearch, reduced: Reduced, core: Units, forth: Advanced, along: Units) -> Finding:
    """The finding on the files that make the difference, with both proofs; `along` was reverted beside the culprit."""
    exchange = search.exchange
    sentence, probe = reverted_in_words(search, reduced.units), search.reverted(reduced.units)
    back = search.trials.proof_by(reduced.shown, sentence, probe, search.sides.before.verdict)
    files = files_of(search, core | (forth.named_needs if belongs(search, core, forth) else frozenset()))
    packages = exchange.owning(exchange.paths(file_units(search, core)))
    is_tied = len(packages) > 1 and core <= reduced.unproven  # no unit was left out in a run that could be judged
    return Finding(
        Level.FILE,
        packages,
        files=files,
        proofs=(counted_besides(back, along), forth.proof),
        candidates=len(exchange.units),
        is_minimal=reduced.is_minimal and not is_tied,
        needed_files=tuple(name for name in files_of(search, forth.named_needs) if name not in files),
        notes=(*_notes(search, reduced), *forth.notes),
    )


def _narrowed(search: CodeSearch, units: Units, core: Units) -> tuple[Units, Refined | None]:
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
        return (regions & search.suspects) or core, None
    owners = frozenset(unit for unit in regions if any(_overlap(search, unit, region) for region in fine.regions))
    return owners or core, fine


def _overlap(search: CodeSearch, unit: Unit, region: Region) -> bool:
    """Whether a unit and a region share lines on the newer side."""
    _, _, c, d = search.edits.block(unit)
    first, last = region.after
    return search.edits.path_of(unit) == region.file and first <= d and c < last


def _region_finding(
    search: CodeSearch, files: Finding, core: Units, along: Units, fine: Refined | None, forth: Advanced
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
        needs=search.edits.regions(forth.named_needs),
        reverted_along=search.edits.regions(along) if fine is None else (),
        causes=causes_of(*(search.edits, core) if fine is None else (fine.edits, fine.units), message_of(search.sides)),
    )


def _unread(search: CodeSearch, reduced: Reduced) -> frozenset[Unit]:
    """The Python files of a result that both sides have and that were not cut into regions."""
    before, after = search.edits.before.digests, search.edits.after.digests
    return frozenset(unit for unit in reduced.units if unit.endswith(".py") and unit in before and unit in after)


def _into(search: CodeSearch, reduced: Reduced, wholes: frozenset[Unit]) -> tuple[CodeSearch, Reduced]:
    """Continue the search with the regions of some whole files of its result, or with each of the unused files."""
    cut = opened(search, wholes)
    units = (cut.all - search.all) | (cut.all & reduced.units)
    weights = {unit: cut.weights[unit] for unit in sorted(units)}
    result = cut.reduced(weights, parts=() if REST in wholes else parts_of(cut.edits, weights))
    if result.shown is None:
        result = evolve(result, shown=reduced.shown)
    return cut, result


def _core(search: CodeSearch, units: Units) -> Units:
    """The units of a set that no other one of them needs; units that need each other are kept."""
    needs = {unit: search.consistency.reverted({unit}) for unit in units}
    core = {
        unit
        for unit in units
        if not any(unit in needs[other] and other not in needs[unit] for other in units if other != unit)
    }
    return frozenset(core) or units


def _notes(search: CodeSearch, reduced: Reduced) -> tuple[str, ...]:
    """Notes on what the search could not show."""
    named = frozenset(search.names({unit}) for unit in reduced.unproven)
    notes = evolve(reduced, unproven=named).notes
    return notes if reduced.is_minimal else (*notes, *_open(search, reduced))


def _unknown(search: CodeSearch, reduced: Reduced) -> str:
    """A note on why nothing smaller than the package was proved."""
    note = f"could not tell which of its {len(search.exchange.units)} files makes the difference in {reduced.runs} runs"
    if COMPILED in search.all:
        note += f": it may be several changes together, or in {few(compiled_that_ran(search))}"
    return note


def _together(search: CodeSearch, core: Units, finding: Finding) -> str:
    """A note on a culprit in so many places that their names say no more than those of its files or package."""
    files = counted(len(finding.files), "file")
    likeliest = listed(_likeliest(search, core))
    return f"{counted(len(core), 'change')} in {files} make the difference together, the likeliest in {likeliest}"


def _likeliest(search: CodeSearch, units: Units) -> tuple[str, ...]:
    """The files of the likeliest units."""
    ordered = sorted(units, key=lambda unit: (-search.weights.get(unit, 0.0), unit))
    return tuple(dict.fromkeys(map(search.edits.path_of, ordered)))[:_LIKELIEST]


def _open(search: CodeSearch, reduced: Reduced) -> tuple[str, ...]:
    """A note on what is open, and on what to do, if the time ran out."""
    if not search.is_over:
        return ()
    flipped = search.sides.before.verdict
    cleared = frozenset[Unit]().union(
        *(units for units, (verdict, _) in reduced.tried.items() if verdict not in (flipped, Verdict.SKIP))
    )
    left = reduced.units - cleared
    count = f"{len(left)} of {counted(len(search.all), 'change')}"
    rest = f"; {count} are open, the likeliest in {listed(_likeliest(search, left))}" if left else ""
    return (_out_of_time(_limit(search.trials, search.sides)) + rest,)


def _out_of_time(seconds: float) -> str:
    """What to do where the time ran out."""
    longer = f"{math.ceil(seconds * 3 / 60)}m"
    return f"the time limit of {duration_in_words(seconds)} was reached (--time {longer} goes on where it stopped)"
