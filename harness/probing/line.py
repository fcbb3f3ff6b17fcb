"""The search over a line of probes: finds the two neighbours between which the verdict changes.

A line is any ordered row of candidates: the releases of a package, the commits of a branch, Pythons. The search never
names one on a lucky run (see `harness.search.line`). It can go on later: runs of the two sides that deeper levels make
count as repetitions, for or against the result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from attrs import define, evolve, field, frozen

from harness.errors import UserMistake
from harness.events import SILENT, Progress, Reporter, SearchBegan, SignatureCaptured, run_label
from harness.model import Judgement, Observation, Signature, Verdict
from harness.model.text import listed
from harness.model.verdict import Step
from harness.probing.lanes import Engine
from harness.probing.probe import is_warm
from harness.search import Gauges, Grid, LineSearch, Noise, Trial

if TYPE_CHECKING:
    from harness.probing import Judge, Probe
    from harness.probing.lanes import Lanes
    from harness.probing.probe import Probing

_SHOWN = 5
_MANY = 99  # repetitions
_USUAL = Noise()


@frozen
class Line:
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
    """The runs of a search over a line so far, in order; `ran` counts those that did not come from the store.

    Without a signature, the first failure that can be recognised again provides it; `captured_from` describes that run.
    `claimed` are fresh runs, by position, of candidates whose own runs were all forks.
    """

    line: Line
    judge: Judge
    captured_from: str = "the first failing run"
    reporter: Reporter = SILENT
    steps: list[Step] = field(factory=list)
    observations: dict[Trial, Observation] = field(factory=dict)
    claimed: dict[int, Observation] = field(factory=dict)
    ran: int = 0

    @property
    def signature(self) -> Signature | None:
        """The signature that the runs are judged by, None as long as there is none."""
        return self.judge.signature

    def take(self, trial: Trial, observation: Observation, cached: bool) -> Judgement:
        """Record a run, and judge it; `cached`: it was made before.

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
                self.line.names[trial.position],
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

    def probe_of(self, trial: Trial) -> Probe:
        """The probe of a trial. What will be claimed is fresh: the runs of the ends, and repetitions.

        The first repetition of a fork is the same probe in a fresh process.
        """
        line, ends = self.line, {self.line.good, self.line.bad} - {None}
        ends = ends or {0, len(line.names) - 1}
        if trial.attempt:
            attempt = trial.attempt - self.forks_at(trial.position)
            return evolve(line.probe(Trial(trial.position, attempt)), fresh=True)
        return evolve(line.probe(trial), fresh=trial.position in ends)

    def forks_at(self, position: int) -> int:
        """How many of the runs of a candidate were forks: its first one, or none."""
        first = self.observations.get(Trial(position))
        return int(first is not None and is_warm(first))

    def fresh_of(self, position: int, verdict: Verdict) -> Trial | None:
        """The first trial of a candidate that a fresh process gave this verdict; None if there is none."""
        trials = (trial for trial in sorted(self.observations) if trial.position == position)
        runs = ((trial, self.observations[trial]) for trial in trials)
        return next((trial for trial, run in runs if not is_warm(run) and self.judge(run).verdict is verdict), None)

    def number(self, trial: Trial) -> float | None:
        """The number by which a run was judged; None if it was judged by something else."""
        observation = self.observations.get(trial)
        return None if observation is None else self.judge.number(observation)

    def seconds(self, position: int) -> float:
        """The expected seconds of a run: the mean of those at the position, else of all with their preparation."""
        at_position = [run.duration_s for trial, run in self.observations.items() if trial.position == position]
        every = at_position or [run.duration_s + run.setup_s for run in self.observations.values()]
        return sum(every) / len(every) or 1.0 if every else 1.0


@frozen
class SearchedLine:
    """A search over a line, as far as it went."""

    search: LineSearch
    record: RunLog

    @property
    def line(self) -> Line:
        """What is searched."""
        return self.record.line

    @property
    def trials(self) -> tuple[Trial, ...]:
        """One trial of each side of the change with the verdict of that side, the older first; fewer if unknown."""
        boundary = self.search.result.boundary or ()
        verdicts = (Verdict.BAD, Verdict.GOOD) if self.line.find_fix else (Verdict.GOOD, Verdict.BAD)
        sides = list(zip(boundary, verdicts, strict=False))
        trials = (self.record.fresh_of(*side) or self.search.verdict_of(*side) for side in sides)
        return tuple(trial for trial in trials if trial in self.record.observations)

    @property
    def sides(self) -> tuple[Observation, ...]:
        """One run of each side of the change, a fresh one if there is any; see `trials`."""
        record = self.record
        return tuple(
            record.claimed.get(trial.position, record.observations[trial])
            if is_warm(record.observations[trial])
            else record.observations[trial]
            for trial in self.trials
        )

    @property
    def skipped_forks(self) -> tuple[int, ...]:
        """The first and the last of the suspects that were skipped because of a fork, without a fresh run."""
        record, suspects = self.record, self.search.result.suspects
        untested = [position for position in suspects if Trial(position, 1) not in record.observations]
        forks = [position for position in untested if record.forks_at(position)]
        judged = {position: record.judge(record.observations[Trial(position)]) for position in forks}
        skipped = [position for position in forks if judged[position].verdict is Verdict.SKIP]
        return tuple(dict.fromkeys([*skipped[:1], *skipped[-1:]]))

    @property
    def suspects(self) -> tuple[str, ...]:
        """The candidates that may have introduced the change; a single one if it is certain."""
        return tuple(self.line.names[position] for position in self.search.result.suspects)


@frozen
class ProbedLine:
    """A line with what runs and judges its probes; `noise` says how sure the result has to be."""

    line: Line
    judge: Judge
    prober: Probing
    lanes: Lanes
    reporter: Reporter
    noise: Noise = _USUAL

    def search(
        self,
        known: Mapping[Trial, Observation] | None = None,
        *,
        sure: bool = True,
        announced: tuple[str, tuple[str, ...]] | None = None,
        captured_from: str = "the first failing run",
        fresh: Collection[str] = (),
    ) -> SearchedLine:
        """Search the line; `known` are runs that were made before, those in `fresh` (keys) for this search.

        Unless it has to be `sure`, it ends once two neighbours are named. `announced` are a headline and its details,
        reported before the first run. `captured_from` says which run the signature is captured from, if there is none.
        Raises `Interrupted`, `NoNetwork`, `NoSpace`.
        """
        record = RunLog(self.line, self.judge, captured_from, self.reporter)
        search = self._search(record, (0, 0), sure=sure)
        for trial, observation in (known or {}).items():
            search.tell(trial, record.take(trial, observation, observation.key not in fresh).verdict)
        if announced is not None:
            self.reporter.report(SearchBegan(*announced, self._progress(search)))
        return self._run(SearchedLine(search, record))

    def confirmed(self, searched: SearchedLine, runs: Iterable[Observation] = ()) -> SearchedLine:
        """Have a fresh run of each side of the change, of those in `runs` or made now, because they are claimed.

        Skips between the sides are claimed, too. If a fork of such a candidate is right, others are believed.
        Raises `ForksDisagree`, `Interrupted`, `NoNetwork` and `NoSpace`.
        """
        record, line = searched.record, self.line
        fresh = {run.lock.id: run for run in runs if run.lock is not None and not run.mixture and not is_warm(run)}
        missing: list[Trial] = []
        for trial, run in zip(searched.trials, searched.sides, strict=True):
            if is_warm(run) and run.lock is not None and run.lock.id in fresh:
                record.claimed[trial.position] = fresh[run.lock.id]
            elif is_warm(run):
                missing.append(Trial(trial.position, 1))
        missing += [Trial(position, 1) for position in searched.skipped_forks]

        def judged(number: int, observation: Observation, cached: bool) -> Judgement:
            trial = missing[number]
            judgement = record.take(trial, observation, cached)
            searched.search.tell(trial, judgement.verdict)
            return judgement

        grid = Grid(len(missing))
        Engine(
            self.prober,
            self.lanes,
            lambda number: record.probe_of(missing[number]),
            lambda number: line.label_of(missing[number]),
            judged,
            self.reporter,
            lambda: Progress(left=grid.remaining()),
        ).drive(grid)
        return searched

    def search_on(
        self, searched: SearchedLine, proofs: tuple[int, int] = (0, 0), fresh: Callable[[], Collection[str]] = tuple
    ) -> SearchedLine:
        """Go on with a search until it is sure. All that it knows are the runs.

        `proofs` are runs like those of its good and its bad side. `fresh` returns the keys of runs made beside it, if
        any are needed. Raises `Interrupted`, `NoNetwork`, `NoSpace`.
        """
        searched = evolve(searched, search=self._surely(searched.record, proofs))
        return searched if searched.search.done else self._run(searched, fresh())

    def repetitions(self, searched: SearchedLine, proofs: tuple[int, int]) -> tuple[Trial, ...]:
        """The repetitions that `search_on` will make after so many proofs, if nothing disagrees."""
        is_open = self.noise.confirm is None and not searched.search.is_noisy
        return self._surely(searched.record, proofs).ask(_MANY) if is_open else ()

    def _surely(self, record: RunLog, proofs: tuple[int, int]) -> LineSearch:
        search = self._search(record, proofs, sure=True)
        for trial, observation in record.observations.items():
            search.tell(trial, record.judge(observation).verdict)
        return search

    def _search(self, record: RunLog, proofs: tuple[int, int], *, sure: bool) -> LineSearch:
        return LineSearch(
            len(self.line.names),
            good=self.line.good,
            bad=self.line.bad,
            find_fix=self.line.find_fix,
            noise=self.noise,
            gauges=Gauges(record.seconds, record.number),
            sure=sure,
            proofs=proofs,
        )

    def _run(self, searched: SearchedLine, fresh: Collection[str] = ()) -> SearchedLine:
        search, record = searched.search, searched.record
        engine = Engine(
            self.prober,
            self.lanes,
            record.probe_of,
            self.line.label_of,
            record.take,
            self.reporter,
            lambda: self._progress(search),
            fresh=fresh,
        )
        # One at a time until there is a signature: it may be captured from the bad end.
        engine.drive(search, width=1, until=lambda: record.signature is not None)
        engine.drive(search)
        return searched

    def _progress(self, search: LineSearch) -> Progress:
        unit = "run" if self.line.unit == "release" else self.line.unit
        return Progress(search.states, search.remaining(), unit=unit)


def left_out_words(reasons: Mapping[str, str]) -> tuple[str, ...]:
    """Return one sentence for each reason why candidates are left out; `reasons` maps names to reasons."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        by_reason.setdefault(reason, []).append(name)
    # A reason may end with the option that lifts it, in brackets.
    flat = ((re.sub(r" \((--.*)\)$", r"; \1", reason), names) for reason, names in by_reason.items())
    return tuple(f"left out: {listed(names, _SHOWN)} ({reason})" for reason, names in flat)
