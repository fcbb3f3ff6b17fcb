"""Judges observations, by one signature or by a person, and records the judged runs of a search as steps."""

from __future__ import annotations

import contextlib
import difflib
import enum
import hashlib
import re
from collections import Counter
from typing import TYPE_CHECKING, Protocol, TypeVar

from attrs import evolve, frozen

from harness.errors import Interrupted
from harness.model import (
    Judgement,
    Observation,
    Outcome,
    RaisedException,
    Signature,
    StackFrame,
    Verdict,
    capture_signature,
    judge,
)
from harness.model.invariants import Invariants, Symptoms
from harness.model.signature import TooSlow, last_exception
from harness.model.text import counted
from harness.probing.probe import Around, Prepared, Probe, Probing, next_attempt
from harness.search import Reading, Readings, readings_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.environment import Builder
    from harness.store import Store


C = TypeVar("C")

_ALIKE = 0.5
_TRACEBACK = "Traceback (most recent call last)"


@frozen
class Bug:
    """What is known of a bug from runs of releases, so that another failure of a mixture is not taken for it.

    A failure with a very different message than `message` is another one ("": any message will do), and so is one that
    lacks what is the same in all runs with the bug (`failing`). With `is_strict`, a run that passes must have what is
    the same in all runs without the bug (`passing`). `locks` are those of these runs (their ids), which are no
    mixtures; `versions` are those of packages that differ between them.
    """

    message: str
    failing: Invariants
    passing: Invariants
    locks: frozenset[str]
    versions: frozenset[str]
    is_strict: bool = False


@frozen
class Judge:
    """Judges observations by `signature`; `store` has their logs.

    Without a signature nothing can be bad: a run that completed is good, anything else is a skip. A mixture of two
    releases may fail for a reason of its own, and a signature may name only a `TypeError`: with `bug`, only a failure
    like that of the releases is bad.
    """

    signature: Signature | None
    store: Store
    bug: Bug | None = None

    def __call__(self, observation: Observation) -> Judgement:
        """Return the verdict on one observation, with its reason."""
        if observation.by_hand:
            return Judgement(Verdict(observation.by_hand), "judged by hand")
        if self.signature is not None:
            log = self.store.log(observation) if self.signature.needs_log else ""
            return self._unless_another(observation, judge(observation, self.signature, log))
        if observation.outcome is Outcome.COMPLETED:
            return Judgement(Verdict.GOOD, "ran to its end")
        return Judgement(Verdict.SKIP, observation.detail or observation.outcome.value)

    def _unless_another(self, observation: Observation, judgement: Judgement) -> Judgement:
        bug, raised, lock = self.bug, observation.exception, observation.lock
        is_bad = judgement.verdict is Verdict.BAD
        if bug is None or not (is_bad or (bug.is_strict and judgement.verdict is Verdict.GOOD)):
            return judgement
        if is_bad and bug.message and raised is not None and not _is_like(raised, bug.message):
            return Judgement(Verdict.SKIP, f"failed with another message: {raised.name}: {raised.message}")
        if not observation.mixture and lock is not None and lock.id in bug.locks:
            return judgement
        missing = (bug.failing if is_bad else bug.passing).missing_in(self._symptoms(observation, bug.versions))
        what = "failed" if is_bad else "passed"
        return Judgement(Verdict.SKIP, f"{what} differently: {missing}") if missing else judgement

    def strictly(self) -> Judge:
        """Return a judge for which a mixture passes only if it looks like the runs of releases that pass."""
        return evolve(self, bug=evolve(self.bug, is_strict=True)) if self.bug is not None else self

    def _symptoms(self, observation: Observation, versions: frozenset[str]) -> Symptoms:
        """How a run failed. What it printed counts for a script and a command, unless a number of its own judges it."""
        is_printed = not observation.tests and self.signature is not None and self.signature.metric is None
        log = self.store.log(observation) if observation.log else ""
        failures = self._failures(observation, log)
        return Symptoms.of(failures, log if is_printed else "", observation.metrics, versions)

    def _failures(self, observation: Observation, log: str) -> Mapping[str, RaisedException]:
        """The exceptions of a failure by test, "" without tests."""
        raised = _raised(observation, log)
        return {"": raised} if raised is not None else {}

    def reduced(self, observation: Observation) -> Observation:
        """The run as if only that had run which is judged."""
        return observation

    def raised(self, observation: Observation) -> RaisedException | None:
        """The exception that ended a run; of a command, the last one that it printed."""
        return _raised(observation, self.store.log(observation) if observation.log else "")

    def reading(self, observation: Observation) -> Reading | None:
        """Return the number by which a run is judged, or None if it is judged by something else or can't be judged."""
        value = self._value(observation)
        if self.signature is None or value is None:
            return None
        verdict = self(observation).verdict
        return None if verdict is Verdict.SKIP else Reading(value, self.signature.excess(value), verdict)

    def number(self, observation: Observation) -> float | None:
        """Return the metric that is compared with a single bound, None with two bounds or if the run has none."""
        is_single = self.signature is not None and (self.signature.above is None or self.signature.below is None)
        return self._value(observation) if is_single else None

    def _value(self, observation: Observation) -> float | None:
        signature = self.signature
        if signature is None or signature.metric is None:
            return None
        log = self.store.log(observation) if signature.needs_log else ""
        with contextlib.suppress(TooSlow):
            return signature.value(observation, log)
        return None

    def together(self, observations: Sequence[Observation], *looks: int) -> tuple[Judgement, Observation]:
        """Return the verdict on repeated runs of one probe, and the first run with that verdict.

        `observations` are in the order of the runs. If the first run is judged by a metric, the verdict is based on
        the numbers of all runs, after the numbers of runs in `looks` if they are given; otherwise it is the verdict on
        the first run.
        """
        first = observations[0]
        readings = [reading for run in observations if (reading := self.reading(run)) is not None]
        if self.signature is None or self.reading(first) is None:
            return self(first), first
        judgement = _of_numbers(self.signature, readings_of(readings, *([looks] if looks else [])))
        alike = (run for run in observations if self(run).verdict is judgement.verdict)
        return judgement, next(alike, first)

    def captured(self, observation: Observation) -> Signature | None:
        """Return a signature captured from a failure, or None if nothing in it can be recognised again."""
        log = self.store.log(observation) if observation.outcome is Outcome.EXITED else ""
        return capture_signature(observation, log)

    def or_captured(self, observation: Observation) -> Judge:
        """Return this judge, or, if it has no signature yet, one with the signature captured from this observation."""
        return self if self.signature is not None else evolve(self, signature=self.captured(observation))

    def for_mixtures(self, failed: Observation, runs: Sequence[Observation] = ()) -> Judge:
        """Return a judge for mixtures, which knows the bug from `failed` and other `runs` of releases.

        If the signature names an exception without a message, only failures with a message like that of `failed` are
        bad, unless the message differs between runs of its environment.
        """
        signature, raised = self.signature, failed.exception
        bad = [run for run in runs if self(run).verdict is Verdict.BAD]
        good = [run for run in runs if self(run).verdict is Verdict.GOOD]
        again = [run.exception for run in bad if run.lock == failed.lock and run.exception is not None]
        is_broad = signature is not None and signature.exception is not None and signature.message is None
        message = raised.message if is_broad and raised is not None else ""
        message = message if all(_is_like(other, message) for other in again) else ""
        locks = [run.lock for run in (*bad, *good) if run.lock is not None]
        counts = Counter(pin for lock in locks for pin in lock.pins)
        differing = [pin for pin, count in counts.items() if count < len(locks)]
        versions = frozenset(pin.version for pin in differing if "." in pin.version)
        failed_runs, passed_runs = ([self._symptoms(run, versions) for run in side] for side in (bad, good))
        failing, passing = Invariants.of(failed_runs, passed_runs), Invariants.of(passed_runs, failed_runs)
        return evolve(self, bug=Bug(message, failing, passing, frozenset(lock.id for lock in locks), versions))


_FRAME = re.compile(r'^ *File "([^"\n]+)", line (\d+)(?:, in (\S+))?$', re.MULTILINE)


def _raised(observation: Observation, log: str) -> RaisedException | None:
    if observation.exception is not None or observation.outcome is not Outcome.EXITED:
        return observation.exception
    raised = last_exception(log)
    if raised is None:
        return None
    frames = (
        StackFrame(file, int(line), function or "", "installed" if "-packages" in file else "")
        for file, line, function in _FRAME.findall(log.rpartition(_TRACEBACK)[2])
    )
    return evolve(raised, frames=tuple(frames))


def _is_like(raised: RaisedException, message: str) -> bool:
    """Whether an exception's message and another one share at least half of their words, in the same order."""
    first, second = raised.message.split(), message.split()
    return first == second or difflib.SequenceMatcher(None, first, second, autojunk=False).ratio() >= _ALIKE


def _of_numbers(signature: Signature, readings: Readings) -> Judgement:
    """The verdict by a metric, with its median and its confidence interval; a skip if the runs don't decide it."""
    runs = counted(readings.runs, "run")
    if readings.verdict is None and readings.is_open:
        value = f"{signature.measure} = {readings.median:g}"
        return Judgement(Verdict.SKIP, f"{value} in {runs}: {readings.wanted} are needed to compare it with its bound")
    if readings.verdict is None:
        bad = f"{signature.bounds} in {readings.bad} of {runs}"
        return Judgement(Verdict.SKIP, f"{signature.measure} varies from {readings.low:g} to {readings.high:g}: {bad}")
    interval = (
        f"; {readings.confidence:.0%} interval {readings.low:g} to {readings.high:g}" if readings.confidence else ""
    )
    varies = f"median of {runs}{interval}" if interval or readings.low != readings.high else f"in {runs}"
    bounds = f", {signature.bounds}" if readings.verdict is Verdict.BAD else ""
    return Judgement(readings.verdict, f"{signature.measure} = {readings.median:g} ({varies}){bounds}")


_OUTCOMES = {
    Verdict.GOOD: (Outcome.COMPLETED, 0),
    Verdict.BAD: (Outcome.RAISED, 1),
    Verdict.SKIP: (Outcome.DECLINED, 125),
}


BY_HAND = Signature(exception="JudgedByHand")


class Wish(enum.Enum):
    """What a person wants instead of judging."""

    AGAIN = enum.auto()
    QUIT = enum.auto()


@frozen
class JudgedRun:
    """A run to judge: its probe, what was observed, and what it printed."""

    probe: Probe
    observation: Observation
    log: str
    builder: Builder


class Person(Protocol):
    """Who judges."""

    def judge(self, shown: JudgedRun) -> Verdict | Wish:
        """Return the verdict on a run, or another wish."""


@frozen
class ByHand(Around):
    """A prober whose runs a person judges, on the only lane of the session; what did not run is not shown."""

    prober: Probing
    person: Person

    def known(self, probe: Probe) -> Observation | None:
        """Return what a person said of a probe, or None."""
        observation = self.prober.known(probe)
        return self._judged(observation.key) if observation is not None and observation.outcome.ran else observation

    def prepare(self, probe: Probe) -> Prepared:
        """Prepare a probe, or return what a person said of it before; a run that nobody judged is made again."""
        prepared = self.prober.prepare(probe)
        if prepared.observation is not None and not prepared.observation.outcome.ran:
            return prepared
        judged = self._judged(prepared.key)
        return evolve(prepared, observation=judged, cached=judged is not None)

    def execute(self, prepared: Prepared) -> Observation:
        """Run a probe, as often as the person likes, and keep the verdict. Raises `Interrupted` and `Cancelled`."""
        if prepared.observation is not None:
            return prepared.observation
        now = prepared if prepared.environment is not None else self._fresh(prepared.probe)
        while True:
            observation = self.prober.execute(now)
            if not observation.outcome.ran:
                return observation
            judged = self.person.judge(JudgedRun(now.probe, observation, self.store.log(observation), self.builder))
            if isinstance(judged, Verdict):
                return self.store.put(judged_by_hand(observation, judged, _key(prepared.key), prepared.probe.attempt))
            if judged is Wish.QUIT:
                raise Interrupted("stopped", hint="the same command goes on here; what you judged is kept")
            now = self._fresh(now.probe)

    def _fresh(self, probe: Probe) -> Prepared:
        while True:
            probe = next_attempt(probe)
            prepared = self.prober.prepare(probe)
            if prepared.observation is None or not prepared.cached:
                return prepared

    def _judged(self, key: str) -> Observation | None:
        return self.store.get(_key(key))


def judged_by_hand(observation: Observation, verdict: Verdict, key: str, attempt: int = 0) -> Observation:
    """Return a run as a person judged it, whatever its own outcome was."""
    outcome, code = _OUTCOMES[verdict]
    raised = RaisedException("harness.JudgedByHand", "bad") if verdict is Verdict.BAD else None
    return evolve(
        observation,
        key=key,
        outcome=outcome,
        exit_code=code,
        exception=raised,
        detail=f"judged {verdict.word} by hand",
        by_hand=verdict.value,
        tests=(),
        mistake="",
        attempt=attempt,
    )


def _key(key: str) -> str:
    return hashlib.sha256(f"{key} judged by hand".encode()).hexdigest()[:20]
