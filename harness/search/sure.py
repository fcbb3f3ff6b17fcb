"""A bisection that does not trust one lucky run: it repeats the runs at the change until the result is sure.

First it runs a plain bisection. Then it reruns the good side of the change, because a flaky bug may have passed there
by luck. The number of repetitions follows from the posterior over all boundaries (`posterior.py`): with k failures on
the bad side, m passes at and before the good side and an unknown failure rate p, the weight of each rival boundary is
the integral of p^k (1 - p)^m. Repetitions continue until all rivals together are below 1 - confidence. At p = 0.5 or
0.9, under 1 % of the answers over 8, 30 and 100 releases name a wrong release (simulated in tests/search/test_sure.py).

If a repetition disagrees, the bug is flaky, and a `NoisySearch` continues with all runs. If the bug is recognised by a
number, both sides are rerun until their numbers differ clearly (`measured.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import count, islice

from attrs import evolve

from harness.model.boundary import Counts, Effect
from harness.model.verdict import Verdict
from harness.search.bisection import Bisection, BisectionResult, BisectionStatus
from harness.search.measured import Gauges, Measurements
from harness.search.noisy import NoisySearch
from harness.search.protocol import PositionState, Trial, record
from harness.search.rates import CONFIDENCE, FLAKY, TRUSTED_ENDS, Noise, Posterior

_PASSES_AGAIN = 6  # repetitions if the bad end passed; of bugs that fail half the time, 1 in 128 passes every run
_FAILURES = 3  # failures that are enough to show that nothing older is good
_MOST_AGAIN = 16  # limit of repetitions, so that the search always ends

_NO_GAUGES = Gauges()
_NO_NOISE = Noise()


class SureBisection:
    """Search over positions 0 (oldest) to count - 1 (newest); its candidates are `Trial`s.

    `good`, `bad`, `find_fix` are those of `Bisection`. `confirm`: None repeats runs until the result is sure, and a bad
    end that passed six times; a number repeats each side exactly that often (0: one run of each is enough, and the
    result says how sure it is). `noise`: the required confidence, and whether to start as a noisy search. `patient`:
    the caller does the repetitions, reports them with `support` and `tell`, and requests those still missing with
    `insist`. `gauges`: the durations of runs, and the numbers by which they were judged.
    """

    def __init__(
        self,
        count: int,
        *,
        good: int | None = None,
        bad: int | None = None,
        find_fix: bool = False,
        confirm: int | None = None,
        noise: Noise = _NO_NOISE,
        patient: bool = False,
        gauges: Gauges = _NO_GAUGES,
    ) -> None:
        self._plain = Bisection(count, good=good, bad=bad, find_fix=find_fix)
        # Half of the allowed error is kept back: the noisy search may follow on this one, and its prior may be wrong.
        self._error = (1 - noise.confidence) / 2
        self._wanted = noise.confidence + self._error
        self._in_noise = NoisySearch(
            count,
            good=good,
            bad=bad,
            find_fix=find_fix,
            confidence=self._wanted,
            seconds=gauges.seconds,
            prior=TRUSTED_ENDS if noise.trusts_ends else FLAKY,
        )
        self._measured = Measurements(gauges.number, CONFIDENCE)
        self._confirm = confirm
        self._find_fix = find_fix
        self._patient = patient
        self._ends = (
            good if good is not None else count - 1 if find_fix else 0,
            bad if bad is not None else 0 if find_fix else count - 1,
        )
        self._told: dict[Trial, Verdict] = {}
        self._support: dict[tuple[int, int], tuple[int, int]] = {}
        self._noisy: NoisySearch | None = self._in_noise if noise.flaky else None

    def ask(self, n: int = 1) -> tuple[Trial, ...]:
        """Up to n trials to run now; earlier requests that still matter come first."""
        if self._noisy is not None:
            return self._noisy.ask(n) or self._unmeasured[: max(n, 0)]
        return self._plain.ask(n) or self._again[: max(n, 0)]

    def foresee(self, n: int) -> tuple[Trial, ...]:
        """Up to n positions that may be requested next. Repetitions need no preparation and are left out."""
        return self._plain.foresee(n) if self._noisy is None else self._noisy.foresee(n)

    def tell(self, candidate: Trial, verdict: Verdict) -> None:
        """Record a verdict. Raises ValueError for an unknown position or a second, different verdict of one run."""
        self._record(candidate, verdict)
        self._measured.tell(candidate, verdict)
        result = self._plain.result if self._noisy is None else self._noisy.result
        self._measured.name(None if result.status is BisectionStatus.OPEN else result.boundary)

    def _record(self, candidate: Trial, verdict: Verdict) -> None:
        """Pass the verdict to the current search, and start the noisy one if verdicts disagree."""
        if self._noisy is not None:
            record(self._told, candidate, verdict)
            self._noisy.tell(candidate, verdict)
            return
        self._plain.tell(candidate, verdict)
        record(self._told, candidate, verdict)
        if self._confirm != 0 and self._flaky:
            self._noisy = self._in_noise
            for trial, told in self._told.items():
                self._noisy.tell(trial, told)

    def support(self, passes: int, failures: int) -> None:
        """Set how many further runs confirmed the change: passes without it, failures with it."""
        if (boundary := self._plain.result.boundary) is not None:
            self._support = {**self._support, boundary: (passes, failures)}

    def repetitions(self, passes: int, failures: int) -> tuple[Trial, ...]:
        """The repetitions that will be missing if this many further runs confirm the change; see `support`."""
        result = self._plain.result
        if self.is_noisy or not self.done or result.boundary is None or self._confirm is not None:
            return ()
        return self._repetitions(result, (passes, failures))

    def insist(self) -> None:
        """Stop being patient: request the repetitions that are still missing."""
        self._patient = False

    @property
    def is_noisy(self) -> bool:
        """Whether the noisy search is used, because one run can't tell good from bad."""
        return self._noisy is not None

    @property
    def done(self) -> bool:
        """Whether nothing is left to run."""
        if self._noisy is not None:
            return self._noisy.done and not self._unmeasured
        return self._plain.done and not self._again

    def remaining(self) -> int:
        """Upper estimate of the runs left, if they run one at a time and none is skipped or disagrees."""
        if self._noisy is not None:
            return self._noisy.remaining() or len(self._unmeasured)
        if self._plain.done:
            return len(self._again)
        if self._confirm is not None:
            return self._plain.remaining() + 2 * self._confirm
        return self._plain.remaining() + (0 if self._patient else _PASSES_AGAIN)

    def verdict_of(self, position: int, verdict: Verdict) -> Trial | None:
        """The first run at a position with this verdict, None if there is none."""
        return min((t for t, told in self._told.items() if t.position == position and told is verdict), default=None)

    @property
    def result(self) -> BisectionResult:
        """What is known so far."""
        if self._noisy is not None:
            result = self._noisy.result
            if result.confidence is not None and result.boundary is not None:
                result = evolve(result, confidence=result.confidence - self._error)
            return self._with_effect(result, self._unmeasured)
        result = self._plain.result
        if result.boundary is not None and result.status is not BisectionStatus.OPEN:
            good, bad = self._sides(result)
            more = dict(zip(self._boundary(result), self._support.get(result.boundary, (0, 0)), strict=True))
            result = evolve(result, confidence=self._sureness(result, more), good_side=good, bad_side=bad)
            if flaky := tuple(sorted(self._flaky.intersection(result.boundary or ()))):
                result = evolve(result, status=BisectionStatus.FLAKY, flaky=flaky)
        return self._with_effect(result, self._again if self._plain.done else ())

    @property
    def states(self) -> tuple[PositionState, ...]:
        """The state of every position, for display; excluded positions can no longer affect the result."""
        return self._plain.states if self._noisy is None else self._noisy.states

    @property
    def _flaky(self) -> set[int]:
        """The positions that have been both good and bad."""
        good, bad = (
            {trial.position for trial, told in self._told.items() if told is verdict}
            for verdict in (Verdict.GOOD, Verdict.BAD)
        )
        return good & bad

    @property
    def _again(self) -> tuple[Trial, ...]:
        """The repetitions that are still missing after the plain bisection."""
        result = self._plain.result
        match result.status:
            case BisectionStatus.NO_FAILURE if self._confirm is None:
                testable = (t.position for t, verdict in self._from_bad_end() if verdict is not Verdict.SKIP)
                return self._trials(next(testable), _PASSES_AGAIN)
            case BisectionStatus.NOT_A_REGRESSION | BisectionStatus.NOT_FIXED if self._confirm is None:
                failures = sum(verdict is Verdict.BAD for verdict in self._told.values())
                nearest_to_good = [t.position for t, verdict in self._from_bad_end() if verdict is Verdict.BAD][-1]
                return self._trials(nearest_to_good, 1) if failures < _FAILURES else ()
            case _ if result.boundary is not None and self._confirm is not None:
                return tuple(t for side in self._boundary(result) for t in self._trials(side, self._confirm))
            case _ if result.boundary is not None and not self._patient:
                return self._repetitions(result, self._support.get(result.boundary, (0, 0)))
            case _:
                return ()

    @property
    def _unmeasured(self) -> tuple[Trial, ...]:
        """The repetitions that are still missing until the numbers of the two sides differ clearly."""
        result = self._plain.result if self._noisy is None else self._noisy.result
        if result.boundary is None or result.status is BisectionStatus.OPEN:
            return ()
        good, bad = self._boundary(result)
        more = self._measured.missing(good, bad)
        return tuple(trial for side, runs in zip((good, bad), more, strict=True) for trial in self._fresh(side, runs))

    def _fresh(self, position: int, runs: int) -> list[Trial]:
        """The next `runs` repetitions of a position."""
        following = (Trial(position, attempt) for attempt in count(1))
        return list(islice((trial for trial in following if trial not in self._told), runs))

    def _with_effect(self, result: BisectionResult, missing: tuple[Trial, ...]) -> BisectionResult:
        """The result with its effect: OPEN while runs are missing, INCONCLUSIVE if the effect is unclear."""
        if missing:
            return evolve(result, status=BisectionStatus.OPEN)
        if result.status is BisectionStatus.OPEN:
            return result
        if result.boundary is None:
            return evolve(result, effect=self._effect_around(result))
        effect = self._measured.effect(*self._boundary(result))
        if effect is None or effect.is_clear or self._confirm is not None or (self._patient and self._noisy is None):
            return evolve(result, effect=effect)
        return evolve(result, status=BisectionStatus.INCONCLUSIVE, effect=effect)

    def _effect_around(self, result: BisectionResult) -> Effect | None:
        """How much the number differs before and after the suspects, None if there are none."""
        if not result.suspects:
            return None
        older, newer = range(result.suspects[0]), range(result.suspects[-1], max(self._ends) + 1)
        return self._measured.between(*((newer, older) if self._find_fix else (older, newer)))

    def _repetitions(self, result: BisectionResult, support: tuple[int, int]) -> tuple[Trial, ...]:
        """The repetitions that reach the wanted confidence if all agree, the good side first, with such support."""
        sides = self._boundary(result)
        more = Counter(dict(zip(sides, support, strict=True)))
        again = Counter({side: self._repeated(side) for side in sides})
        while again.total() < _MOST_AGAIN and self._sureness(result, more) < self._wanted:
            side = max(sides, key=lambda position: self._sureness(result, more + Counter([position])))
            more[side] += 1
            again[side] += 1
        return tuple(trial for side in sides for trial in self._trials(side, again[side])) or self._unmeasured

    def _repeated(self, position: int) -> int:
        return sum(trial.position == position and trial.attempt > 0 for trial in self._told)

    def _trials(self, position: int, repetitions: int) -> tuple[Trial, ...]:
        """The runs among the first `repetitions` of a position that have no verdict."""
        every = (Trial(position, attempt) for attempt in range(1, repetitions + 1))
        return tuple(trial for trial in every if trial not in self._told)

    def _boundary(self, result: BisectionResult) -> tuple[int, int]:
        """The positions of the good and the bad side."""
        older, newer = result.boundary or self._ends
        return (newer, older) if self._find_fix else (older, newer)

    def _sides(self, result: BisectionResult) -> tuple[Counts, Counts]:
        """The runs on both sides of the change, without those that belong to another window."""
        good, bad = self._boundary(result)
        sides = Counter(verdict for _, verdict in self._standing(good, bad))
        passes, failures = self._support.get(result.boundary or self._ends, (0, 0))
        return Counts(0, sides[Verdict.GOOD] + passes), Counts(*[sides[Verdict.BAD] + failures] * 2)

    def _standing(self, good: int, bad: int) -> Iterator[tuple[int, Verdict]]:
        """Position and verdict of each run that does not belong to another window."""
        newer, older = (good, bad) if self._find_fix else (bad, good)
        for trial, verdict in self._told.items():
            is_newer = (verdict is Verdict.BAD) is not self._find_fix
            if verdict is not Verdict.SKIP and (trial.position >= newer if is_newer else trial.position <= older):
                yield trial.position, verdict

    def _sureness(self, result: BisectionResult, more: Mapping[int, int]) -> float:
        """The probability that the change is where it was found, after `more` runs (by position) that agree."""
        good, bad = self._boundary(result)
        start, end = self._ends
        length = abs(end - start) + 1
        counts: dict[int, Counts] = {}

        def add(position: int, verdict: Verdict, runs: int = 1) -> None:
            before = counts.get(index := abs(position - start), Counts())
            counts[index] = Counts(before.bad + runs * (verdict is Verdict.BAD), before.runs + runs)

        for position, verdict in self._standing(good, bad):
            add(position, verdict)
        add(good, Verdict.GOOD, more.get(good, 0))
        add(bad, Verdict.BAD, more.get(bad, 0))
        cuts = Posterior.of(length, counts).cuts
        return sum(cuts[cut] for cut in range(abs(good - start) + 1, abs(bad - start) + 1))

    def _from_bad_end(self) -> list[tuple[Trial, Verdict]]:
        first = [(trial, verdict) for trial, verdict in self._told.items() if trial.attempt == 0]
        return sorted(first, key=lambda item: abs(item[0].position - self._ends[1]))
