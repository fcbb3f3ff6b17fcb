"""The judge: judges observations by one signature, and reads a run's log only if needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.model import Judgement, Observation, Outcome, Verdict, capture_signature, judge

if TYPE_CHECKING:
    from harness.model import Signature
    from harness.store import Store


@frozen
class Judge:
    """Judges observations by `signature`; `store` has their logs.

    Without a signature nothing can be bad: a run that completed is good, anything else is a skip.
    """

    signature: Signature | None
    store: Store

    def __call__(self, observation: Observation) -> Judgement:
        """The verdict on one observation, with its reason."""
        if self.signature is not None:
            log = self.store.log(observation) if self.signature.output is not None else ""
            return judge(observation, self.signature, log)
        if observation.outcome is Outcome.COMPLETED:
            return Judgement(Verdict.GOOD, "ran to its end")
        return Judgement(Verdict.SKIP, observation.detail or observation.outcome.value)

    def captured(self, observation: Observation) -> Signature | None:
        """A signature captured from a failure, None if nothing in it can be recognised again."""
        log = self.store.log(observation) if observation.outcome is Outcome.EXITED else ""
        return capture_signature(observation, log)

    def or_captured(self, observation: Observation) -> Judge:
        """This judge; if it has no signature yet, one with the signature of the observation, if that failed."""
        return self if self.signature is not None else evolve(self, signature=self.captured(observation))
