"""The search for lines: its units, their ties, the probe of a set of units, and the smallest set that it finds.

All files that the run did not use are one unit, all compiled files another.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from attrs import evolve, field, frozen

from harness.culprit.clues import LEAST, Clues, Pointers, failure_of, files_to_trace, parts_of, used_units
from harness.culprit.edits import Edits, Unit, Units, exchanged_in_words, places, versions
from harness.culprit.mentions import names_of
from harness.culprit.proofs import Claim, Trials
from harness.culprit.sides import METADATA, Exchange, Side, Sides
from harness.culprit.subsets import Choices, Fewest, Reduced, check_time
from harness.culprit.ties import Consistency, Ties, ties_of
from harness.model import Observation, Trace
from harness.model.text import listed
from harness.probing import Probe
from harness.probing.probe import is_warm
from harness.probing.warm import Expected, WarmProber

REST = "files that the run did not use"
COMPILED = "compiled files"
_COMPILED_ENDINGS = (".so", ".pyd", ".dylib", ".dll", ".a", ".lib")
_MOST_READ = 300  # more files than that are read once it is known what ran
_TO_SEARCH = 0.8  # of the time; the rest is for proofs
_LIKELY = 3  # sets that are expected to run first
_MANY = 8  # for at most this many units, a few fresh runs cost less than a process to fork from


@frozen
class CodeSearch:
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
    def uncut(cls, trials: Trials, sides: Sides, exchange: Exchange, used: frozenset[Unit]) -> CodeSearch:
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
        named = [place for place in (places(regions, newer=newer),) if place] + wholes
        return listed(named) if named else "nothing"

    def reverted(self, old: Units) -> Probe:
        """A probe of the newer environment with these units reverted."""
        label = f"{self.names(old, newer=False)} as in {versions(self.exchange.package.packages, newer=False)}"
        return self.trials.mixed(self.sides.after, self.consistency.mixture(old, label, newer_base=True))

    def advanced(self, new: Units) -> Probe:
        """A probe of the older environment with these units advanced."""
        label = f"{self.names(new)} as in {versions(self.exchange.package.packages, newer=True)}"
        mixture = self.consistency.mixture(self.all - new, label, newer_base=False)
        return self.trials.mixed(self.sides.before, mixture)

    @property
    def suspects(self) -> frozenset[Unit]:
        """The regions that are likely to be the cause alone: no comments, and no imports that no evidence points to."""
        return frozenset(unit for unit in self.all if self.edits.is_region(unit) and self.weights[unit] >= LEAST)

    @property
    def parts(self) -> tuple[Units, ...]:
        """The parts to try alone, the likeliest first."""
        return parts_of(self.edits, self.weights)

    def reduced(
        self, weights: Mapping[Unit, float], *, parts: Sequence[Units] = (), only_in_parts: bool = False
    ) -> Reduced:
        """Find the smallest set of units whose reversal removes the difference; see `Fewest`."""
        choices = Choices(
            weights,
            self.reverted,
            lambda units: f"reverted: {self.names(units)}",
            closed=self.consistency.reverted,
            alone=self.consistency.reverted_alone,
            learn=lambda units, run: self.learn(units, run, reverting=True),
            parts=parts,
        )
        wanted = self.sides.before.verdict
        return Fewest(self.trials, wanted, choices, until=self.until, only_in_parts=only_in_parts).run()

    def learn(self, moved: Units, run: Observation, *, reverting: bool) -> bool:
        """Learn from a failed run which units it lacks; returns whether that is new."""
        names = names_of(self.trials.judge.raised(run))
        return bool(names) and self.consistency.learn(moved, names, reverting=reverting)

    def expect_reverted(self, parts: Iterable[Units]) -> None:
        """Let the prober prepare for many runs of the newer side, these parts reverted before others."""
        first = [self.reverted(self.consistency.reverted_alone(part)) for part in parts]
        self._expect(self.sides.after, first)

    def expect_advanced(self, units: Units) -> None:
        """Let the prober prepare for many runs of the older side, these units advanced before others."""
        self._expect(self.sides.before, [self.advanced(self.consistency.advanced(units))])

    def _expect(self, side: Side, first: Iterable[Probe]) -> None:
        if self.warm is not None and len(self.all) > _MANY:
            homes = self.edits.homes
            used = [paths for unit, paths in self.edits.wholes.items() if unit not in (COMPILED, REST)]
            files = {*self.edits.differences, *homes, *homes.values()}.union(*used)
            python = frozenset(path for path in files if path.endswith(".py"))
            changed = frozenset[str]().union(*(probe.mixture.files for probe in first if probe.mixture is not None))
            unchanged = self.trials.mixed(side, None)
            expected = Expected(unchanged, python, changed, self.trials.judge, side.verdict)
            self.warm.expect(expected, self.trials.lanes)


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
) -> tuple[CodeSearch, int]:
    """Prepare a search for lines; returns it with the number of runs.

    Both sides run once more under a trace of the files in `wanted`. Of many files, only those are read in which a
    function ran, or that are in the traceback; the others stay whole until they are the culprit. Raises `OutOfTime`.
    """
    traces = [run.trace for run in trials.traced(sides, wanted)] if wanted else []
    cut = used if len(used) <= _MOST_READ else _that_called(exchange, sides, used, traces)
    check = partial(check_time, trials.until)
    edits = Edits.of(_units(exchange, used), exchange.before, exchange.after, cut, check)
    before, after = traces or (None, None)
    clues = Clues(sides, trials.question.repro.source, before, after, Pointers.of(exchange, sides))
    check()
    consistency = Consistency(edits, ties_of(edits, clues.idle(edits)))
    check()
    search = CodeSearch(trials, sides, exchange, edits, consistency, clues.weights(edits), clues)
    if trials.until is not None:
        now = time.monotonic()
        search = evolve(search, until=now + _TO_SEARCH * (trials.until - now))
    return search, len(traces)


def opened(search: CodeSearch, units: frozenset[Unit]) -> CodeSearch:
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
    known = search.consistency
    consistency = Consistency(edits, known.ties if rest else ties_of(edits, idle), known.learned)
    return evolve(search, edits=edits, consistency=consistency, weights=weights)


def _that_called(
    exchange: Exchange, sides: Sides, used: frozenset[Unit], traces: Sequence[Trace | None]
) -> frozenset[Unit]:
    """The used files in which a function ran on either side, and those of the traceback."""
    called = {path for trace in traces if trace is not None for path, functions in trace.called.items() if functions}
    raised = failure_of(sides)
    called |= {frame.file for exception in (raised.chain() if raised is not None else ()) for frame in exception.frames}
    return frozenset(unit for unit in used if not called.isdisjoint(exchange.units[unit]))


def _units(exchange: Exchange, used: frozenset[Unit]) -> dict[Unit, tuple[str, ...]]:
    """The units of the search: each used file, all compiled files as one, and all other files as one."""
    units: dict[Unit, tuple[str, ...]] = {}
    compiled: list[str] = []
    rest: list[str] = []
    for unit, paths in exchange.units.items():
        if any(path.endswith(_COMPILED_ENDINGS) or ".so." in path for path in paths):
            compiled += paths
        elif unit in used:
            units[unit] = paths
        else:
            rest += paths
    if compiled:
        units[COMPILED] = tuple(compiled)
    if rest:
        units[REST] = tuple(rest)
    return units


@contextmanager
def warmed(search: CodeSearch) -> Iterator[CodeSearch]:
    """The search with a prober that can run warm, if there is one."""
    warm = search.trials.prober
    if not isinstance(warm, WarmProber):
        yield search
        return
    checks = warm.checks
    try:
        yield evolve(search, warm=warm)
        search.trials.proofs([claim for claim, _ in search.trials.tally.begun])
    finally:
        for _, task in search.trials.tally.begun:
            task.stop()
        warm.end_expected()
        search.trials.tally.ran_now += warm.checks - checks


def fewest(search: CodeSearch, *, only_in_parts: bool) -> Reduced:
    """Find the smallest set of units whose reversal removes the difference; see `CodeSearch.reduced`."""
    likely = search.parts[:_LIKELY]
    search.expect_reverted(likely)
    if search.trials.lanes.count > 1:  # one run at a time has these files exchanged, so a lane is free
        search.expect_advanced(frozenset().union(*likely))
    reduced = search.reduced(search.weights, parts=search.parts, only_in_parts=only_in_parts)
    _confirm(search, reduced)
    return reduced


def _confirm(search: CodeSearch, reduced: Reduced) -> None:
    """Start fresh runs of a set that a warm run has shown, and of the likeliest set below it.

    What is the same in all forks may make them fail: a process id at import, or the order of imports. Then units are
    added to the culprit until a fork passes.
    """
    trials, sides = search.trials, search.sides
    below = [
        units
        for units, (verdict, run) in reduced.tried.items()
        if units < reduced.units and verdict is sides.after.verdict and is_warm(run)
    ]
    likeliest = max(below, key=lambda units: sum(search.weights.get(unit, 0.0) for unit in units), default=None)
    claims = [
        Claim(reverted_in_words(search, units), search.reverted(units), wanted)
        for units, wanted in ((likeliest, sides.after.verdict), (reduced.units, sides.before.verdict))
        if units is not None
    ]
    if reduced.shown is None or not is_warm(reduced.shown):
        trials.begin_proofs(claims[:-1])
        return
    search.expect_advanced(reduced.units)
    trials.begin_proofs(claims)


def file_units(search: CodeSearch, units: Units) -> list[Unit]:
    """The units of difference that some edits belong to, sorted."""
    owners = {search.edits.path_of(unit) for unit in units}
    if COMPILED in owners:
        compiled = set(search.edits.wholes[COMPILED])
        owners |= {unit for unit, paths in search.exchange.units.items() if set(paths) <= compiled}
    return sorted(unit for unit in owners if unit in search.exchange.units)


def files_of(search: CodeSearch, units: Units) -> tuple[str, ...]:
    """The files of some edits, for display: metadata, compiled files and unused files have one name each."""
    files: list[str] = []
    for unit in {search.edits.path_of(unit) for unit in units}:
        if unit.startswith(METADATA) or unit in (COMPILED, REST):
            files.append(unit)
        elif unit in search.edits.wholes:
            files += search.edits.wholes[unit]
        else:
            files.append(unit)
    return tuple(sorted(dict.fromkeys(files)))


def reverted_in_words(search: CodeSearch, units: Units) -> str:
    """A description of the newer release with some units from the older one."""
    return exchanged_in_words(search.exchange.package.packages, search.names(units, newer=False), newer_base=True)
