"""The record of a search: each observation is judged by one signature and written down as a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from attrs import define, field

from harness.errors import UserMistake
from harness.events import SILENT, Reporter, SignatureCaptured
from harness.model import Judgement, Observation, Signature
from harness.model.step import Step
from harness.probe import Judge

if TYPE_CHECKING:
    from harness.store import Store

C = TypeVar("C")


@define
class Record(Generic[C]):
    """What a search has seen so far, in the order in which it was told; `ran` counts what no store answered.

    Where there is no signature yet, the first failure that can be recognised again gives it; `captured_from` says in
    words which run that is.
    """

    signature: Signature | None
    captured_from: str = "the first failing run"
    reporter: Reporter = SILENT
    steps: list[Step] = field(factory=list)
    observations: dict[C, Observation] = field(factory=dict)
    ran: int = 0

    def judge(self, candidate: C, observation: Observation, store: Store) -> Judgement:
        """Note an observation and judge it.

        Raises `UserMistake` if there is no signature yet and the command failed for how it was written.
        """
        self.observations[candidate] = observation
        if self.signature is None and observation.mistake:
            raise UserMistake(f"this is no bug to look for: {observation.mistake}", hint=f"the run: {observation.key}")
        judge = Judge(self.signature, store).or_captured(observation)
        if self.signature is None and judge.signature is not None:
            self.signature = judge.signature
            self.reporter.report(SignatureCaptured(judge.signature, self.captured_from))
        return judge(observation)

    def write_down(
        self, release: str, judgement: Judgement, observation: Observation, *, cached: bool, attempt: int = 0
    ) -> None:
        """Add a step: a release that was judged, in this repetition."""
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
