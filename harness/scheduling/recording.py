"""The record of a search: each observation is judged by one signature and written down as a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from attrs import define, field

from harness.model import Judgement, Observation, Signature
from harness.model.step import Step
from harness.probe import Judge
from harness.scheduling.loop import Watcher

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.store import Store

C = TypeVar("C")


@define
class Record(Generic[C]):
    """What a search has seen so far, in the order in which it was told; `ran` counts what no store answered."""

    signature: Signature | None
    steps: list[Step] = field(factory=list)
    observations: dict[C, Observation] = field(factory=dict)
    ran: int = 0

    def judged(
        self, candidate: C, observation: Observation, store: Store, captured: Callable[[Signature], None]
    ) -> Judgement:
        """Note an observation and judge it.

        Where there is no signature yet, the first failure that can be recognised again gives it; `captured` is told.
        """
        self.observations[candidate] = observation
        judge = Judge(self.signature, store).or_captured(observation)
        if self.signature is None and judge.signature is not None:
            self.signature = judge.signature
            captured(self.signature)
        return judge(observation)


class Recorder(Watcher[C]):
    """Writes steps down before it passes them on. `named` gives a candidate's release and its repetition."""

    def __init__(self, record: Record[C], named: Callable[[C], tuple[str, int]], watcher: Watcher[C]) -> None:
        self._record = record
        self._named = named
        self._watcher = watcher

    def preparing(self, candidate: C) -> None:
        """Passed on."""
        self._watcher.preparing(candidate)

    def running(self, candidate: C) -> None:
        """Passed on."""
        self._watcher.running(candidate)

    def told(self, candidate: C, judgement: Judgement, observation: Observation, *, cached: bool) -> None:
        """Written down and passed on."""
        release, attempt = self._named(candidate)
        self._record.steps.append(
            Step(
                release=release,
                verdict=judgement.verdict,
                reason=judgement.reason,
                observation=observation.key,
                cached=cached,
                seconds=0.0 if cached else observation.duration_s,
                attempt=attempt,
            )
        )
        self._record.ran += not cached and observation.outcome.ran
        self._watcher.told(candidate, judgement, observation, cached=cached)
