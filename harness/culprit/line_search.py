"""What the search for lines is based on: its units, their ties, and the probe of a set of units.

All files that the run did not use are one unit, all compiled files another.
"""

from __future__ import annotations

from collections.abc import Collection

from attrs import field, frozen

from harness.culprit.background import Background
from harness.culprit.consistency import Consistency
from harness.culprit.counterfactual import Trials
from harness.culprit.edits import Edits
from harness.culprit.evidence import Evidence
from harness.culprit.exchange import Exchange
from harness.culprit.pointers import Pointers
from harness.culprit.pursuit import Pursuit
from harness.culprit.reduction import Candidate, Reduced
from harness.culprit.sentences import exchanged_in_words, places, versions
from harness.culprit.sides import METADATA, Sides
from harness.culprit.ties import Unit
from harness.model import Observation, Trace
from harness.model.text import listed
from harness.probe import Probe

REST = "files that the run did not use"
COMPILED = "compiled files"
_COMPILED_ENDINGS = (".so", ".pyd", ".dylib", ".dll", ".a", ".lib")
MOST_SKIPS = 3  # enough to see that Python and compiled files can't be mixed
_MOST_LESSONS = 12

Read = tuple[Edits, Consistency, Pointers]


@frozen
class LineSearch:
    """A search for lines: its units, their ties and weights. `serving` units, such as imports, only serve others."""

    trials: Trials
    sides: Sides
    exchange: Exchange
    edits: Edits
    consistency: Consistency
    weights: dict[Unit, float] = field(repr=False)
    serving: frozenset[Unit] = field(default=frozenset(), repr=False)

    @property
    def all(self) -> frozenset[Unit]:
        """All units."""
        return self.edits.all

    def names(self, units: Collection[Unit]) -> str:
        """The places and names of some units, for display."""
        regions = self.edits.regions(units)
        wholes = sorted(unit for unit in units if not self.edits.is_region(unit))
        told = [place for place in (places(regions),) if place] + wholes
        return listed(told) if told else "nothing"

    def reverted(self, old: Candidate) -> Probe:
        """A probe of the newer environment with these units reverted."""
        label = f"{self.names(old)} as in {versions(self.exchange.package.packages, newer=False)}"
        return self.trials.mixed(self.sides.after, self.consistency.mixture(old, label, newer_base=True))

    def advanced(self, new: Candidate) -> Probe:
        """A probe of the older environment with these units advanced."""
        label = f"{self.names(new)} as in {versions(self.exchange.package.packages, newer=True)}"
        mixture = self.consistency.mixture(self.all - new, label, newer_base=False)
        return self.trials.mixed(self.sides.before, mixture)

    def learn(self, moved: Candidate, observation: Observation, *, reverting: bool) -> bool:
        """Learn ties from a skipped run of these moved units; returns whether any of them is new."""
        if self.consistency.lessons >= _MOST_LESSONS or not observation.outcome.ran:
            return False
        return self.consistency.learn(self.consistency.taught(moved, observation, reverting=reverting))

    def pursue(self, weights: dict[Unit, float], *, most: int, after: Reduced | None = None) -> Reduced:
        """Find the smallest set of units whose reversal removes the difference.

        It makes at most `most` runs, and continues the search `after` if it is given.
        """
        found = self._pursuit(weights, most=most, after=after).run()
        return found.after(after) if after is not None else found

    def likely_files(self, after: Reduced | None = None) -> frozenset[str]:
        """The files of the mixture that is tried next, if the search continues `after` an earlier one."""
        following = next(iter(self.next_sets(1, after)), None)
        mixture = self.reverted(following).mixture if following is not None else None
        return frozenset(mixture.files) if mixture is not None else frozenset()

    def next_sets(self, count: int, after: Reduced | None = None) -> tuple[Candidate, ...]:
        """Up to `count` sets that are tried next, if the search continues `after` an earlier one.

        What they need is remembered, so `pursue` starts sooner afterwards.
        """
        return self._pursuit(self.weights, most=1, after=after).next_sets(count)

    def _pursuit(self, weights: dict[Unit, float], *, most: int, after: Reduced | None) -> Pursuit:
        return Pursuit(
            trials=self.trials,
            flipped=self.sides.before.verdict,
            weights=weights,
            closed=self.consistency.reverted,
            roughly=lambda unit: self.consistency.ties.closed({unit}),
            probe_of=self.reverted,
            label_of=lambda units: f"reverted: {self.names(units)}",
            learn=lambda moved, observation: self.learn(moved, observation, reverting=True),
            doubt=lambda moved, observation: self.consistency.raised_in(moved, observation, reverting=True),
            most=most,
            serving=self.serving,
            told=after.told if after is not None else {},
            most_skips=MOST_SKIPS if COMPILED in self.edits.wholes else most,
            until=self.trials.until,
        )


def prepared(trials: Trials, sides: Sides, exchange: Exchange, used: frozenset[Unit]) -> tuple[LineSearch, int]:
    """Prepare a search for lines; returns it with the number of runs.

    Both sides run once more under a trace, while their files are read in the background.
    """
    wanted = files_to_trace(exchange, used)
    read_ahead(trials, sides, exchange, used)
    traces: list[Trace | None] = []
    if wanted:
        traces = list(trials.traces(sides, wanted))
    edits, consistency, pointers = trials.tally.reading.pop(frozenset(exchange.units)).result()
    before, after = traces or (None, None)
    evidence = Evidence(sides, trials.plan.repro.source, before, after, pointers)
    search = LineSearch(trials, sides, exchange, edits, consistency, evidence.weights(edits), edits.serving())
    return search, len(traces)


def read_ahead(trials: Trials, sides: Sides, exchange: Exchange, used: frozenset[Unit]) -> None:
    """Start to read the files of both sides in the background, unless that has started already."""
    key = frozenset(exchange.units)
    if key not in trials.tally.reading:
        trials.tally.reading[key] = Background.begun(trials.prober, lambda: _read(exchange, sides, used))


def _read(exchange: Exchange, sides: Sides, used: frozenset[Unit]) -> Read:
    edits = Edits.of(_units(exchange, used), exchange.before, exchange.after, used)
    return edits, Consistency(edits, edits.ties()), Pointers.of(exchange, sides)


def files_to_trace(exchange: Exchange, used: frozenset[Unit]) -> frozenset[str]:
    """The used Python files to trace on both sides; empty if a trace would not help.

    That is the case with compiled files, or if there is only one edit.
    """
    if COMPILED in _units(exchange, used) or (len(exchange.units) == 1 and not _has_regions(exchange)):
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
    return exchanged_in_words(search.exchange.package.packages, search.names(units), newer_base=True)


def is_not_mixable(search: LineSearch, reduced: Reduced) -> bool:
    """Whether a search stopped because Python and compiled files of the two releases can't be mixed."""
    return COMPILED in search.edits.wholes and reduced.gave_up and reduced.unresolved >= MOST_SKIPS
