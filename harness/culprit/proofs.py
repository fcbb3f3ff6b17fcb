"""Proofs: counterfactuals that were run in fresh processes and judged, for all levels of a question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial

from attrs import define, evolve, field, frozen

from harness.culprit.clues import files_to_trace, used_units
from harness.culprit.sides import Exchange, Side, Sides
from harness.environment import Index
from harness.events import SILENT, Judged, LevelBegan, Progress, Reporter, Started
from harness.model import (
    Combination,
    Judgement,
    Lock,
    Mixture,
    Observation,
    Verdict,
)
from harness.model.culprit import Finding, Level, Proof
from harness.probing import Judge, Prepared, Probe, next_attempt
from harness.probing.lanes import Engine, Lanes, Priority, Task
from harness.probing.line import SearchedLine
from harness.probing.probe import Around, Probing, is_warm, run_ahead
from harness.question.question import Question
from harness.search import Grid, Trial


@frozen
class Claim:
    """A counterfactual to prove: the sentence that describes it, its probe, and the expected verdict."""

    sentence: str
    probe: Probe
    expected: Verdict


@frozen
class Unseen(Around):
    """A prober that never returns a seen run: it repeats a probe whose key is in `used`."""

    prober: Probing
    used: frozenset[str]

    def prepare(self, probe: Probe) -> Prepared:
        """Prepare the first repetition of the probe that was not seen."""
        prepared = self.prober.prepare(probe)
        while prepared.key in self.used:
            probe = next_attempt(probe)
            prepared = self.prober.prepare(probe)
        return prepared


@define
class Tally:
    """The state that all levels of a question share.

    `ran_now` counts the probes that ran, without those answered by the store; `searched` is the last bisection over
    releases, and `sides` are the nearest ones that differ in the culprit package. `used` has the keys of observations
    that a search or a proof has used: none of them can prove a claim later. `failed` counts the proofs that did not
    hold, also of what is not a finding. `begun` are the claims whose runs go on beside the search.
    """

    ran_now: int = 0
    searched: SearchedLine | None = None
    sides: Sides | None = None
    used: set[str] = field(factory=set)
    failed: int = 0
    begun: list[tuple[Claim, Task[str]]] = field(factory=list)


@frozen
class Trials:
    """Runs and judges probes for all levels, with the question and its judge.

    `until` is the time on the monotonic clock at which searches stop, None for no limit. `known` are the runs of
    releases that were made before. `repeat_beside` starts a run that will be missing later, if more lanes are free than
    it is told to leave.
    """

    question: Question
    prober: Probing
    lanes: Lanes
    index: Index
    judge: Judge
    reporter: Reporter
    until: float | None = None
    tally: Tally = field(factory=Tally)
    known: tuple[Observation, ...] = ()
    repeat_beside: Callable[[int], None] = lambda _leave: None

    def installed(self, side: Side, lock: Lock) -> Probe:
        """A probe of a lock that was made from the lock of a side. The resolver is not used."""
        return self._known(side, lock, None)

    def mixed(self, side: Side, mixture: Mixture | None) -> Probe:
        """A probe in the environment of one side, with the files of `mixture` exchanged, if it is given."""
        return self._known(side, side.lock, mixture)

    def _known(self, side: Side, lock: Lock, mixture: Mixture | None) -> Probe:
        combination = Combination(
            python=self.question.combination.python,
            requirements=side.observation.requirements,
            as_of=datetime.fromisoformat(side.observation.as_of) if side.observation.as_of else None,
            device=self.question.combination.device,
        )
        return Probe(self.question.repro, combination, mixture=mixture, lock=lock)

    def for_mixtures(self, sides: Sides, proofs: Iterable[Proof] = ()) -> Trials:
        """The same with a judge for mixtures, which knows the bug from the sides, `proofs` and releases."""
        failing = sides.after if sides.after.verdict is Verdict.BAD else sides.before
        searched = self.tally.searched
        runs = [sides.before.observation, sides.after.observation, *self.known]
        runs += searched.record.observations.values() if searched is not None else ()
        runs += [proof.observation for proof in proofs if proof.observation is not None and proof.holds]
        different = {run.key: run for run in reversed(runs)}.values()  # the sides' own where a key is there twice
        return evolve(self, judge=self.judge.for_mixtures(failing.observation, tuple(different)))

    def begin(self, level: Level, sentence: str) -> None:
        """Report that a level begins; `sentence` says what it searches."""
        self.reporter.report(LevelBegan(level, sentence))

    def proof(self, sentence: str, probe: Probe, expected: Verdict) -> Proof:
        """Prove a counterfactual by a run in a fresh process; earlier runs of a search don't count."""
        (proof,) = self.proofs((Claim(sentence, probe, expected),))
        return proof

    def proof_if_likely(self, claim: Claim, learn: Callable[[Observation], object] = lambda _run: None) -> Proof:
        """Prove a counterfactual unless a warm run of it, which costs little, has another verdict.

        `learn` is called with a run that could not be judged.
        """
        prepared = self.prober.prepare(claim.probe)
        if prepared.is_warm:
            observation = self.prober.execute(prepared)
            self.tally.ran_now += not prepared.cached
            judgement = self.judge(observation)
            self.reporter.report(Judged(claim.sentence, judgement, observation, cached=prepared.cached))
            if judgement.verdict is Verdict.SKIP:
                learn(observation)
            if judgement.verdict is not claim.expected:
                return Proof(claim.sentence, claim.expected, judgement.verdict, judgement.reason)
        proof = self.proof(claim.sentence, claim.probe, claim.expected)
        if proof.verdict is Verdict.SKIP and proof.observation is not None:
            learn(proof.observation)
        return proof

    def control(self, claim: Claim) -> Proof:
        """The same for a claim that should not hold: then it is no sign of a flaky bug."""
        failed = self.tally.failed
        self.repeat_beside(1)
        proof = self.proof_if_likely(claim)
        self.tally.failed = failed
        return proof

    def fresh(self, sentence: str, probe: Probe) -> Observation:
        """Run a probe in a fresh process, whatever forks have shown, or take its observation from the store."""
        prepared = self.prober.prepare(evolve(probe, fresh=True))
        if (observation := prepared.observation) is None:
            self.reporter.report(Started(sentence))
            observation = self.prober.execute(prepared)
        self.tally.ran_now += not prepared.cached and observation.outcome.ran
        return observation

    def proof_by(self, run: Observation | None, sentence: str, probe: Probe, expected: Verdict) -> Proof:
        """Prove a counterfactual by a run of a search; a warm run is repeated in a fresh process."""
        if run is None:
            return Proof(sentence, expected, Verdict.SKIP, "no smaller part of it was enough")
        if is_warm(run):
            return self.proof(sentence, probe, expected)
        judgement = self.judge(run)
        return Proof(sentence, expected, judgement.verdict, judgement.reason, run)

    def begin_proofs(self, claims: Iterable[Claim]) -> None:
        """Start the fresh runs of some claims on lanes: `proofs` of them then waits for these runs."""
        prober = Unseen(self.prober, frozenset(self.tally.used))
        for claim in claims:
            run = partial(run_ahead, prober, evolve(claim.probe, fresh=True))
            self.tally.begun.append((claim, self.lanes.submit(run, Priority.PROOF)))

    def proofs(self, claims: Sequence[Claim]) -> tuple[Proof, ...]:
        """Prove counterfactuals by runs in fresh processes, in parallel if there are lanes; see `proof`."""
        begun = [task for claim, task in self.tally.begun if claim in claims]
        self.tally.begun[:] = [(claim, task) for claim, task in self.tally.begun if claim not in claims]
        proofs: dict[int, Proof] = {}

        def judged(number: int, observation: Observation, cached: bool) -> Judgement:
            self.tally.ran_now += not cached and observation.outcome.ran
            judgement = self.judge(observation)
            claim = claims[number]
            proofs[number] = Proof(claim.sentence, claim.expected, judgement.verdict, judgement.reason, observation)
            return judgement

        grid = Grid(len(claims))
        self.repeat_beside(len(claims))
        ahead = {task.result() for task in begun}
        Engine(
            Unseen(self.prober, frozenset(self.tally.used)),
            self.lanes,
            lambda number: evolve(claims[number].probe, fresh=True),
            lambda number: claims[number].sentence,
            judged,
            self.reporter,
            lambda: Progress(left=grid.remaining()),
            is_proof=True,
            fresh=ahead,
        ).drive(grid)
        self.tally.used.update(proof.observation.key for proof in proofs.values() if proof.observation is not None)
        self.tally.failed += sum(not proof.holds for proof in proofs.values())
        return tuple(proofs[number] for number in range(len(claims)))

    def traced(self, sides: Sides, files: Iterable[str]) -> tuple[Observation, ...]:
        """Run both sides under a trace of these installed files; returns the run of the older and the newer one."""
        both = (sides.before, sides.after)
        traced = frozenset(files)
        observations: dict[int, Observation] = {}

        def judged(number: int, observation: Observation, cached: bool) -> Judgement:
            self.tally.ran_now += not cached
            observations[number] = observation
            return self.judge(observation)

        self.reporter.report(Started("both sides again, to see which code runs"))
        grid = Grid(len(both))
        Engine(
            self.prober,
            self.lanes,
            lambda number: evolve(self.mixed(both[number], None), trace=traced),
            lambda number: both[number].verdict.value,
            judged,
            SILENT,
            Progress,
        ).drive(grid)
        return tuple(observations[number] for number in range(len(both)))


def proved_again(
    trials: Trials, sides: Sides, package: Finding, sentences: tuple[str, str], until: Level
) -> tuple[Proof, Proof]:
    """Prove the older and the newer side by another run of each; see `proved`."""
    older, newer = (
        Claim(sentence, trials.mixed(side, None), side.verdict)
        for sentence, side in zip(sentences, (sides.before, sides.after), strict=True)
    )
    return proved(trials, sides, package, (older, newer), until)


def proved(
    trials: Trials, sides: Sides, package: Finding, claims: tuple[Claim, Claim], until: Level
) -> tuple[Proof, Proof]:
    """Prove a claim about the older and one about the newer side, each in a fresh process.

    If `until`, the level that is searched between these sides, is the file level or deeper, the runs in the lock of
    their side are traced. A traced run without the expected verdict is repeated without a trace.
    """
    traced: frozenset[str] = frozenset()
    exchange = Exchange.of(trials.prober, sides, package) if until.depth >= Level.FILE.depth else None
    if exchange is not None:
        traced = files_to_trace(exchange, used_units(exchange.units, sides))
    tracing = [
        evolve(claim, probe=evolve(claim.probe, trace=traced)) if traced and claim.probe.lock == side.lock else claim
        for claim, side in zip(claims, (sides.before, sides.after), strict=True)
    ]
    older, newer = (
        proof if proof.holds or claim is other else trials.proof(claim.sentence, claim.probe, claim.expected)
        for claim, other, proof in zip(claims, tracing, trials.proofs(tracing), strict=True)
    )
    return older, newer


def _trial_of(searched: SearchedLine, position: int, run: Observation) -> Trial:
    """The trial of a candidate that a fresh run of it is; a traced one is none that the search would make."""
    return Trial(position, run.attempt + (searched.record.forks_at(position) if run.trace is None else 0))


def count_proofs(searched: SearchedLine, sides: Sides, findings: Iterable[Finding], failed: int = 0) -> tuple[int, int]:
    """Add the proofs of deeper levels that are runs of the two sides; returns the number of other passes and failures.

    A proof in a side's own lock without exchanged files is such a run. Other proofs, and a traced run of a side, count
    only if all had the expected verdict: a failed proof may be a sign of a flaky bug. `failed` counts those that did
    not hold, also of what is no finding: findings are chosen because their proofs hold, which may be luck.
    """
    positions = dict(
        zip((sides.before.lock.id, sides.after.lock.id), searched.search.result.boundary or (), strict=False)
    )
    held = {Verdict.GOOD: 0, Verdict.BAD: 0}
    counted: set[str] = set()
    is_flawless = not failed
    known = searched.record.observations
    for proof in (proof for finding in findings for proof in finding.proofs):
        run = proof.observation
        if run is None or run.lock is None or run.key in counted:
            continue
        counted.add(run.key)
        trial = _trial_of(searched, positions[run.lock.id], run) if run.lock.id in positions else None
        if trial is not None and not run.mixture and known.setdefault(trial, run).key == run.key:
            continue
        if proof.is_expected:
            held[proof.verdict] += 1
        else:
            is_flawless = False
    return (held[Verdict.GOOD], held[Verdict.BAD]) if is_flawless else (0, 0)
