"""Bisection: finds the neighbours between which good turns bad, or bad turns good, in few runs.

It first runs the ends, the bad one before the good one. It moves an end that can't be tested, steps back to find a good
end if none is given, and can confirm its result. All state is computed from the recorded verdicts, so these may arrive
in any order and come from earlier runs.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

from harness.model.verdict import Verdict
from harness.search.bisection_result import BisectionResult, BisectionStatus, MovedEnd, Trial
from harness.search.foresight import foresee
from harness.search.gaps import cut_around, gaps_of, runs_to_close
from harness.search.protocol import record
from harness.search.states import PositionState, state_of
from harness.search.survey import Stage, Survey, survey

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_EXPECTED = 0.8  # probability that an end is as the user says
_TOGETHER = 3  # all outcomes are enumerated for at most this many requests
_UNTESTABLE = 0.1  # probability of a skip; both only set the order of `foresee`


class Bisection:
    """Search over positions 0 (oldest) to count - 1 (newest); its candidates are `Trial`s.

    `good`, `bad`: the ends. For a regression, good is older than bad. Without `bad` the newest position is the bad end;
    without `good` the search looks for a good one 1, 2, 4, ... positions before the bad end, down to the oldest. With
    `find_fix`, bad is older than good; the defaults are the oldest position for bad and the newest for good. `tried`:
    verdicts that are known already. `confirm`: how often to rerun each side of the change.

    With one lane it runs the two ends and ceil(log2(n + 1)) of the n positions between them, if none is skipped.
    Raises ValueError if there are no positions, `confirm` is negative, or the ends are out of range or in the wrong
    order.
    """

    def __init__(
        self,
        count: int,
        *,
        good: int | None = None,
        bad: int | None = None,
        find_fix: bool = False,
        tried: Mapping[int, Verdict] | None = None,
        confirm: int = 0,
    ) -> None:
        if count < 1 or confirm < 0:
            raise ValueError("a bisection needs at least one position, and confirms 0 or more times")
        for end in (good, bad):
            if end is not None and not 0 <= end < count:
                raise ValueError(f"position {end} is not between 0 and {count - 1}")
        if good is not None and bad is not None and (good <= bad if find_fix else good >= bad):
            raise ValueError(f"good {good} and bad {bad} are in the wrong order to find a {_goal(find_fix)}")
        self._count = count
        self._find_fix = find_fix
        self._confirm = confirm
        self._steps = good is None and not find_fix
        self._bad = bad if bad is not None else 0 if find_fix else count - 1
        self._good = good if good is not None else count - 1 if find_fix else 0
        self._told: dict[Trial, Verdict] = {}
        self._first: dict[int, Verdict] = {}  # only first attempts decide what to run next
        self._asked: tuple[Trial, ...] = ()
        self._width = 1
        for position, verdict in (tried or {}).items():
            self.tell(Trial(position), verdict)

    def ask(self, n: int = 1) -> tuple[Trial, ...]:
        """Up to n trials to run now; earlier requests that still matter come first."""
        self._width = n
        wanted = self._wanted(self._first, n)
        still = self._still_matter()
        self._asked = tuple(dict.fromkeys((*still, *wanted)))
        return wanted

    def foresee(self, n: int) -> tuple[Trial, ...]:
        """Up to n trials that the next `ask` may return, if it requests as many as the last one.

        Repetitions need no preparation and are left out.
        """
        asked = self._still_matter() or self._wanted(self._first, self._width)
        if self._width > 1:
            return self._foreseen_together(n, asked)

        def plan(supposed: Mapping[Trial, Verdict]) -> Trial | None:
            first = {**self._first, **{trial.position: verdict for trial, verdict in supposed.items()}}
            trial = next(iter(self._wanted(first, 1)), None)
            return trial if trial is not None and trial.attempt == 0 else None

        return foresee(n, plan=plan, chances=self._chances, asked=asked)

    def _foreseen_together(self, n: int, asked: Sequence[Trial]) -> tuple[Trial, ...]:
        """The requests that follow each outcome of the current batch, the most likely outcome first."""
        likely = {trial: self._chances(trial) for trial in asked[:_TOGETHER]}
        outcomes = [
            (math.prod(likely[trial][verdict] for trial, verdict in zip(likely, verdicts, strict=True)), verdicts)
            for verdicts in itertools.product((Verdict.BAD, Verdict.GOOD), repeat=len(likely))
        ]
        found: dict[Trial, None] = {}
        for _, verdicts in sorted(outcomes, key=lambda outcome: -outcome[0]):
            supposed = {trial.position: verdict for trial, verdict in zip(likely, verdicts, strict=True)}
            following = self._wanted({**self._first, **supposed}, self._width)
            found.update(dict.fromkeys(trial for trial in following if trial.attempt == 0 and trial not in asked))
        return tuple(found)[: max(n, 0)]

    def tell(self, candidate: Trial, verdict: Verdict) -> None:
        """Record a verdict. Raises ValueError for an unknown position or a second, different verdict."""
        if candidate.position >= self._count:
            raise ValueError(f"position {candidate.position} is not between 0 and {self._count - 1}")
        record(self._told, candidate, verdict)
        if candidate.attempt == 0:
            self._first[candidate.position] = verdict

    @property
    def done(self) -> bool:
        """Whether nothing is left to run."""
        return self.result.status is not BisectionStatus.OPEN

    def remaining(self) -> int:
        """Upper estimate of the runs left, if they run one at a time and none is skipped."""
        found = self._survey(self._first)
        if found.stage is Stage.BOUNDARY:
            return 0 if self._flaky(found) else len(self._repetitions(found))
        if found.stage.over:
            return 0
        inside = set(found.open)
        runs = 2 * self._confirm + len(found.wanted)
        if found.stage in (Stage.BAD_END, Stage.GOOD_END):
            inside.difference_update(found.wanted)
            if found.stage is Stage.BAD_END and self._steps and found.good is None:
                runs += len(inside).bit_length() + 1
        return runs + runs_to_close(gaps_of(inside))

    @property
    def result(self) -> BisectionResult:
        """What is known so far."""
        found = self._survey(self._first)
        flaky = self._flaky(found)
        line = self._line(self._first)
        skipped = tuple(sorted(self._at(d) for d, v in enumerate(line) if v is Verdict.SKIP))
        good = None if found.good is None or found.bad is None else self._at(found.good)
        bad = None if good is None or found.bad is None else self._at(found.bad)
        return BisectionResult(
            status=self._status(found, flaky),
            last_good=None if self._find_fix else good,
            first_bad=None if self._find_fix else bad,
            last_bad=bad if self._find_fix else None,
            first_good=good if self._find_fix else None,
            suspects=self._suspects(found, line),
            skipped=skipped,
            moved_ends=self._moved(found),
            flaky=flaky,
        )

    @property
    def states(self) -> tuple[PositionState, ...]:
        """The state of every position, for display; excluded positions can no longer affect the result."""
        matter = {self._at(d) for d in self._survey(self._first).open}
        told = (self._first.get(position) for position in range(self._count))
        return tuple(state_of(verdict, matters=i in matter) for i, verdict in enumerate(told))

    # Positions on the line of `survey` are distances from the bad end towards the good end.

    def _at(self, distance: int) -> int:
        return self._bad + distance if self._find_fix else self._bad - distance

    def _line(self, first: Mapping[int, Verdict]) -> list[Verdict | None]:
        return [first.get(self._at(d)) for d in range(abs(self._bad - self._good) + 1)]

    def _survey(self, first: Mapping[int, Verdict]) -> Survey:
        return survey(self._line(first), steps=self._steps)

    def _wanted(self, first: Mapping[int, Verdict], n: int) -> tuple[Trial, ...]:
        found = self._survey(first)
        if found.stage is Stage.BOUNDARY:
            return () if self._flaky(found) else self._repetitions(found)[: max(n, 0)]
        if found.wanted:
            return tuple(Trial(self._at(d)) for d in found.wanted[: max(n, 0)])
        if found.stage is not Stage.CUTS:
            return ()
        matter = {self._at(d) for d in found.open}
        kept = [trial.position for trial in self._asked if trial.attempt == 0]
        return tuple(Trial(position) for position in cut_around(matter, kept, n))

    def _still_matter(self) -> tuple[Trial, ...]:
        """Requested trials without a verdict that are still useful in the current stage."""
        found = self._survey(self._first)
        useful = found.wanted or (found.open if found.stage is Stage.CUTS else ())
        trials = {Trial(self._at(d)) for d in useful}
        if found.stage is Stage.BOUNDARY:
            trials = set(self._wanted(self._first, 2 * self._confirm))
        return tuple(trial for trial in self._asked if trial in trials)

    def _repetitions(self, found: Survey) -> tuple[Trial, ...]:
        sides = [self._at(d) for d in (found.bad, found.good) if d is not None]
        every = (Trial(side, attempt) for attempt in range(1, self._confirm + 1) for side in sides)
        return tuple(trial for trial in every if trial not in self._told)

    def _flaky(self, found: Survey) -> tuple[int, ...]:
        """The sides of the change with two different verdicts."""
        sides = {self._at(d) for d in (found.bad, found.good) if d is not None}
        seen = {side: {v for trial, v in self._told.items() if trial.position == side} for side in sides}
        return tuple(sorted(side for side, verdicts in seen.items() if len(verdicts) > 1))

    def _status(self, found: Survey, flaky: Sequence[int]) -> BisectionStatus:
        if not found.stage.over:
            return BisectionStatus.OPEN
        if found.stage is Stage.NO_BAD:
            return BisectionStatus.NO_FAILURE
        if found.stage is Stage.NO_GOOD:
            return BisectionStatus.NOT_FIXED if self._find_fix else BisectionStatus.NOT_A_REGRESSION
        if found.bad is None or found.good is None:
            return BisectionStatus.INCONCLUSIVE
        if flaky:
            return BisectionStatus.FLAKY
        if self._repetitions(found):
            return BisectionStatus.OPEN
        if found.good - found.bad > 1:
            return BisectionStatus.INCONCLUSIVE
        return BisectionStatus.FIXED if self._find_fix else BisectionStatus.FOUND

    def _suspects(self, found: Survey, line: Sequence[Verdict | None]) -> tuple[int, ...]:
        if found.bad is not None and found.good is not None:
            newer = found.good if self._find_fix else found.bad
            return tuple(sorted(self._at(d) for d in {newer, *range(found.bad + 1, found.good)}))
        if found.stage is Stage.UNTESTABLE:
            return tuple(sorted(self._at(d) for d in range(len(line))))
        if found.stage is Stage.ALONE and found.bad is not None:
            # The older side of a regression, or the newer side of a fix, is somewhere among the skipped positions.
            first = found.bad + 1 if self._find_fix else found.bad
            return tuple(sorted(self._at(d) for d in range(first, len(line))))
        return ()

    def _moved(self, found: Survey) -> tuple[MovedEnd, ...]:
        if found.bad_end is None or found.good_end is None:
            return ()
        moved = []
        if found.bad_end > 0:
            moved.append(MovedEnd(Verdict.BAD, self._bad, self._at(found.bad_end)))
        if not self._steps and self._at(found.good_end) != self._good and found.good_end != found.bad_end:
            moved.append(MovedEnd(Verdict.GOOD, self._good, self._at(found.good_end)))
        return tuple(moved)

    def _chances(self, trial: Trial) -> Mapping[Verdict, float]:
        testable = 1 - _UNTESTABLE
        bad = testable / 2
        if trial.position == self._bad:
            bad = _EXPECTED
        elif trial.position == self._good and not self._steps:
            bad = testable - _EXPECTED
        return {Verdict.BAD: bad, Verdict.GOOD: testable - bad, Verdict.SKIP: _UNTESTABLE}


def _goal(find_fix: bool) -> str:
    return "fix" if find_fix else "regression"
