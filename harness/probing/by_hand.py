"""Runs that a person judges: what only eyes can see. Each judgement is kept as an observation of its own.

It has another key than the run that was judged, so that a run that the machine judges never takes its place.
"""

from __future__ import annotations

import enum
import hashlib
import threading
from typing import TYPE_CHECKING, Protocol

from attrs import evolve, field, frozen

from harness.errors import Interrupted
from harness.model import Observation, Outcome, RaisedException, Signature, Verdict
from harness.probing.probe import Around, Prepared, Probe, next_attempt

if TYPE_CHECKING:
    from harness.environment import Builder
    from harness.probing.probe import Probing

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
class Shown:
    """A run to judge: its probe, what was observed, and what it printed."""

    probe: Probe
    observation: Observation
    log: str
    builder: Builder


class Person(Protocol):
    """Who judges."""

    def judge(self, shown: Shown, cancel: threading.Event | None) -> Verdict | Wish:
        """Return the verdict on a run, or another wish. Raises `Cancelled` when `cancel` is set."""
        ...


@frozen
class ByHand(Around):
    """A prober whose runs a person judges, one after another; what did not run is not shown."""

    prober: Probing
    person: Person
    _one: threading.Lock = field(factory=threading.Lock, init=False, eq=False, repr=False)

    def known(self, probe: Probe) -> Observation | None:
        """Return what a person said of a probe, or None."""
        seen = self.prober.known(probe)
        return self._judged(seen.key) if seen is not None and seen.outcome.ran else seen

    def prepare(self, probe: Probe, *, cancel: threading.Event | None = None) -> Prepared:
        """Prepare a probe, or return what a person said of it before; a run that nobody judged is made again."""
        prepared = self.prober.prepare(probe, cancel=cancel)
        if prepared.observation is not None and not prepared.observation.outcome.ran:
            return prepared
        judged = self._judged(prepared.key)
        return evolve(prepared, observation=judged, cached=judged is not None)

    def execute(self, prepared: Prepared, *, cancel: threading.Event | None = None) -> Observation:
        """Run a probe, as often as the person likes, and keep the verdict. Raises `Interrupted` and `Cancelled`."""
        if prepared.observation is not None:
            return prepared.observation
        now = prepared if prepared.environment is not None else self._fresh(prepared.probe, cancel)
        with self._one:
            while True:
                seen = self.prober.execute(now, cancel=cancel)
                if not seen.outcome.ran:
                    return seen
                said = self.person.judge(Shown(now.probe, seen, self.store.log(seen), self.builder), cancel)
                if isinstance(said, Verdict):
                    return self.store.put(judged_by_hand(seen, said, _key(prepared.key), prepared.probe.attempt))
                if said is Wish.QUIT:
                    raise Interrupted("stopped", hint="the same command goes on here; what you judged is kept")
                now = self._fresh(now.probe, cancel)

    def _fresh(self, probe: Probe, cancel: threading.Event | None) -> Prepared:
        while True:
            probe = next_attempt(probe)
            prepared = self.prober.prepare(probe, cancel=cancel)
            if prepared.observation is None or not prepared.cached:
                return prepared

    def _judged(self, key: str) -> Observation | None:
        return self.store.get(_key(key))


def judged_by_hand(seen: Observation, verdict: Verdict, key: str, attempt: int = 0) -> Observation:
    """Return a run as a person judged it, whatever its own outcome was."""
    outcome, code = _OUTCOMES[verdict]
    raised = RaisedException("harness.JudgedByHand", "bad") if verdict is Verdict.BAD else None
    return evolve(
        seen,
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
