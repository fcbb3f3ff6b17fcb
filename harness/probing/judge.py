"""Judges observations by one signature, and records the judged runs of a search as steps."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, TypeVar

from attrs import evolve, frozen

from harness.model import Judgement, Observation, Outcome, Signature, Verdict, capture_signature, judge
from harness.model.text import counted
from harness.search import Reading, Readings, readings_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.model import RaisedException
    from harness.store import Store

C = TypeVar("C")

_ALIKE = 0.5


@frozen
class Judge:
    """Judges observations by `signature`; `store` has their logs.

    Without a signature nothing can be bad: a run that completed is good, anything else is a skip. `message` is the
    message of the original failure: if it is set, a failure with a very different message is a skip, too. A mixture of
    two releases may fail for a reason of its own, and a signature may name only a `TypeError`.
    """

    signature: Signature | None
    store: Store
    message: str = ""

    def __call__(self, observation: Observation) -> Judgement:
        """Return the verdict on one observation, with its reason."""
        if observation.by_hand:
            return Judgement(Verdict(observation.by_hand), "judged by hand")
        if self.signature is not None:
            log = self.store.log(observation) if self.signature.output is not None else ""
            return self._unless_unlike(observation, judge(observation, self.signature, log))
        if observation.outcome is Outcome.COMPLETED:
            return Judgement(Verdict.GOOD, "ran to its end")
        return Judgement(Verdict.SKIP, observation.detail or observation.outcome.value)

    def _unless_unlike(self, observation: Observation, judgement: Judgement) -> Judgement:
        raised = observation.exception
        if judgement.verdict is not Verdict.BAD or not self.message or raised is None or _is_like(raised, self.message):
            return judgement
        return Judgement(Verdict.SKIP, f"failed with another message: {raised.name}: {raised.message}")

    def reading(self, observation: Observation) -> Reading | None:
        """Return the number by which a run is judged, or None if it is judged by something else or can't be judged."""
        metric = self.signature.metric if self.signature is not None else None
        if self.signature is None or metric is None or (excess := self.signature.excess(observation)) is None:
            return None
        verdict = self(observation).verdict
        return None if verdict is Verdict.SKIP else Reading(observation.metrics[metric], excess, verdict)

    def together(self, observations: Sequence[Observation]) -> tuple[Judgement, Observation]:
        """Return the verdict on repeated runs of one probe, and the first run with that verdict.

        `observations` are in the order of the runs. If the first run is judged by a metric, the verdict is based on
        the numbers of all runs; otherwise it is the verdict on the first run.
        """
        first = observations[0]
        readings = [reading for seen in observations if (reading := self.reading(seen)) is not None]
        if self.signature is None or self.reading(first) is None:
            return self(first), first
        judgement = _of_numbers(self.signature, readings_of(readings))
        alike = (seen for seen in observations if self(seen).verdict is judgement.verdict)
        return judgement, next(alike, first)

    def captured(self, observation: Observation) -> Signature | None:
        """Return a signature captured from a failure, or None if nothing in it can be recognised again."""
        log = self.store.log(observation) if observation.outcome is Outcome.EXITED else ""
        return capture_signature(observation, log)

    def or_captured(self, observation: Observation) -> Judge:
        """Return this judge, or, if it has no signature yet, one with the signature captured from this observation."""
        return self if self.signature is not None else evolve(self, signature=self.captured(observation))

    def for_mixtures(self, failed: Observation) -> Judge:
        """Return a judge for mixtures.

        If the signature names an exception without a message, only failures with a message like that of `failed` are
        bad.
        """
        one, raised = self.signature, failed.exception
        if one is None or one.exception is None or one.message is not None or raised is None:
            return self
        return evolve(self, message=raised.message)


def _is_like(raised: RaisedException, message: str) -> bool:
    """Whether an exception's message and another one share at least half of their words, in the same order."""
    first, second = raised.message.split(), message.split()
    return first == second or difflib.SequenceMatcher(None, first, second, autojunk=False).ratio() >= _ALIKE


def _of_numbers(signature: Signature, seen: Readings) -> Judgement:
    """The verdict by a metric, with its median and its confidence interval; a skip if the runs don't decide it."""
    runs = counted(seen.runs, "run")
    if seen.verdict is None and seen.is_open:
        value = f"{signature.metric} = {seen.median:g}"
        return Judgement(Verdict.SKIP, f"{value} in {runs}: {seen.wanted} are needed to compare it with its bound")
    if seen.verdict is None:
        bad = f"{signature.bounds} in {seen.bad} of {runs}"
        return Judgement(Verdict.SKIP, f"{signature.metric} varies from {seen.low:g} to {seen.high:g}: {bad}")
    interval = f"; {seen.confidence:.0%} interval {seen.low:g} to {seen.high:g}" if seen.confidence else ""
    varies = f"median of {runs}{interval}" if interval or seen.low != seen.high else f"in {runs}"
    bounds = f", {signature.bounds}" if seen.verdict is Verdict.BAD else ""
    return Judgement(seen.verdict, f"{signature.metric} = {seen.median:g} ({varies}){bounds}")
