"""The record of a search: it judges observations by one signature and lists them as steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from attrs import define, field

from harness.errors import UserMistake
from harness.events import SILENT, Reporter, SignatureCaptured
from harness.model import Judgement, Observation, Signature
from harness.model.verdict import Step
from harness.probe import Judge

if TYPE_CHECKING:
    from harness.store import Store

C = TypeVar("C")


@define
class Record(Generic[C]):
    """The runs of a search so far, in order; `ran` counts those that did not come from the store.

    Without a signature, the first failure that can be recognised again provides it; `captured_from` describes that run.
    """

    signature: Signature | None
    captured_from: str = "the first failing run"
    reporter: Reporter = SILENT
    steps: list[Step] = field(factory=list)
    observations: dict[C, Observation] = field(factory=dict)
    ran: int = 0

    def judge(self, candidate: C, observation: Observation, store: Store) -> Judgement:
        """Record an observation and judge it.

        Raises `UserMistake` if there is no signature yet and the run failed because the command is wrong.
        """
        self.observations[candidate] = observation
        if self.signature is None and observation.mistake:
            raise UserMistake(f"this failure is not a bug: {observation.mistake}", hint=f"the run: {observation.key}")
        judge = Judge(self.signature, store).or_captured(observation)
        if self.signature is None and judge.signature is not None:
            self.signature = judge.signature
            self.reporter.report(SignatureCaptured(judge.signature, self.captured_from))
        return judge(observation)

    def write_down(
        self, release: str, judgement: Judgement, observation: Observation, *, cached: bool, attempt: int = 0
    ) -> None:
        """Add a step for one judged release."""
        self.steps.append(
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
        self.ran += not cached and observation.outcome.ran
