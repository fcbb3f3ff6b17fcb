"""What the search for lines is based on: its units, their ties, the probe of a set of units, and what a set needs.

All files that the run did not use are one unit, all compiled files another. What a culprit needs to make the difference
in the older release is searched like the culprit itself, declarations in its file and lines with its names first.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial

from attrs import evolve, field, frozen

from harness.culprit.clues import LEAST, Clues, Pointers, failure_of, parts_of, used_units
from harness.culprit.edits import Edits, Unit, exchanged_in_words, places, versions
from harness.culprit.sides import METADATA, Exchange, Side, Sides
from harness.culprit.subsets import Candidate, Choices, Fewest, Lacking, Reduced, check_time
from harness.culprit.ties import Consistency, Ties, ties_of
from harness.culprit.trials import Claim, Trials
from harness.model import Trace, Verdict
from harness.model.culprit import Proof
from harness.model.text import listed
from harness.probing import Probe
from harness.probing.warm import WarmProber

REST = "files that the run did not use"
COMPILED = "compiled files"
_COMPILED_ENDINGS = (".so", ".pyd", ".dylib", ".dll", ".a", ".lib")
_MOST_READ = 300  # more files than that are read once it is known what ran
_TO_SEARCH = 0.8  # of the time; the rest is for proofs
LATE = "the time was over"
_MANY = 8  # for at most this many units, a few fresh runs cost less than a process to fork from


@frozen
class LineSearch:
    """A search for lines: its units, their ties and weights.

    `warm` is its prober if runs may be warm. `until` is the time on the monotonic clock at which the search ends, so
    that what it found can be proved before the limit of the trials.
    """

    trials: Trials
    sides: Sides
    exchange: Exchange
    edits: Edits
    consistency: Consistency
    weights: dict[Unit, float] = field(repr=False)
    clues: Clues | None = field(default=None, repr=False)
    warm: WarmProber | None = field(default=None, repr=False)
    until: float | None = None

    @classmethod
    def uncut(cls, trials: Trials, sides: Sides, exchange: Exchange, used: frozenset[Unit]) -> LineSearch:
        """A search whose files are all whole, and were not read."""
        edits = Edits.of(_units(exchange, used), exchange.before, exchange.after, ())
        return cls(trials, sides, exchange, edits, Consistency(edits, Ties()), {})

    @property
    def is_over(self) -> bool:
        """Whether the time to search is over."""
        return self.until is not None and time.monotonic() >= self.until

    @property
    def is_late(self) -> bool:
        """Whether the time to prove what was found is over, too."""
        return self.trials.until is not None and time.monotonic() >= self.trials.until

    @property
    def all(self) -> frozenset[Unit]:
        """All units."""
        return self.edits.all

    def names(self, units: Collection[Unit], *, newer: bool = True) -> str:
        """The places and names of some units, for display; lines are those of the newer or the older release."""
        regions = self.edits.regions(units)
        wholes = sorted(unit for unit in units if not self.edits.is_region(unit))
        told = [place for place in (places(regions, newer=newer),) if place] + wholes
        return listed(told) if told else "nothing"

    def reverted(self, old: Candidate) -> Probe:
        """A probe of the newer environment with these units reverted."""
        label = f"{self.names(old, newer=False)} as in {versions(self.exchange.package.packages, newer=False)}"
        return self.trials.mixed(self.sides.after, self.consistency.mixture(old, label, newer_base=True))

    def advanced(self, new: Candidate) -> Probe:
        """A probe of the older environment with these units advanced."""
        label = f"{self.names(new)} as in {versions(self.exchange.package.packages, newer=True)}"
        mixture = self.consistency.mixture(self.all - new, label, newer_base=False)
        return self.trials.mixed(self.sides.before, mixture)

    @property
    def suspects(self) -> frozenset[Unit]:
        """The regions that are likely to be the cause alone: no comments, and no imports that no evidence points to."""
        return frozenset(unit for unit in self.all if self.edits.is_region(unit) and self.weights[unit] >= LEAST)

    @property
    def parts(self) -> tuple[Candidate, ...]:
        """The parts to try alone, the likeliest first."""
        return parts_of(self.edits, self.weights)

    def fewest(
        self, weights: Mapping[Unit, float], *, parts: Sequence[Candidate] = (), only_in_parts: bool = False
    ) -> Reduced:
        """Find the smallest set of units whose reversal removes the difference; see `Fewest`."""
        choices = Choices(
            weights,
            self.reverted,
            lambda units: f"reverted: {self.names(units)}",
            closed=self.consistency.reverted,
            alone=self.consistency.reverted_alone,
            parts=parts,
        )
        wanted = self.sides.before.verdict
        return Fewest(self.trials, wanted, choices, until=self.until, only_in_parts=only_in_parts).run()

    def expect(self, side: Side, first: Iterable[Probe]) -> None:
        """Let the prober prepare for many runs with files of a side exchanged, those in `first` before others."""
        if self.warm is not None and len(self.all) > _MANY:
            homes = self.edits.homes
            used = [paths for unit, paths in self.edits.wholes.items() if unit not in (COMPILED, REST)]
            files = {*self.edits.differences, *homes, *homes.values()}.union(*used)
            python = [path for path in files if path.endswith(".py")]
            self.warm.expect(self.trials.mixed(side, None), side.verdict, python, first)


def watched(trials: Trials, sides: Sides, exchange: Exchange) -> tuple[Sides, frozenset[str]]:
    """The sides with the files that they used, and the files to trace in both.

    A command says only in a traced run which files it used, so both sides run once more, and all files are traced.
    """
    if any(side.observation.loaded for side in (sides.before, sides.after)):
        return sides, files_to_trace(exchange, used_units(exchange.units, sides))
    wanted = files_to_trace(exchange, frozenset(exchange.units))
    before, after = (
        evolve(side, observation=evolve(side.observation, loaded=run.loaded))
        for side, run in zip((sides.before, sides.after), trials.traced(sides, wanted), strict=True)
    )
    return Sides(before, after), wanted


def prepared(
    trials: Trials, sides: Sides, exchange: Exchange, used: frozenset[Unit], wanted: frozenset[str]
) -> tuple[LineSearch, int]:
    """Prepare a search for lines; returns it with the number of runs.

    Both sides run once more under a trace of the files in `wanted`. Of many files, only those are read in which a
    function ran, or that are in the traceback; the others stay whole until they are the culprit. Raises `OutOfTime`.
    """
    traces = [run.trace for run in trials.traced(sides, wanted)] if wanted else []
    cut = used if len(used) <= _MOST_READ else _that_called(exchange, sides, used, traces)
    check = partial(check_time, trials.until)
    edits = Edits.of(_units(exchange, used), exchange.before, exchange.after, cut, check)
    before, after = traces or (None, None)
    clues = Clues(sides, trials.scope.repro.source, before, after, Pointers.of(exchange, sides))
    check()
    consistency = Consistency(edits, ties_of(edits, clues.idle(edits)))
    check()
    search = LineSearch(trials, sides, exchange, edits, consistency, clues.weights(edits), clues)
    if trials.until is not None:
        now = time.monotonic()
        search = evolve(search, until=now + _TO_SEARCH * (trials.until - now))
    return search, len(traces)


def opened(search: LineSearch, units: frozenset[Unit]) -> LineSearch:
    """The search with these whole files cut into regions, as far as they are text; `REST` into its files."""
    whole = search.edits
    rest = set(whole.wholes[REST]) if REST in units else set()
    apart = {unit: paths for unit, paths in search.exchange.units.items() if rest.issuperset(paths)}
    cut = Edits.of({unit: whole.wholes[unit] for unit in sorted(units - {REST})}, whole.before, whole.after, units)
    gone = cut.differences.keys() | (units & {REST})
    edits = evolve(
        whole,
        differences=whole.differences | cut.differences,
        wholes={unit: paths for unit, paths in whole.wholes.items() if unit not in gone} | apart,
    )
    weights, idle = dict.fromkeys(edits.all, 1.0), frozenset[Unit]()
    if search.clues is not None:
        weights, idle = search.clues.weights(edits), search.clues.idle(edits)
    consistency = Consistency(edits, search.consistency.ties if rest else ties_of(edits, idle))
    return evolve(search, edits=edits, consistency=consistency, weights=weights)


def _that_called(
    exchange: Exchange, sides: Sides, used: frozenset[Unit], traces: Sequence[Trace | None]
) -> frozenset[Unit]:
    """The used files in which a function ran on either side, and those of the traceback."""
    called = {path for trace in traces if trace is not None for path, found in trace.called.items() if found}
    raised = failure_of(sides)
    called |= {frame.file for one in (raised.chain() if raised is not None else ()) for frame in one.frames}
    return frozenset(unit for unit in used if not called.isdisjoint(exchange.units[unit]))


def files_to_trace(exchange: Exchange, used: frozenset[Unit]) -> frozenset[str]:
    """The used Python files to trace on both sides; empty if a trace would not help because there is only one edit."""
    if len(exchange.units) == 1 and not _has_regions(exchange):
        return frozenset()
    return frozenset(path for unit in used for path in exchange.units[unit] if path.endswith(".py"))


def _has_regions(exchange: Exchange) -> bool:
    """Whether the one file that differs has more than one region."""
    edits = Edits.of(exchange.units, exchange.before, exchange.after, exchange.units)
    return len(edits.all) > 1


def _units(exchange: Exchange, used: frozenset[Unit]) -> dict[Unit, tuple[str, ...]]:
    """The units of the search: each used file, all compiled files as one, and all other files as one."""
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


def file_units(search: LineSearch, units: Candidate) -> list[Unit]:
    """The units of difference that some edits belong to, sorted."""
    found = {search.edits.path_of(unit) for unit in units}
    if COMPILED in found:
        compiled = set(search.edits.wholes[COMPILED])
        found |= {unit for unit, paths in search.exchange.units.items() if set(paths) <= compiled}
    return sorted(unit for unit in found if unit in search.exchange.units)


def files_of(search: LineSearch, units: Candidate) -> tuple[str, ...]:
    """The files of some edits, for display: metadata, compiled files and unused files have one name each."""
    found: list[str] = []
    for unit in {search.edits.path_of(unit) for unit in units}:
        if unit.startswith(METADATA) or unit in (COMPILED, REST):
            found.append(unit)
        elif unit in search.edits.wholes:
            found += search.edits.wholes[unit]
        else:
            found.append(unit)
    return tuple(sorted(dict.fromkeys(found)))


def reverted_in_words(search: LineSearch, units: Candidate) -> str:
    """A description of the newer release with some units from the older one."""
    return exchanged_in_words(search.exchange.package.packages, search.names(units, newer=False), newer_base=True)


_LIKELY_NEEDS = 10  # that are tried alone first
_MOST_EVIDENCE, _SAME_FILE, _DECLARES = 10.0, 6.0, 4.0


@frozen
class Advanced:
    """The proof in the older environment, the other units that it needs there, and the number of runs.

    `ran_alone`: the older environment still had its own verdict with only the culprit and its ties. `is_needless`:
    `needs` make the difference even without the culprit.
    """

    proof: Proof
    needs: Candidate
    runs: int
    ran_alone: bool = False
    is_needless: bool = False
    notes: tuple[str, ...] = ()

    @property
    def named_needs(self) -> Candidate:
        """The units that an answer names beside the culprit: none where they are too many for a proof."""
        return self.needs if self.proof.holds else frozenset()


def advanced(search: LineSearch, core: Candidate, units: Candidate) -> Advanced:
    """Prove that the culprit (`core`) makes the difference in the older environment.

    It is advanced with the units that its ties require. A skipped run may add ties; if that is not enough, a search
    finds the missing units. `units` is the whole set that the search for lines found.
    """
    trials, sides = search.trials, search.sides
    proof: Proof | None = None
    runs, ran_alone = 0, False
    for start in dict.fromkeys((core, units)):
        if search.is_late:
            proof = proof or Proof(_sentence_forth(search, core, frozenset()), sides.after.verdict, Verdict.SKIP, LATE)
            return Advanced(proof, frozenset(), runs, ran_alone)
        besides = search.consistency.advanced(start) - core
        runs += 1
        one = counted_besides(search.trials.proof_if_likely(advance(search, core, start)), besides)
        if one.holds or (one.is_expected and start == core):  # no search finds fewer
            return Advanced(one, besides, runs, ran_alone)
        proof = one if proof is None or one.is_expected else proof
        ran_alone = ran_alone or one.verdict is sides.before.verdict
    needed = _needed(search, core)
    runs += needed.runs
    if needed.shown is not None:
        besides = needed.units
        sentence = _sentence_forth(search, core, besides)
        along = search.advanced(besides | core)
        proof = counted_besides(trials.proof_by(needed.shown, sentence, along, sides.after.verdict), besides)
        is_needless = False
        if any(_may_be_it(search, unit) for unit in besides):
            runs += 1
            without = exchanged_in_words(search.exchange.package.packages, search.names(besides), newer_base=False)
            alone = trials.proof_if_likely(Claim(without, search.advanced(besides), sides.after.verdict))
            is_needless = alone.holds
        return Advanced(proof, besides, runs, ran_alone, is_needless=is_needless)
    if proof is None:
        proof = Proof("", sides.after.verdict, Verdict.SKIP, "not tried")
    if proof.is_expected:
        return Advanced(proof, frozenset(), runs, ran_alone)
    note = f"adding only {search.names(core)} does not make the difference, and what else that needs was not found"
    return Advanced(proof, frozenset(), runs, ran_alone, notes=(note,))


def counted_besides(proof: Proof, besides: Candidate) -> Proof:
    """The proof with the number of changes beside the named ones; if they are too many, its reason says so."""
    told = evolve(proof, besides=len(besides))
    if told.holds or not told.is_expected:
        return told
    return evolve(told, reason=f"{proof.verdict.word} with {len(besides)} other changes, any of which may be the cause")


def advance(search: LineSearch, core: Candidate, start: Candidate | None = None) -> Claim:
    """The claim that the culprit makes the difference in the older environment.

    It is advanced with the units that the ties of `start` require (None: those of `core`).
    """
    new = search.consistency.advanced(core if start is None else start)
    return Claim(_sentence_forth(search, core, new - core), search.advanced(new), search.sides.after.verdict)


def advanced_alone(search: LineSearch, core: Candidate, found: Candidate) -> Advanced | None:
    """Prove that a part (`core`) of the found units makes the difference in the older environment without the rest.

    Returns None if it does not, or if its ties require more of the found units.
    """
    besides = search.consistency.advanced(core) - core
    if besides & found:
        return None
    proof = counted_besides(search.trials.proof_if_likely(advance(search, core)), besides)
    return Advanced(proof, besides, 1) if proof.holds else None


def _may_be_it(search: LineSearch, unit: Unit) -> bool:
    """Whether a unit may be the culprit itself: a region in a function, not an import, a class body or a whole file."""
    edits = search.edits
    return unit in search.suspects and edits.differences[edits.path_of(unit)].is_function(edits.function(unit))


def belongs(search: LineSearch, core: Candidate, forth: Advanced) -> bool:
    """Whether the other files that the culprit needs are part of the culprit.

    They are if the older environment kept its verdict with the culprit alone, or if all of them are new files.
    """
    own = {search.edits.path_of(unit) for unit in core}
    others = {unit for unit in forth.named_needs if search.edits.path_of(unit) not in own}
    new = all(
        not search.edits.is_region(unit)
        and not any(path in search.edits.before.digests for path in search.edits.wholes[unit])
        for unit in others
    )
    return bool(others) and (forth.ran_alone or new)


def _needed(search: LineSearch, core: Candidate) -> Reduced:
    """Search, in few runs, for the other units that must be advanced for the culprit to make the difference."""
    choices = choices_of_needs(search, core)
    if not choices.weights:
        return Reduced(frozenset())
    return Lacking(search.trials, search.sides.after.verdict, choices, until=search.trials.until).run()


def choices_of_needs(search: LineSearch, core: Candidate) -> Choices:
    """The other units that may have to be advanced with a culprit."""
    others = search.all - core
    weights = {unit: _usefulness(search, core, unit) for unit in sorted(others)}
    with_core = search.consistency.advanced

    def closed(units: Candidate) -> Candidate:
        return with_core(units | core) - core

    own = {search.edits.path_of(unit) for unit in core}
    likely = sorted(others, key=lambda unit: -weights[unit])[:_LIKELY_NEEDS]
    folders = tuple(path.rpartition("/")[0] for path in own)
    beside = [unit for unit in others if search.edits.path_of(unit) in own]
    near = [unit for unit in others if search.edits.path_of(unit).rpartition("/")[0] in folders]
    compiled = [unit for unit in others if unit == COMPILED]  # may hide a Python file with its name
    wholes = (frozenset(found) for found in (beside, near, compiled) if found)
    return Choices(
        weights,
        lambda units: search.advanced(units | core),
        lambda units: f"advanced: {search.names(core)} with {search.names(units)}",
        closed=closed,
        alone=closed,
        parts=tuple(dict.fromkeys((*(frozenset({unit}) for unit in likely), *wholes))),
    )


def _usefulness(search: LineSearch, core: Candidate, unit: Unit) -> float:
    """How likely the culprit needs a unit: declarations in the same file and lines with the same names come first."""
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


def _sentence_forth(search: LineSearch, core: Candidate, besides: Candidate) -> str:
    what = f"{search.names(core)} and, as it needs it, {search.names(besides)}" if besides else search.names(core)
    return exchanged_in_words(search.exchange.package.packages, what, newer_base=False)
