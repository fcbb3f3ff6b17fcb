"""From a package down to lines: one search over changed regions and files, whole change-sets first.

In the newer environment a set of edits is put back to the older release, with all that is tied to them, until nothing
smaller undoes the difference. What that leaves is narrowed to its own lines (`refining`), and added to the older
environment with what the ties say it needs. Files that the run did not use count as one, compiled files as another.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from attrs import evolve, field, frozen

from harness.culprit.consistency import Consistency
from harness.culprit.counterfactual import Trials, exchanged_in_words, places, versions
from harness.culprit.edits import Edits
from harness.culprit.evidence import Evidence, used_units
from harness.culprit.exchange import Exchange
from harness.culprit.forked_search import FRESH_FIRST, give_up, open_forks
from harness.culprit.pursuit import Pursuit
from harness.culprit.reduction import Candidate, Reduced
from harness.culprit.refining import Refined, refined
from harness.culprit.sides import METADATA, Sides
from harness.culprit.ties import Unit
from harness.model import Observation, Trace, Verdict
from harness.model.culprit import Finding, Level, Proof
from harness.model.words import listed
from harness.probe import Probe
from harness.request.durations import told_duration

REST = "files that the run did not use"
COMPILED = "compiled files"
_MOST = 40
_MOST_SKIPS = 3  # where Python and compiled files can't be mixed, that shows soon
_MOST_LESSONS = 12
_TRIES_FORTH = 4
_MOST_NEEDED = 14
_MOST_EVIDENCE, _SAME_FILE, _DECLARES = 10.0, 6.0, 4.0
_FEW = 3
_COMPILED_ENDINGS = (".so", ".pyd", ".dylib", ".dll", ".a", ".lib")


@frozen
class _Search:
    """What one search for lines stands on; `all` are its units."""

    trials: Trials
    sides: Sides
    exchange: Exchange
    edits: Edits
    consistency: Consistency
    weights: dict[Unit, float] = field(repr=False)

    @property
    def all(self) -> frozenset[Unit]:
        """Every unit."""
        return self.edits.all

    def names(self, units: Collection[Unit]) -> str:
        """What some units are called."""
        regions = self.edits.regions(units)
        wholes = sorted(unit for unit in units if not self.edits.is_region(unit))
        told = [place for place in (places(regions),) if place] + wholes
        return listed(told) if told else "nothing"

    def reverted(self, old: Candidate) -> Probe:
        """The newer environment with these units as before."""
        label = f"{self.names(old)} as in {versions(self.exchange.package.packages, newer=False)}"
        return self.trials.mixed(self.sides.after, self.consistency.mixture(old, label, newer_base=True))

    def advanced(self, new: Candidate) -> Probe:
        """The older environment with these units as after."""
        label = f"{self.names(new)} as in {versions(self.exchange.package.packages, newer=True)}"
        mixture = self.consistency.mixture(self.all - new, label, newer_base=False)
        return self.trials.mixed(self.sides.before, mixture)

    def learn(self, moved: Candidate, observation: Observation, *, reverting: bool) -> bool:
        """Take from a skip what it teaches."""
        if self.consistency.lessons >= _MOST_LESSONS or not observation.outcome.ran:
            return False
        return self.consistency.learn(self.consistency.taught(moved, observation, reverting=reverting))

    def pursue(self, weights: dict[Unit, float], *, most: int) -> Reduced:
        """The smallest set of units whose reversal undoes the difference."""
        return Pursuit(
            trials=self.trials,
            flipped=self.sides.before.verdict,
            weights=weights,
            closed=self.consistency.reverted,
            roughly=lambda unit: self.consistency.ties.closed({unit}),
            probe_of=self.reverted,
            label_of=lambda units: f"reverted: {self.names(units)}",
            learn=lambda moved, observation: self.learn(moved, observation, reverting=True),
            most=most,
            most_skips=_MOST_SKIPS if COMPILED in self.edits.wholes else most,
            until=self.trials.until,
        ).run()


@frozen
class _Forth:
    """The proof the other way, what it needed besides, and the runs that it took."""

    proof: Proof
    needs: Candidate
    runs: int
    ran_alone: bool = False
    notes: tuple[str, ...] = ()


def find_lines(trials: Trials, sides: Sides, package: Finding, until: Level) -> tuple[Finding, ...]:
    """The files, and with `until` the regions, that make the difference; () where the sides can't be taken apart.

    Where nothing smaller than the package was shown, the one finding is the package's own, with what is open.
    """
    exchange = Exchange.of(trials, sides, package)
    if exchange is None or not exchange.units:
        return ()
    seconds = trials.plan.question.time_s
    trials = evolve(trials, until=time.monotonic() + seconds)
    exchange = evolve(exchange, trials=trials)
    used = used_units(exchange.units, sides)
    names = listed(change.name for change in package.packages)
    trials.begin(
        Level.REGION if until.depth >= Level.REGION.depth else Level.FILE,
        f"{len(exchange.units)} files of {names} differ, {len(used)} of them ran: which lines make the difference? "
        f"(at most {_MOST} runs and {told_duration(seconds)})",
    )
    search, traced = _prepared(trials, sides, exchange, used)
    with ExitStack() as stack:
        search, reduced = _pursued(search, used, stack)
        return _findings(search, reduced, package, until, traced)


def _pursued(search: _Search, used: frozenset[Unit], stack: ExitStack) -> tuple[_Search, Reduced]:
    """The smallest set that undoes the difference: fresh processes first, then forks; what it ends with is fresh."""
    trials = search.trials
    few = search.pursue(search.weights, most=FRESH_FIRST)
    if not few.gave_up or trials.is_late:
        return search, few
    files = [path for unit in used for path in search.exchange.units[unit] if path.endswith(".py")]
    whole = search.reverted(frozenset(unit for unit in search.all if search.edits.path_of(unit) in used))
    forks = open_forks(trials, search.sides, files, whole, stack)
    if forks is None:
        return search, search.pursue(search.weights, most=_MOST)
    forked = evolve(search, trials=evolve(trials, forks=forks))
    found = forked.pursue(search.weights, most=_MOST)
    if found.shown is None or not found.shown.machine.get("forked"):
        return forked, found
    flipped = search.sides.before.verdict
    proof = trials.proof(_sentence(search, found.units), search.reverted(found.units), flipped)
    if proof.holds:
        return forked, evolve(found, shown=proof.observation)
    give_up(trials, forks)
    return search, search.pursue(search.weights, most=_MOST)


def _findings(search: _Search, reduced: Reduced, package: Finding, until: Level, traced: int) -> tuple[Finding, ...]:
    """What a search came to, narrowed further and shown the other way."""
    trials, sides, exchange = search.trials, search.sides, search.exchange
    spent = [reduced]
    if REST in reduced.units:
        search, reduced = _into_the_rest(search, reduced)
        spent.append(reduced)
    if reduced.shown is None and not reduced.gave_up and len(_files(search, reduced.units)) <= _FEW:
        # All of it is no more than a few files: nothing smaller was enough.
        reduced = evolve(reduced, shown=_run_whole(search, reduced.units))
    if reduced.shown is None:
        return (evolve(package, notes=(*package.notes, _open(search, reduced))),)
    reduced = _apart(search, reduced)
    core = _core(search, reduced.units)
    forth = _forth(search, core, reduced.units)
    runs = sum(one.runs for one in spent) + forth.runs + traced
    unresolved = sum(one.unresolved for one in spent)
    along = reduced.units - core
    alone = search.reverted(reduced.units)
    back = trials.shown(_sentence(search, reduced.units), reduced, sides.before.verdict, lambda: alone)
    files = _files(search, core | (forth.needs if _belongs(search, core, forth) else frozenset()))
    notes = (*_notes(search, reduced), *forth.notes)
    needed_files = tuple(name for name in _files(search, forth.needs) if name not in files)
    found = Finding(
        Level.FILE,
        exchange.owning(exchange.paths(_file_units(search, core))),
        files=files,
        proofs=(back, forth.proof),
        candidates=len(exchange.units),
        runs=runs,
        unresolved=unresolved,
        is_minimal=reduced.is_minimal,
        needed_files=needed_files,
        notes=notes,
    )
    if until.depth < Level.REGION.depth or not all(map(search.edits.is_region, core)):
        return (found,)
    fine = _refined(search, core, along)
    regions = fine.regions if fine is not None else search.edits.regions(core)
    if fine is not None:
        back = fine.proof
    lines = evolve(
        found,
        level=Level.REGION,
        files=tuple(sorted({region.file for region in regions})),
        regions=regions,
        proofs=(back, forth.proof),
        candidates=sum(map(search.edits.is_region, search.all)),
        runs=fine.runs if fine is not None else 0,
        unresolved=0,
        needs=search.edits.regions(forth.needs),
    )
    return found, lines


def _prepared(trials: Trials, sides: Sides, exchange: Exchange, used: frozenset[Unit]) -> tuple[_Search, int]:
    """Both texts read while both sides run once more under a trace; and how many runs that took."""
    units = _units(exchange, used)
    wanted = [path for unit in used for path in exchange.units[unit] if path.endswith(".py")]
    with ThreadPoolExecutor(1, thread_name_prefix="ties") as desk:
        reading = desk.submit(_read, exchange, units, used)
        traces: list[Trace | None] = []
        if COMPILED not in units and (len(exchange.units) > 1 or _is_worth_a_trace(exchange)):
            traces = [trials.traced(side, wanted) for side in (sides.before, sides.after)]
        edits, consistency = reading.result()
    before, after = traces or (None, None)
    evidence = Evidence(sides, trials.plan.repro.source, before, after)
    return _Search(trials, sides, exchange, edits, consistency, evidence.weights(edits)), len(traces)


def _read(exchange: Exchange, units: dict[Unit, tuple[str, ...]], used: frozenset[Unit]) -> tuple[Edits, Consistency]:
    edits = Edits.of(units, exchange.before, exchange.after, used)
    return edits, Consistency(edits, edits.ties())


def _is_worth_a_trace(exchange: Exchange) -> bool:
    """Whether the one file that differs has more than one region."""
    edits = Edits.of(exchange.units, exchange.before, exchange.after, exchange.units)
    return len(edits.all) > 1


def _units(exchange: Exchange, used: frozenset[Unit]) -> dict[Unit, tuple[str, ...]]:
    """Units of the search: what was used one by one, compiled files as one, and all the others as one."""
    found: dict[Unit, tuple[str, ...]] = {}
    compiled: list[str] = []
    rest: list[str] = []
    for unit, paths in exchange.units.items():
        if any(path.endswith(_COMPILED_ENDINGS) or ".so." in path for path in paths):
            compiled += paths
        elif unit in used:
            found[unit] = paths
        else:
            rest += paths
    if compiled:
        found[COMPILED] = tuple(compiled)
    if rest:
        found[REST] = tuple(rest)
    return found


def _into_the_rest(search: _Search, reduced: Reduced) -> tuple[_Search, Reduced]:
    """The files that the run did not use one by one, where they are part of what was found."""
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


def _open(search: _Search, reduced: Reduced) -> str:
    """Why nothing smaller than the package was shown."""
    count = len(search.exchange.units)
    names = listed(change.name for change in search.exchange.package.packages)
    if COMPILED in search.edits.wholes and reduced.gave_up and reduced.unresolved >= reduced.runs:
        return (
            f"its files were not told apart: {names} has compiled files, and in {reduced.runs} runs no mixture of them "
            "with Python files of the other release could be judged"
        )
    return f"none of its {count} files was shown to make the difference in {reduced.runs} runs{_out_of_time(search)}"


def _out_of_time(search: _Search) -> str:
    """What to do where the time was up, "" where it was not."""
    until, seconds = search.trials.until, search.trials.plan.question.time_s
    if until is None or time.monotonic() < until:
        return ""
    more = f"{seconds * 3 / 60:.0f}m"
    return f"; the {told_duration(seconds)} were up, and the same command with --time {more} goes on where it stopped"


def _notes(search: _Search, reduced: Reduced) -> tuple[str, ...]:
    """What the search could not show."""
    told = search.trials.notes(reduced)
    return (f"{told[0]}{_out_of_time(search)}", *told[1:]) if reduced.gave_up else told


def _apart(search: _Search, reduced: Reduced) -> Reduced:
    """The likeliest of several regions alone, where it can stand apart though others are tied to it."""
    if len(reduced.units) < 2 or not all(map(search.edits.is_region, reduced.units)):
        return reduced
    likeliest = frozenset({max(sorted(reduced.units), key=lambda unit: search.weights.get(unit, 0.0))})
    proof = search.trials.proof(_sentence(search, likeliest), search.reverted(likeliest), search.sides.before.verdict)
    if not proof.holds:
        return reduced
    return evolve(
        reduced, units=likeliest, shown=proof.observation, unproven=frozenset(), is_minimal=True, runs=reduced.runs + 1
    )


def _core(search: _Search, units: Candidate) -> Candidate:
    """Those of a set that are there for themselves, and not because another one needs them."""
    needs = {unit: search.consistency.reverted({unit}) for unit in units}
    core = {
        unit
        for unit in units
        if not any(unit in needs[other] and other not in needs[unit] for other in units if other != unit)
    }
    return frozenset(core) or units


def _sentence(search: _Search, units: Candidate) -> str:
    return exchanged_in_words(search.exchange.package.packages, search.names(units), newer_base=True)


def _sentence_forth(search: _Search, core: Candidate, besides: Candidate) -> str:
    what = f"{search.names(core)} and, as it needs it, {search.names(besides)}" if besides else search.names(core)
    return exchanged_in_words(search.exchange.package.packages, what, newer_base=False)


def _forth(search: _Search, core: Candidate, units: Candidate) -> _Forth:
    """Add the culprit to the older environment, with what the ties say it needs; a skip may name one more."""
    trials, sides = search.trials, search.sides
    proof: Proof | None = None
    runs, ran_alone = 0, False
    tried: set[Candidate] = set()
    attempts: list[Candidate] = [core, core, core, units]
    for start in attempts:
        new = search.consistency.advanced(start)
        if new in tried:
            continue
        tried.add(new)
        runs += 1
        besides = new - core
        one = trials.proof(_sentence_forth(search, core, besides), search.advanced(new), sides.after.verdict)
        if proof is None or one.holds:
            proof = one
        if one.holds:
            return _Forth(one, besides, runs, ran_alone)
        ran_alone = ran_alone or one.verdict is sides.before.verdict
        if one.observation is not None and one.verdict is Verdict.SKIP:
            search.learn(new, one.observation, reverting=False)
    needed = _needed(search, core)
    runs += needed.runs
    if needed.shown is not None:
        besides = needed.units
        sentence = _sentence_forth(search, core, besides)
        along = search.advanced(besides | core)
        return _Forth(trials.shown(sentence, needed, sides.after.verdict, lambda: along), besides, runs, ran_alone)
    if proof is None:
        proof = Proof("", sides.after.verdict, Verdict.SKIP, "not tried")
    note = f"{search.names(core)} alone does not make the difference; what else it needs was not found"
    return _Forth(proof, frozenset(), runs, ran_alone, (note,))


def _belongs(search: _Search, core: Candidate, forth: _Forth) -> bool:
    """Whether the other files that the culprit needs are a part of it.

    So it is where the older environment ran well with the culprit alone, and where all of them are new.
    """
    own = {search.edits.path_of(unit) for unit in core}
    others = {unit for unit in forth.needs if search.edits.path_of(unit) not in own}
    new = all(
        not search.edits.is_region(unit)
        and not any(path in search.edits.before.digests for path in search.edits.wholes[unit])
        for unit in others
    )
    return bool(others) and (forth.ran_alone or new)


def _run_whole(search: _Search, units: Candidate) -> Observation | None:
    """All of a few files put back: what it came to, None where it could not be judged as expected."""
    proof = search.trials.proof(_sentence(search, units), search.reverted(units), search.sides.before.verdict)
    return proof.observation if proof.holds else None


def _needed(search: _Search, core: Candidate) -> Reduced:
    """What else must be advanced for the culprit to make the difference, looked for with few runs."""
    others = search.all - core
    weights = {unit: _usefulness(search, core, unit) for unit in sorted(others)}
    if not weights:
        return Reduced(frozenset(), True, frozenset(), 0, 0, 0, None, False)
    with_core = search.consistency.advanced
    return Pursuit(
        trials=search.trials,
        flipped=search.sides.after.verdict,
        weights=weights,
        closed=lambda units: with_core(units | core) - core,
        roughly=lambda unit: frozenset({unit}),
        probe_of=lambda units: search.advanced(units | core),
        label_of=lambda units: f"advanced: {search.names(core)} with {search.names(units)}",
        learn=lambda moved, observation: search.learn(moved | core, observation, reverting=False),
        most=_MOST_NEEDED,
        until=search.trials.until,
    ).run()


def _usefulness(search: _Search, core: Candidate, unit: Unit) -> float:
    """How likely an edit is what a culprit needs: declarations of its own file, and lines with its names."""
    edits = search.edits
    weight = min(search.weights.get(unit, 1.0), _MOST_EVIDENCE)
    if not edits.is_region(unit):
        return weight
    path, function = edits.path_of(unit), edits.function(unit)
    if path in {edits.path_of(one) for one in core}:
        weight *= _SAME_FILE
    if not function or not edits.differences[path].is_function(function):
        weight *= _DECLARES
    if any(edits.words(unit) & edits.words(one) for one in core):
        weight *= 2
    return weight


def _refined(search: _Search, core: Candidate, along: Candidate) -> Refined | None:
    """The lines inside what was found, where they alone undo the difference."""
    return refined(
        search.trials,
        search.edits,
        core,
        along,
        base=search.sides.after,
        expected=search.sides.before.verdict,
        packages=search.exchange.package.packages,
    )


def _file_units(search: _Search, units: Candidate) -> list[Unit]:
    """The units of difference that some edits belong to."""
    found = {search.edits.path_of(unit) for unit in units}
    if COMPILED in found:
        compiled = set(search.edits.wholes[COMPILED])
        found |= {unit for unit, paths in search.exchange.units.items() if set(paths) <= compiled}
    return sorted(unit for unit in found if unit in search.exchange.units)


def _files(search: _Search, units: Candidate) -> tuple[str, ...]:
    """The files of some edits for a person: metadata as one, compiled files as one."""
    found: list[str] = []
    for unit in {search.edits.path_of(unit) for unit in units}:
        if unit.startswith(METADATA) or unit in (COMPILED, REST):
            found.append(unit)
        elif unit in search.edits.wholes:
            found += search.edits.wholes[unit]
        else:
            found.append(unit)
    return tuple(sorted(dict.fromkeys(found)))
