"""The basis of all levels: how a counterfactual is run, judged and described."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Protocol

from attrs import define, evolve, field, frozen
from packaging.requirements import Requirement
from packaging.version import InvalidVersion, Version

from harness.culprit.claims import Claim, Unseen
from harness.culprit.reduction import Candidate, Reduced, Reduction
from harness.culprit.release_search import Searched
from harness.culprit.sides import Side, Sides
from harness.environment import Environment, Index
from harness.events import SILENT, LevelBegan, Progress, Reporter, Started
from harness.model import (
    Change,
    Combination,
    Judgement,
    Lock,
    Mixture,
    Observation,
    Trace,
    Verdict,
    normalized_name,
)
from harness.model.culprit import Level, Proof
from harness.model.words import listed
from harness.planning.plan import Plan
from harness.probe import Judge, Probe
from harness.probe.forking import ForkingProber
from harness.scheduling.lanes import Lanes
from harness.scheduling.loop import Engine
from harness.scheduling.probers import Probing
from harness.search import Grid


class Awaited(Protocol):
    """Something that a thread finds out meanwhile."""

    def result(self) -> Any:
        """Wait for it."""
        ...


@define
class Tally:
    """Counts the probes that were run rather than answered by the store; also the last bisection over releases.

    `seen` are the observations that searched for something: none of them is also a proof. `reading` has what is read of
    files while runs go on, by the units of difference that it is about, and `ahead` proofs that were run early.
    """

    ran_now: int = 0
    searched: Searched | None = None
    seen: set[str] = field(factory=set)
    reading: dict[frozenset[str], Awaited] = field(factory=dict)
    ahead: list[tuple[Claim, Proof]] = field(factory=list)


@frozen
class Trials:
    """The plan, the means to run probes, and the judge of the bisection before.

    `most` limits a level's runs; `until` is the time on the monotonic clock at which searches below the release stop;
    `forks` run the mixtures of one side, if they were shown to agree with fresh processes.
    """

    plan: Plan
    prober: Probing
    lanes: Lanes
    index: Index
    judge: Judge
    reporter: Reporter
    most: int = 48
    until: float | None = None
    forks: ForkingProber | None = None
    tally: Tally = field(factory=Tally)

    @property
    def is_late(self) -> bool:
        """Whether the time budget of searches is spent."""
        return self.until is not None and time.monotonic() >= self.until

    @property
    def searcher(self) -> Probing:
        """The prober for searches: forks if available. Proofs are run by `prober`."""
        return self.forks or self.prober

    def moved(self, sides: Sides, changes: Iterable[Change]) -> Probe:
        """A probe near the older lock with some distributions at their newer versions; their requirements move along.

        The subject moves no further than to the newer side.
        """
        pins = {change.name: change.after for change in changes}
        subject = self.plan.subject
        older, newer = sides.before.lock.version_of(subject), sides.after.lock.version_of(subject)
        between = f"{subject}>={_public(older)},<={_public(newer)}" if older and newer else subject
        others = [
            text for text in (*self.plan.requirements, between) if normalized_name(Requirement(text).name) not in pins
        ]
        as_of = sides.after.observation.as_of
        combination = Combination(
            python=self.plan.interpreter.version,
            requirements=(*others, *(f"{name}=={version}" for name, version in pins.items() if version is not None)),
            holds=self.plan.holds,
            as_of=datetime.fromisoformat(as_of) if as_of else None,
            near=sides.before.lock.id,
            device=self.plan.device,
            prereleases=tuple(name for name, version in pins.items() if version and _is_prerelease(version)),
            from_source=self.plan.from_source_for(
                *(release for release in self.plan.releases if str(release.version) in (older, newer))
            ),
        )
        return Probe(self.plan.repro, combination, sides.before.lock)

    def installed(self, side: Side, lock: Lock) -> Probe:
        """A probe of a lock made from that of a side, without the resolver."""
        return self._known(side, lock, None)

    def mixed(self, side: Side, mixture: Mixture | None) -> Probe:
        """A probe in the environment of one side, some of its files exchanged."""
        return self._known(side, side.lock, mixture)

    def _known(self, side: Side, lock: Lock, mixture: Mixture | None) -> Probe:
        combination = Combination(
            python=self.plan.interpreter.version,
            requirements=side.observation.requirements,
            as_of=datetime.fromisoformat(side.observation.as_of) if side.observation.as_of else None,
            device=self.plan.device,
        )
        return Probe(self.plan.repro, combination, mixture=mixture, lock=lock)

    def reduce(
        self,
        flipped: Verdict,
        units: tuple[str, ...],
        probe_of: Callable[[Candidate], Probe],
        label_of: Callable[[Candidate], str],
        requires: Callable[[Candidate], frozenset[str]] | None = None,
        *,
        only_first: int = 0,
        first: bool = False,
        singles: int = 16,
    ) -> Reduced:
        """The smallest set of units that alone makes the verdict `flipped`.

        With `first` it is the first such set; with `only_first` only that many single units are tried, otherwise
        `singles` of them before sets.
        """
        reduced = Reduction(
            prober=self.prober,
            lanes=self.lanes,
            judge=self.searched,
            reporter=self.reporter,
            probe_of=probe_of,
            label_of=label_of,
            flipped=flipped,
            units=units,
            requires=requires,
            most=self.most,
            singles=only_first or (len(units) if first else singles),
            first=first or only_first > 0,
            only_singles=only_first > 0,
        ).run()
        self.tally.ran_now += reduced.ran_now
        return reduced

    def searched(self, observation: Observation) -> Judgement:
        """Judge a run of a search, and note that it can't be a proof."""
        self.tally.seen.add(observation.key)
        return self.judge(observation)

    def begin(self, level: Level, sentence: str) -> None:
        """Report that a level begins; the sentence says what is searched."""
        self.reporter.report(LevelBegan(level, sentence))

    def proof(self, sentence: str, probe: Probe, expected: Verdict) -> Proof:
        """Run a counterfactual in a fresh process: no earlier run is a proof."""
        claim = Claim(sentence, probe, expected)
        for number, (other, proof) in enumerate(self.tally.ahead):
            if claim == other:
                del self.tally.ahead[number]
                return proof
        (proof,) = self.proofs((claim,))
        return proof

    def proof_with(self, claim: Claim, following: Sequence[Claim]) -> Proof:
        """A proof, and beside it those that are expected to be asked for next, as far as there are lanes."""
        others = following[: self.lanes.count - 1]
        proof, *more = self.proofs((claim, *others))
        self.tally.ahead += zip(others, more, strict=True)
        return proof

    def proofs(self, claims: Sequence[Claim]) -> tuple[Proof, ...]:
        """Run counterfactuals in fresh processes, side by side if there are lanes: no earlier run is a proof."""
        found: dict[int, Proof] = {}

        def judged(number: int, observation: Observation, cached: bool) -> Judgement:
            self.tally.ran_now += not cached and observation.outcome.ran
            judgement = self.judge(observation)
            claim = claims[number]
            found[number] = Proof(claim.sentence, claim.expected, judgement.verdict, judgement.reason, observation)
            return judgement

        grid = Grid(len(claims))
        Engine(
            Unseen(self.prober, frozenset(self.tally.seen)),
            self.lanes,
            lambda number: claims[number].probe,
            lambda number: claims[number].sentence,
            judged,
            self.reporter,
            lambda: Progress(left=grid.remaining()),
            is_proof=True,
        ).drive(grid)
        self.tally.seen.update(proof.observation.key for proof in found.values() if proof.observation is not None)
        return tuple(found[number] for number in range(len(claims)))

    def shown(self, sentence: str, reduced: Reduced, expected: Verdict, probe: Callable[[], Probe]) -> Proof:
        """The counterfactual with which the search ended; a forked run is repeated in a fresh process."""
        if reduced.shown is None:
            return Proof(sentence, expected, Verdict.SKIP, "no smaller part of it was enough")
        if reduced.shown.machine.get("forked"):
            return self.proof(sentence, probe(), expected)
        judgement = self.judge(reduced.shown)
        return Proof(sentence, expected, judgement.verdict, judgement.reason, reduced.shown)

    def environment(self, side: Side) -> Environment | None:
        """The environment of a side; None if its files can't be exchanged."""
        built = self.prober.builder.build(side.lock)
        return built if isinstance(built, Environment) else None

    def traces(self, sides: Sides, files: Iterable[str]) -> tuple[Trace | None, ...]:
        """What one run of each side does in these installed files; None if it could not run."""
        both = (sides.before, sides.after)
        traced = frozenset(files)
        found: dict[int, Trace | None] = {}

        def judged(number: int, observation: Observation, cached: bool) -> Judgement:
            self.tally.ran_now += not cached
            found[number] = observation.trace
            return self.judge(observation)

        self.reporter.report(Started("both sides once more, to see what runs"))
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
        return tuple(found[number] for number in range(len(both)))

    def notes(self, reduced: Reduced) -> tuple[str, ...]:
        """What a search could not show."""
        told = []
        if reduced.gave_up:
            told.append(f"stopped after {reduced.runs} runs; a smaller set may be enough")
        if reduced.unproven and len(reduced.units) > 1:
            told.append(f"could not be run without: {listed(sorted(reduced.unproven))}")
        return tuple(told)


def _public(version: str) -> str:
    """The version without its local label, which names a build and can't be used in a range."""
    return version.partition("+")[0]


def _is_prerelease(version: str) -> bool:
    try:
        return Version(version).is_prerelease
    except InvalidVersion:
        return False
