"""The search over a line: finds the neighbours between which good turns bad, or bad turns good.

While no two runs of a position disagree it is a plain bisection (`survey.py`), which then repeats the runs at the
change, the likelier error first, until the posterior over all boundaries (`posterior.py`) is sure: a flaky bug may have
passed by luck. Once runs disagree, it makes the run that tells most about the place of the change (for noisy searches
see Waeber, Frazier and Henderson, "Bisection search with noisy responses", SIAM J. Control Optim. 51(3), 2013). It ends
when one boundary, or the absence of a change, reaches the required confidence, or after its maximum number of runs.

If the bug is recognised by a number, both sides are rerun until their numbers differ clearly (`numbers.py`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import count, islice

from attrs import evolve

from harness.model.boundary import Counts
from harness.model.verdict import Verdict
from harness.search.numbers import Gauges, Measurements
from harness.search.posterior import PRIOR, TRUSTED_ENDS, Evidence, Noise, Posterior
from harness.search.protocol import (
    LineResult,
    LineStatus,
    MovedEnd,
    PositionState,
    Trial,
    foresee,
    record,
    state_of,
)
from harness.search.survey import Stage, Survey, check_ends, cut_around, gaps_of, runs_to_close, survey

_MOST = 160  # runs of a flaky bug; more than any change from 0 to 0.2 among 100 releases takes (flaky_search.py)
_MOST_AGAIN = 16  # repetitions while nothing disagrees, so that the search ends whatever the confidence
_PASSES_AGAIN = 6  # repetitions if the bad end passed; of bugs that fail half the time, 1 in 128 passes every run
PASSES = 12  # of the bad end show that there is no flaky bug: at a rate of 0.3, 99 % would have failed
_FAILURES = 3  # failures that are enough to show that nothing older is good
_DIGITS = 9  # precision of comparisons: further digits depend on how this Python adds

_NO_GAUGES = Gauges()
_NO_NOISE = Noise()


class LineSearch:
    """Search over positions 0 (oldest) to count - 1 (newest); its candidates are `Trial`s.

    `good`, `bad`: the ends. For a regression, good is older than bad. Without `bad` the newest position is the bad end;
    without `good` the search looks for a good one 1, 2, 4, ... positions before the bad end, down to the oldest. With
    `find_fix`, bad is older than good; the defaults are the oldest position for bad and the newest for good.

    `noise`: how sure it has to be, and what the user knows. `gauges`: the durations of runs, and the numbers by which
    they were judged. With `sure` false it ends once two neighbours are named, repeated only as `confirm` says.
    `proofs`: how many other runs are like ones of the good and of the bad side of the change. All state follows from
    these and from the verdicts, so a search that is not sure goes on in another one that is.

    If every run of a position has the same verdict, one lane runs the two ends and ceil(log2(n + 1)) of the n positions
    between them, if none is skipped, before the repetitions. Raises ValueError if there are no positions, or the ends
    are out of range or in the wrong order.
    """

    def __init__(
        self,
        count: int,
        *,
        good: int | None = None,
        bad: int | None = None,
        find_fix: bool = False,
        noise: Noise = _NO_NOISE,
        gauges: Gauges = _NO_GAUGES,
        sure: bool = True,
        proofs: tuple[int, int] = (0, 0),
    ) -> None:
        check_ends(count, good, bad, find_fix=find_fix)
        self._count = count
        self._find_fix = find_fix
        self._steps = good is None and not find_fix
        self._bad = bad if bad is not None else 0 if find_fix else count - 1
        self._good = good if good is not None else count - 1 if find_fix else 0
        self._length = abs(self._bad - self._good) + 1
        self._noise = noise
        self._prior = TRUSTED_ENDS if noise.trusts_ends else PRIOR
        # Half of the allowed error is held back: which runs are made depends on the others, and the prior may be wrong.
        self._error = (1 - noise.confidence) / 2
        self._confidence = noise.confidence + self._error
        self._seconds = gauges.seconds
        self._measured = Measurements(gauges.number)
        self._sure = sure
        self._proofs = proofs
        self._verdicts: dict[Trial, Verdict] = {}
        self._first: dict[int, Verdict] = {}
        self._sorted: dict[int, Counter[Verdict]] = {}
        self._requested: tuple[Trial, ...] = ()
        self._width = 1
        self._place = self._placed()
        self._missing: tuple[Trial, ...] | None = None  # what `_again` returns, until the next verdict

    # -- asking and telling

    def ask(self, n: int = 1) -> tuple[Trial, ...]:
        """Up to n trials to run now; earlier requests that still matter come first."""
        self._width = n = max(n, 0)
        still = self._still_matter()
        wanted = self._wanted(n, still) or self._again[:n]
        self._requested = tuple(dict.fromkeys((*still, *wanted)))
        return wanted

    def foresee(self, n: int) -> tuple[Trial, ...]:
        """Up to n positions that the next `ask` may return. Repetitions need no preparation and are left out."""
        if self._is_placed:
            return ()
        if self.is_noisy:
            worths = self._worths()
            likely = sorted(range(self._length), key=lambda index: -worths[index])
            positions = {trial.position for trial in (*self._verdicts, *self._requested)}
            fresh = (self._at(index) for index in likely if worths[index] > 0)
            return tuple(islice((Trial(position) for position in fresh if position not in positions), n))

        def plan(supposed: Mapping[Trial, Verdict]) -> tuple[Trial, ...]:
            verdicts = {trial.position: verdict for trial, verdict in supposed.items()}
            return self._cuts({**self._first, **verdicts}, self._width)

        return foresee(n, plan=plan, requested=self._still_matter() or plan({}))

    def tell(self, candidate: Trial, verdict: Verdict) -> None:
        """Record a verdict. Raises ValueError for an unknown position or a second, different verdict of one run."""
        position = candidate.position
        if position >= self._count:
            raise ValueError(f"position {position} is not between 0 and {self._count - 1}")
        if candidate not in self._verdicts:
            self._sorted.setdefault(position, Counter())[verdict] += 1
        record(self._verdicts, candidate, verdict)
        if candidate.attempt == 0:
            self._first[position] = verdict
        self._place = self._placed()
        self._missing = None
        self._measured.tell(candidate, verdict)
        self._measured.name(self._place.boundary if self._is_placed else None)

    @property
    def done(self) -> bool:
        """Whether nothing is left to run."""
        return self._is_placed and not self._again

    def remaining(self) -> int:
        """Estimate of the runs left, if they run one at a time; an upper one if none is skipped or disagrees."""
        if self._is_placed:
            return len(self._again)
        if self.is_noisy:
            return self._remaining_in_noise()
        state, confirm = self._surveyed(self._first), self._noise.confirm
        inside, runs = set(state.open), len(state.wanted)
        if state.stage in (Stage.BAD_END, Stage.GOOD_END):
            inside.difference_update(state.wanted)
            if state.stage is Stage.BAD_END and self._steps and state.good is None:
                runs += len(inside).bit_length() + 1
        again = 2 * confirm if confirm is not None else _PASSES_AGAIN if self._sure else 0
        return runs + runs_to_close(gaps_of(inside)) + again

    # -- what is known

    @property
    def is_noisy(self) -> bool:
        """Whether one run can't tell good from bad: the user says so, or two runs of a position disagree."""
        return self._noise.flaky or (self._noise.confirm != 0 and bool(self._flaky))

    @property
    def result(self) -> LineResult:
        """What is known so far."""
        result = self._place
        if not self._is_placed:
            return result
        if self.is_noisy and result.boundary is not None and result.confidence is not None:
            result = evolve(result, confidence=result.confidence - self._error)
        elif result.boundary is not None and not self.is_noisy:
            counts = Counter(verdict for _, verdict in self._agreeing())
            good, bad = counts[Verdict.GOOD] + self._proofs[0], counts[Verdict.BAD] + self._proofs[1]
            result = evolve(result, confidence=self._sureness({}), good_side=Counts(0, good), bad_side=Counts(bad, bad))
            if flaky := tuple(sorted(self._flaky.intersection(result.boundary or ()))):
                result = evolve(result, status=LineStatus.FLAKY, flaky=flaky)
        if self._again:
            return evolve(result, status=LineStatus.OPEN)
        return self._with_effect(result)

    @property
    def states(self) -> tuple[PositionState, ...]:
        """The state of every position, for display; excluded positions can no longer affect the result."""
        if self.is_noisy:
            matter = set(self._suspects(self._evidence.credible(self._confidence)))
        else:
            matter = {self._at_distance(distance) for distance in self._surveyed(self._first).open}
        states = []
        for position in range(self._count):
            verdicts = self._sorted.get(position, Counter())
            worst = next((v for v in (Verdict.BAD, Verdict.GOOD, Verdict.SKIP) if verdicts[v]), None)
            shown = worst if self.is_noisy else self._first.get(position)
            states.append(state_of(shown, matters=position in matter))
        return tuple(states)

    def verdict_of(self, position: int, verdict: Verdict) -> Trial | None:
        """The first run at a position with this verdict, None if there is none."""
        runs = (trial for trial, v in self._verdicts.items() if trial.position == position and v is verdict)
        return min(runs, default=None)

    @property
    def _flaky(self) -> set[int]:
        """The positions that have been both good and bad."""
        return {at for at, counts in self._sorted.items() if counts[Verdict.GOOD] and counts[Verdict.BAD]}

    @property
    def _is_placed(self) -> bool:
        """Whether the place of the change, or that there is none, is known but for repetitions."""
        return self._place.status is not LineStatus.OPEN

    def _placed(self) -> LineResult:
        self._evidence = Evidence.of(self._length, self._by_index(), self._prior) if self.is_noisy else _NOTHING
        return self._from_evidence() if self.is_noisy else self._from_survey()

    def _wanted(self, n: int, still: Sequence[Trial]) -> tuple[Trial, ...]:
        """The runs that are needed to place the change."""
        if self._is_placed:
            return ()
        return self._informative(n, still[:n]) if self.is_noisy else self._cuts(self._first, n)

    def _still_matter(self) -> tuple[Trial, ...]:
        """Requested trials without a verdict that are still useful."""
        waiting = tuple(trial for trial in self._requested if trial not in self._verdicts)
        if self.is_noisy:
            return waiting if not self._is_placed else ()
        state = self._surveyed(self._first)
        useful = state.wanted or (state.open if state.stage is Stage.CUTS else ())
        trials = {Trial(self._at_distance(distance)) for distance in useful}
        return tuple(trial for trial in waiting if trial in trials)

    # -- places: indexes count from the good end, distances from the bad end

    def _at(self, index: int) -> int:
        return self._good - index if self._find_fix else self._good + index

    def _at_distance(self, distance: int) -> int:
        return self._at(self._length - 1 - distance)

    def _by_index(self) -> Iterable[tuple[int, Verdict]]:
        sign = -1 if self._find_fix else 1
        return ((sign * (trial.position - self._good), verdict) for trial, verdict in self._verdicts.items())

    def _ordered(self, good: int, bad: int) -> tuple[int, int]:
        return (bad, good) if self._find_fix else (good, bad)

    def _suspects(self, cuts: Iterable[int]) -> tuple[int, ...]:
        """The positions that may have introduced the change, if it is at one of these boundaries."""
        return tuple(sorted(self._at(cut - 1 if self._find_fix else cut) for cut in cuts))

    @property
    def _nothing(self) -> LineStatus:
        return LineStatus.NOT_FIXED if self._find_fix else LineStatus.NOT_A_REGRESSION

    @property
    def _something(self) -> LineStatus:
        return LineStatus.FIXED if self._find_fix else LineStatus.FOUND

    # -- while nothing disagrees: a bisection, and repetitions

    def _surveyed(self, verdicts: Mapping[int, Verdict]) -> Survey:
        return survey([verdicts.get(self._at_distance(d)) for d in range(self._length)], steps=self._steps)

    def _cuts(self, verdicts: Mapping[int, Verdict], n: int) -> tuple[Trial, ...]:
        state = self._surveyed(verdicts)
        if state.stage is Stage.CUTS and not state.wanted:
            matter = {self._at_distance(distance) for distance in state.open}
            return tuple(map(Trial, cut_around(matter, [trial.position for trial in self._requested], n)))
        return tuple(Trial(self._at_distance(distance)) for distance in state.wanted[:n])

    def _from_survey(self) -> LineResult:
        state = self._surveyed(self._first)
        boundary, suspects = None, tuple[int, ...]()
        last = self._length - 1
        status = LineStatus.INCONCLUSIVE if state.stage.over else LineStatus.OPEN
        if state.bad is not None and state.good is not None:
            boundary = self._ordered(self._at_distance(state.good), self._at_distance(state.bad))
            suspects = self._suspects(range(last - state.good + 1, last - state.bad + 1))
        elif state.stage is Stage.UNTESTABLE:
            suspects = tuple(sorted(map(self._at, range(self._length))))
        elif state.stage is Stage.ALONE and state.bad is not None:
            # The older side of a regression, or the newer side of a fix, is somewhere among the skipped positions.
            first = state.bad + 1 if self._find_fix else state.bad
            suspects = tuple(sorted(self._at_distance(distance) for distance in range(first, self._length)))
        if state.stage is Stage.NO_BAD:
            status = LineStatus.NO_FAILURE
        elif state.stage is Stage.NO_GOOD:
            status = self._nothing
        elif state.stage.over and boundary is not None and boundary[1] - boundary[0] == 1:
            status = self._something
        return LineResult(status, boundary, suspects, self._moved(state))

    def _moved(self, state: Survey) -> tuple[MovedEnd, ...]:
        if state.bad_end is None or state.good_end is None:
            return ()
        moved = []
        if state.bad_end > 0:
            moved.append(MovedEnd(Verdict.BAD, self._bad, self._at_distance(state.bad_end)))
        if not self._steps and self._at_distance(state.good_end) != self._good and state.good_end != state.bad_end:
            moved.append(MovedEnd(Verdict.GOOD, self._good, self._at_distance(state.good_end)))
        return tuple(moved)

    @property
    def _again(self) -> tuple[Trial, ...]:
        """The repetitions that are still missing once the change is placed."""
        if self._missing is None:
            self._missing = self._repetitions()
        return self._missing

    def _repetitions(self) -> tuple[Trial, ...]:
        if not self._is_placed:
            return ()
        if self.is_noisy:
            return self._unmeasured
        status, boundary, confirm = self._place.status, self._place.boundary, self._noise.confirm
        if boundary is not None:
            if confirm is not None:
                return tuple(trial for side in self._sides for trial in self._until(side, confirm))
            return self._unsure() or self._unmeasured if self._sure else ()
        if confirm is not None:
            return ()
        last = [self._at_distance(d) for d in range(self._length)]
        if status is LineStatus.NO_FAILURE:
            testable = next(at for at in last if self._first.get(at, Verdict.SKIP) is not Verdict.SKIP)
            return self._until(testable, _PASSES_AGAIN)
        failures = sum(verdict is Verdict.BAD for verdict in self._verdicts.values())
        if status is self._nothing and failures < _FAILURES:
            return self._until([at for at in last if self._first.get(at) is Verdict.BAD][-1], 1)
        return ()

    @property
    def _sides(self) -> tuple[int, int]:
        """The positions of the good and the bad side."""
        older, newer = self._place.boundary or (0, 0)
        return self._ordered(older, newer)

    def _unsure(self) -> tuple[Trial, ...]:
        """The repetitions that reach the wanted confidence if all agree, the good side first."""
        sides = self._sides
        extra = Counter[int]()
        again = Counter(
            {at: sum(trial.position == at and trial.attempt > 0 for trial in self._verdicts) for at in sides}
        )
        while again.total() < _MOST_AGAIN and self._sureness(extra) < self._confidence:
            side = max(sides, key=lambda position: self._sureness(extra + Counter([position])))
            extra[side] += 1
            again[side] += 1
        return tuple(trial for side in sides for trial in self._until(side, again[side]))

    def _until(self, position: int, repetitions: int) -> tuple[Trial, ...]:
        """The runs among the first `repetitions` of a position that have no verdict."""
        every = (Trial(position, attempt) for attempt in range(1, repetitions + 1))
        return tuple(trial for trial in every if trial not in self._verdicts)

    def _agreeing(self) -> list[tuple[int, Verdict]]:
        """Index and verdict of each run, without those that belong to another stretch of bad positions."""
        older, newer = (abs(at - self._good) for at in self._sides)
        return [
            (index, verdict)
            for index, verdict in self._by_index()
            if (verdict is Verdict.BAD and index >= newer) or (verdict is Verdict.GOOD and index <= older)
        ]

    def _sureness(self, extra: Mapping[int, int]) -> float:
        """The probability that the change is where it was found, after `extra` runs (by position) that agree."""
        agreeing = self._agreeing()
        runs = Counter(index for index, _ in agreeing)
        failed = Counter(index for index, verdict in agreeing if verdict is Verdict.BAD)
        good, bad = self._sides
        low, high = abs(good - self._good), abs(bad - self._good)
        failures = self._proofs[1] + extra.get(bad, 0)
        runs[low] += self._proofs[0] + extra.get(good, 0)
        runs[high] += failures
        failed[high] += failures
        counts = {index: Counts(failed[index], number) for index, number in runs.items()}
        return sum(Posterior.of(self._length, counts, self._prior).cuts[low + 1 : high + 1])

    # -- numbers

    @property
    def _unmeasured(self) -> tuple[Trial, ...]:
        """The repetitions that are still missing until the numbers of the two sides differ clearly."""
        if self._place.boundary is None:
            return ()
        sides = self._sides
        missing = self._measured.missing(*sides)
        return tuple(trial for side, runs in zip(sides, missing, strict=True) for trial in self._fresh(side, runs))

    def _fresh(self, position: int, runs: int) -> list[Trial]:
        """The next `runs` repetitions of a position."""
        following = (Trial(position, attempt) for attempt in count(1))
        return list(islice((trial for trial in following if trial not in self._verdicts), runs))

    def _with_effect(self, result: LineResult) -> LineResult:
        """The result with its effect; INCONCLUSIVE if the effect is unclear."""
        if result.boundary is None:
            if not result.suspects:
                return result
            older = range(result.suspects[0])
            newer = range(result.suspects[-1], max(self._good, self._bad) + 1)
            good, bad = (newer, older) if self._find_fix else (older, newer)
            return evolve(result, effect=self._measured.between(good, bad))
        effect = self._measured.effect(*self._sides)
        is_final = self._noise.confirm is None and (self._sure or self.is_noisy)
        if effect is not None and not effect.is_clear and is_final:
            return evolve(result, status=LineStatus.INCONCLUSIVE, effect=effect)
        return evolve(result, effect=effect)

    # -- once runs disagree: what tells most

    def _from_evidence(self) -> LineResult:
        evidence = self._evidence
        cuts, every = evidence.likeliest, evidence.every
        flaky = tuple(sorted(self._at(index) for index in evidence.flaky))
        status = self._status(cuts)
        if not cuts or status in (LineStatus.NO_FAILURE, self._nothing):
            return LineResult(status, flaky=flaky, confidence=evidence.posterior.none, bad_side=every)
        low, high = cuts[0] - 1, cuts[-1]
        good_side, bad_side = evidence.sides(high)
        sure = status is not LineStatus.OPEN and evidence.mass(cuts) >= self._confidence
        return LineResult(
            status,
            self._ordered(self._at(low), self._at(high)) if sure and not evidence.unshown(cuts) else None,
            self._suspects(cuts if sure else evidence.credible(self._confidence)),
            flaky=flaky,
            confidence=evidence.mass(cuts),
            good_side=good_side,
            bad_side=bad_side,
            trusts_ends=self._noise.trusts_ends,
        )

    def _status(self, cuts: range) -> LineStatus:
        evidence = self._evidence
        is_spent = len(self._verdicts) >= _MOST
        ended = LineStatus.INCONCLUSIVE if is_spent else LineStatus.OPEN
        if len(evidence.untestable) >= self._length:
            return LineStatus.INCONCLUSIVE
        if not evidence.every.bad:
            is_enough = evidence.every.runs >= PASSES or is_spent or not cuts
            return LineStatus.NO_FAILURE if is_enough else LineStatus.OPEN
        if not cuts or evidence.posterior.none >= self._confidence:
            return self._nothing
        if evidence.mass(cuts) < self._confidence:
            return ended
        unshown = evidence.unshown(cuts)
        if not unshown:
            return self._something if len(cuts) == 1 else LineStatus.INCONCLUSIVE
        is_lost = any(index in evidence.untestable or evidence.at(index).runs >= PASSES for index in unshown)
        return LineStatus.INCONCLUSIVE if is_lost else ended

    def _worths(self) -> list[float]:
        """Bits per second of a run at each index, 0 where it can't be run."""
        return self._evidence.worths(lambda index: self._seconds(self._at(index)), self._confidence)

    def _informative(self, n: int, running: Sequence[Trial]) -> tuple[Trial, ...]:
        """The running trials, then the next attempts at the positions that are most informative.

        A further run at a position counts half, a third, and so on: it tells less before the others have ended. If a
        boundary is certain enough to be named, its sides come first if no run has confirmed them yet.
        """
        evidence = self._evidence
        following: dict[int, int] = {}
        for trial in (*self._verdicts, *self._requested, *running):
            following[trial.position] = max(following.get(trial.position, 0), trial.attempt + 1)
        times = Counter(abs(trial.position - self._good) for trial in running)
        cuts = evidence.likeliest
        is_named = cuts and evidence.every.bad and evidence.mass(cuts) >= self._confidence
        unshown = [index for index in evidence.unshown(cuts) if not times[index]] if is_named else []
        worths = self._worths()
        chosen = list(running)
        while len(chosen) < n:
            shares = [round(worth / (1 + times[index]), _DIGITS) for index, worth in enumerate(worths)]
            index = unshown.pop(0) if unshown else max(range(self._length), key=lambda i: (shares[i], i))
            times[index] += 1
            position = self._at(index)
            chosen.append(Trial(position, following.get(position, 0)))
            following[position] = chosen[-1].attempt + 1
        return tuple(chosen)

    def _remaining_in_noise(self) -> int:
        """Estimate of the runs left, from the information of the best one; at most those that are allowed."""
        cuts = self._evidence.posterior.cuts
        left = -sum(w * math.log2(w) for w in cuts if w > 0) + math.log2(1 / (1 - self._confidence))
        bits = max(self._worths(), default=0.0)
        return max(1, min(_MOST - len(self._verdicts), math.ceil(left / bits) if bits > 0 else _MOST))


_NOTHING = Evidence.of(1, (), PRIOR)
