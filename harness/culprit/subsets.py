"""Searches over sets of units whose runs decide: the fewest that make the difference, and what a culprit lacks.

Each runs up to a limit of runs and time; each skip may teach which units need each other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import field, frozen

from harness.culprit.edits import Unit, Units
from harness.events import Progress
from harness.model import Judgement, Observation, Verdict
from harness.model.text import listed
from harness.probing import Probe
from harness.probing.lanes import Engine
from harness.search import Narrowing

if TYPE_CHECKING:
    from harness.culprit.proofs import Trials


class OutOfTime(Exception):
    """The time ran out while the harness itself computed."""


def check_time(until: float | None) -> None:
    """Raise `OutOfTime` at this time on the monotonic clock, or later; None is no limit."""
    if until is not None and time.monotonic() >= until:
        raise OutOfTime


_MOST = 40  # runs of sets
_PER_RUN = 3  # sets judged per allowed run: many of them are known to fail without a run


@frozen
class Reduced:
    """The smallest set of units that makes the difference alone, as far as the search got: `is_minimal` if to its end.

    `unproven` are the units without which it could not be judged. `shown` is the run of the set, None if no set smaller
    than all units was sufficient. `runs` counts the runs, `unresolved` the skips. `tried` has all verdicts and runs.
    """

    units: Units
    is_minimal: bool = True
    unproven: Units = frozenset()
    runs: int = 0
    unresolved: int = 0
    shown: Observation | None = None
    tried: Mapping[Units, tuple[Verdict, Observation]] = field(factory=dict)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on what the search could not show."""
        notes = []
        if not self.is_minimal:
            notes.append(f"stopped after {self.runs} runs; a smaller set may be enough")
        if self.unproven and len(self.units) > 1:
            notes.append(f"could not be run without: {listed(sorted(self.unproven))}")
        return tuple(notes)


@frozen
class Choices:
    """What a search chooses from: units with weights that say how likely each is the cause, and the run of a set.

    `closed` completes a set with everything that it needs, and `alone` a part. `learn` is called with each skip and
    returns whether `closed` has learned from it. `parts` are tried alone before sets are.
    """

    weights: Mapping[Unit, float]
    probe_of: Callable[[Units], Probe]
    label_of: Callable[[Units], str]
    closed: Callable[[Units], Units] = frozenset
    alone: Callable[[Units], Units] = frozenset
    learn: Callable[[Units, Observation], bool] = lambda _moved, _observation: False
    parts: Sequence[Units] = ()


@frozen
class Fewest:
    """Finds the fewest units that lead to a verdict; all of them together do, and the empty set does not.

    It stops after so many runs of sets (`most`), and at `until` on the monotonic clock, also while it works out what to
    try next. If not `leaves_out`, it ends without leaving out each unit of the result. With `only_in_parts`, sets are
    tried only in a part that was enough. With `together`, units may be enough only with others, so no skip is about one
    alone: as for what a culprit lacks. So many sets run at a time (`width`, None: on all lanes), beside the one that
    decides the next those that may follow it.
    """

    trials: Trials
    wanted: Verdict
    choices: Choices
    most: float = _MOST
    until: float | None = None
    leaves_out: bool = True
    only_in_parts: bool = False
    together: bool = False
    width: int | None = 1

    def _narrowing(self) -> Narrowing[Unit]:
        def in_time(completed: Callable[[Units], Units]) -> Callable[[Units], Units]:
            """The same function, which raises `OutOfTime` at the end of the time: it reads and mixes whole files."""

            def checked(units: Units) -> Units:
                check_time(self.until)
                return completed(units)

            return checked

        choices = self.choices
        return Narrowing(
            tuple(choices.weights),
            weights=choices.weights,
            closed=in_time(choices.closed),
            parts=choices.parts,
            complete=in_time(choices.alone),
            together=self.together,
            leaves_out=self.leaves_out,
        )

    def run(self) -> Reduced:
        """Run what the search asks for, to its end or to a limit."""
        trials, choices, wanted, narrowing = self.trials, self.choices, self.wanted, self._narrowing()
        tried: dict[Units, tuple[Verdict, Observation]] = {}
        ran = sets = judged_sets = 0

        def judged(candidate: Units, observation: Observation, cached: bool) -> Judgement:
            nonlocal ran, sets, judged_sets
            judgement = trials.judge(observation)
            if not narrowing.are_parts_left:
                sets += observation.outcome.ran
                judged_sets += 1
            tried[candidate] = (judgement.verdict, observation)
            ran += observation.outcome.ran
            trials.tally.ran_now += not cached and observation.outcome.ran
            if judgement.verdict is Verdict.SKIP and choices.learn(candidate, observation):
                narrowing.refresh()
            return judgement

        def is_late() -> bool:
            return self.until is not None and time.monotonic() >= self.until

        def is_over() -> bool:
            is_none_enough = all(verdict is not wanted for verdict, _ in tried.values())
            is_spent = sets >= self.most or judged_sets >= _PER_RUN * self.most
            return is_late() or (not narrowing.are_parts_left and (is_spent or (self.only_in_parts and is_none_enough)))

        def as_told(verdict: Verdict) -> Verdict:
            """The verdict for the search, which calls a set BAD if it has the wanted one."""
            if verdict is Verdict.SKIP:
                return verdict
            return Verdict.BAD if verdict is wanted else Verdict.GOOD

        engine = Engine(
            trials.prober,
            trials.lanes,
            choices.probe_of,
            choices.label_of,
            judged,
            trials.reporter,
            lambda: Progress(candidates=len(choices.weights), tried=ran),
            as_told,
        )
        try:
            engine.drive(narrowing, until=lambda: is_late() or not narrowing.are_parts_left)
            engine.drive(narrowing, width=self.width, until=is_over)
            result = narrowing.result
        except OutOfTime:
            result = narrowing.reached
        return Reduced(
            units=result.minimal,
            is_minimal=result.is_minimal,
            unproven=result.unproven,
            runs=ran,
            unresolved=result.unresolved,
            shown=tried[result.minimal][1] if result.minimal in tried else None,
            tried=tried,
        )
