"""The search over an axis: finds the two neighbours between which the verdict changes.

An axis is any ordered row of candidates: the releases of a package, the commits of a branch, Pythons. The search never
names one on a lucky run (see `harness.search.line`). It can go on later: runs of the two sides that deeper levels make
count as repetitions, for or against the result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from attrs import define, evolve, field, frozen

from harness.errors import UserMistake
from harness.events import SILENT, Progress, Reporter, SearchBegan, SignatureCaptured, run_label
from harness.model import Judgement, Observation, Signature, Verdict
from harness.model.text import listed
from harness.model.verdict import Step
from harness.probing.lanes import Engine
from harness.question.question import Policy
from harness.search import Gauges, LineSearch, Noise, Trial

if TYPE_CHECKING:
    from harness.culprit.sides import Sides
    from harness.model.culprit import Culprit
    from harness.probing import Judge, Probe
    from harness.probing.lanes import Lanes
    from harness.probing.probe import Probing

_SHOWN = 5


@frozen
class Axis:
    """A line of candidates, the oldest first.

    `subject` is what they are candidates of, `names` are their names, and `probe` makes the probe of a trial. `good`
    and `bad` are the positions of the two ends, None for an end that the search has to find. `find_fix` says that the
    good end is the newer one. `unit` is what one candidate is called; `label` names one where its name is too short.
    """

    subject: str
    names: tuple[str, ...]
    probe: Callable[[Trial], Probe]
    good: int | None = None
    bad: int | None = None
    find_fix: bool = False
    unit: str = "release"
    label: Callable[[int], str] | None = None

    def label_of(self, trial: Trial) -> str:
        """Return the name of a run, with its number if it is a repetition."""
        name = self.label(trial.position) if self.label is not None else self.names[trial.position]
        return run_label(name, trial.attempt)


@define
class RunLog:
    """The runs of a search so far, in order; `ran` counts those that did not come from the store.

    Without a signature, the first failure that can be recognised again provides it; `captured_from` describes that run.
    """

    judge: Judge
    captured_from: str = "the first failing run"
    reporter: Reporter = SILENT
    steps: list[Step] = field(factory=list)
    observations: dict[Trial, Observation] = field(factory=dict)
    ran: int = 0

    @property
    def signature(self) -> Signature | None:
        """The signature that the runs are judged by, None as long as there is none."""
        return self.judge.signature

    def take(self, trial: Trial, name: str, observation: Observation, *, cached: bool) -> Judgement:
        """Record the run of the candidate `name`, and judge it.

        Raises `UserMistake` if there is no signature yet and the run failed because the command is wrong.
        """
        self.observations[trial] = observation
        if self.signature is None:
            if observation.mistake:
                raise UserMistake(
                    f"this failure is not a bug: {observation.mistake}", hint=f"the run: {observation.key}"
                )
            captured = self.judge.captured(observation)
            if captured is not None:
                self.judge = evolve(self.judge, signature=captured)
                self.reporter.report(SignatureCaptured(captured, self.captured_from))
        judgement = self.judge(observation)
        seconds = 0.0 if cached else observation.duration_s
        self.steps.append(
            Step(
                name,
                judgement.verdict,
                judgement.reason,
                observation.key,
                cached,
                seconds,
                trial.attempt,
                observation.drift,
                observation.altered,
            )
        )
        self.ran += not cached and observation.outcome.ran
        return judgement

    def number(self, trial: Trial) -> float | None:
        """The number by which a run was judged; None if it was judged by something else."""
        observation = self.observations.get(trial)
        return None if observation is None or self.signature is None else self.signature.number(observation)

    def seconds(self, position: int) -> float:
        """The expected seconds of a run: the mean of those at the position, else of all with their preparation."""
        here = [seen.duration_s for trial, seen in self.observations.items() if trial.position == position]
        every = here or [seen.duration_s + seen.setup_s for seen in self.observations.values()]
        return sum(every) / len(every) or 1.0 if every else 1.0


@frozen
class Searched:
    """A search over an axis, as far as it went; `wall_s` in seconds."""

    axis: Axis
    search: LineSearch
    record: RunLog
    wall_s: float = 0.0

    @property
    def sides(self) -> tuple[Observation, ...]:
        """One run of each side of the change with the verdict of that side, the older side first; fewer if unknown."""
        boundary = self.search.result.boundary or ()
        verdicts = (Verdict.BAD, Verdict.GOOD) if self.axis.find_fix else (Verdict.GOOD, Verdict.BAD)
        seen = self.record.observations
        trials = (self.search.verdict_of(*side) for side in zip(boundary, verdicts, strict=False))
        return tuple(seen[trial] for trial in trials if trial in seen)

    @property
    def suspects(self) -> tuple[str, ...]:
        """The candidates that may have introduced the change; a single one if it is certain."""
        return tuple(self.axis.names[position] for position in self.search.result.suspects)


@frozen
class AxisSearch:
    """Searches one axis; `policy` says how sure the result has to be."""

    axis: Axis
    judge: Judge
    prober: Probing
    lanes: Lanes
    reporter: Reporter
    policy: Policy = Policy()

    def begin(
        self, known: Mapping[Trial, Observation] | None = None, *, sure: bool = True, captured_from: str = ""
    ) -> Searched:
        """Return the search before its first run; `known` are runs that were made before.

        Unless it has to be `sure`, it ends without repetitions. `captured_from` says which run the signature is
        captured from, if there is none.
        """
        record = RunLog(self.judge, captured_from or "the first failing run", self.reporter)
        search = self._search(record, sure, (0, 0))
        for trial, observation in (known or {}).items():
            name = self.axis.names[trial.position]
            search.tell(trial, record.take(trial, name, observation, cached=True).verdict)
        return Searched(self.axis, search, record)

    def surely(self, searched: Searched, proofs: tuple[int, int] = (0, 0)) -> Searched:
        """Return the search that goes on until it is sure; `proofs` are runs like those of its two sides."""
        record = searched.record
        search = self._search(record, True, proofs)
        for trial, observation in record.observations.items():
            search.tell(trial, record.judge(observation).verdict)
        return evolve(searched, search=search)

    def _search(self, record: RunLog, sure: bool, proofs: tuple[int, int]) -> LineSearch:
        axis, policy = self.axis, self.policy
        return LineSearch(
            len(axis.names),
            good=axis.good,
            bad=axis.bad,
            find_fix=axis.find_fix,
            noise=Noise(policy.flaky, policy.confidence, policy.trust_ends, policy.confirm),
            gauges=Gauges(record.seconds, record.number),
            sure=sure,
            proofs=proofs,
        )

    def announce(self, headline: str, details: tuple[str, ...], searched: Searched) -> None:
        """Report that the search begins."""
        self.reporter.report(SearchBegan(headline, details, self._progress(searched.search)))

    def run(self, searched: Searched, fresh: Collection[str] = ()) -> Searched:
        """Run a search to its end, with everything it knows; `fresh` has the keys of runs made beside another search.

        Raises `Interrupted`, `NoNetwork`, `NoSpace`.
        """
        begun = time.monotonic()
        axis, search, record = self.axis, searched.search, searched.record

        def judged(trial: Trial, observation: Observation, cached: bool) -> Judgement:
            return record.take(trial, axis.names[trial.position], observation, cached=cached)

        engine = Engine(
            self.prober,
            self.lanes,
            axis.probe,
            axis.label_of,
            judged,
            self.reporter,
            lambda: self._progress(search),
            fresh=fresh,
        )
        # One at a time until there is a signature: it may be captured from the bad end.
        engine.drive(search, width=1, until=lambda: record.signature is not None)
        engine.drive(search)
        return evolve(searched, wall_s=searched.wall_s + time.monotonic() - begun)

    def _progress(self, search: LineSearch) -> Progress:
        unit = "run" if self.axis.unit == "release" else self.axis.unit
        return Progress(search.states, search.remaining(), unit=unit)


def count_proofs(searched: Searched, sides: Sides, culprit: Culprit | None, failed: int = 0) -> tuple[int, int]:
    """Add the proofs of deeper levels that are runs of the two sides; returns the number of other passes and failures.

    A proof in a side's own lock without exchanged files is such a run. Other proofs, and a traced run of a side, count
    only if all had the expected verdict: a failed proof may be a sign of a flaky bug. `failed` counts those that did
    not hold, also of what is no finding: findings are chosen because their proofs hold, which may be luck.
    """
    positions = dict(
        zip((sides.before.lock.id, sides.after.lock.id), searched.search.result.boundary or (), strict=False)
    )
    held = {Verdict.GOOD: 0, Verdict.BAD: 0}
    told: set[str] = set()
    is_flawless = not failed
    known = searched.record.observations
    for proof in (proof for finding in culprit.findings for proof in finding.proofs) if culprit else ():
        seen = proof.observation
        if seen is None or seen.lock is None or seen.key in told:
            continue
        told.add(seen.key)
        trial = Trial(positions[seen.lock.id], seen.attempt) if seen.lock.id in positions else None
        if trial is not None and not seen.mixture and known.setdefault(trial, seen).key == seen.key:
            continue
        if proof.is_expected:
            held[proof.verdict] += 1
        else:
            is_flawless = False
    return (held[Verdict.GOOD], held[Verdict.BAD]) if is_flawless else (0, 0)


def left_out_words(reasons: Mapping[str, str]) -> tuple[str, ...]:
    """Return one sentence for each reason why candidates are left out; `reasons` maps names to reasons."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        by_reason.setdefault(reason, []).append(name)
    return tuple(f"left out: {listed(names, _SHOWN)} ({reason})" for reason, names in by_reason.items())
