"""A verdict: good, bad or skip, and why. A failure that does not match the signature is skip, never bad."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

from attrs import frozen

from harness.model.observation import Observation, Outcome
from harness.model.signature import Signature, TooSlow
from harness.model.text import counted, listed, picked


class Verdict(enum.StrEnum):
    """What one observation says about the bug."""

    GOOD = "good"
    BAD = "bad"
    SKIP = "skip"

    @property
    def word(self) -> str:
        """The verdict as a word in a sentence."""
        return "skipped" if self is Verdict.SKIP else self.value


def verdicts_around(*, is_fix: bool) -> tuple[Verdict, Verdict]:
    """The verdicts just before and just after a change, which is a fix or else a regression."""
    return (Verdict.BAD, Verdict.GOOD) if is_fix else (Verdict.GOOD, Verdict.BAD)


def in_words(verdict: str) -> str:
    """The word for a stored verdict; other text is unchanged."""
    return Verdict.SKIP.word if verdict == Verdict.SKIP.value else verdict


_SHOWN = 12  # names of metrics
FAILED_DIFFERENTLY = "failed differently: "


@frozen
class Judgement:
    """A verdict and its reason in one sentence.

    `differs`: the run failed, but otherwise than what the search looks for; some searches count it as good or bad.
    `has_number`: the reason is a number; `is_measured`: nobody knows yet which values of it are bad.
    """

    verdict: Verdict
    reason: str
    differs: bool = False
    has_number: bool = False
    is_measured: bool = False

    @property
    def word(self) -> str:
        """The verdict as a word; a run that failed, or that is only measured, is never called good."""
        if self.is_measured:
            return "ran"
        return "differs" if self.differs and self.verdict is Verdict.GOOD else self.verdict.word


def judge(observation: Observation, signature: Signature, log: str = "") -> Judgement:
    """Judge an observation by the signature; `log` is the output of the run."""
    if not observation.outcome.may_show_bug:
        return Judgement(Verdict.SKIP, observation.detail or observation.outcome.value)
    try:
        match = signature.match(observation, log)
    except TooSlow as why:
        return Judgement(Verdict.SKIP, str(why))
    if match is None:
        return Judgement(Verdict.SKIP, f"metric {signature.metric!r} was not written; {_numbers_in(observation)}")
    if match:
        return Judgement(Verdict.BAD, match)
    if observation.outcome is Outcome.COMPLETED:
        reason, has_number = signature.describe_good(observation, log), signature.metric is not None
        return Judgement(Verdict.GOOD, reason, has_number=has_number, is_measured=signature.is_unbounded)
    return Judgement(Verdict.SKIP, f"{FAILED_DIFFERENTLY}{observation.detail or observation.outcome.value}")


def _numbers_in(observation: Observation) -> str:
    names = listed(sorted(observation.metrics), _SHOWN)
    return f"the run wrote {names}" if names else "the run wrote no number"


@frozen
class Step:
    """One run of a candidate and its verdict. `seconds` is the duration of the run, 0 if nothing ran.

    `drift` is what of its environment could not be held, `altered` the files of it that the run changed.
    """

    release: str
    verdict: Verdict
    reason: str
    observation: str
    cached: bool
    seconds: float
    attempt: int = 0
    drift: tuple[str, ...] = ()
    altered: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The step in the JSON of answers."""
        return {
            **picked(self, "release verdict reason observation cached seconds"),
            **({"attempt": self.attempt} if self.attempt else {}),
        }


def runs_of(runs: int, steps: Iterable[Step], unit: str = "release") -> str:
    """Say how many runs of how many candidates were made now, and how many were known: "12 runs of 5 releases"."""
    steps = tuple(steps)
    ran = {step.release for step in steps if not step.cached and step.seconds}
    cached = sum(step.cached for step in steps)
    if cached and not runs:
        return f"{counted(cached, 'run')}, all known already"
    made = counted(runs, "run") + (f" of {counted(len(ran), unit)}" if ran else "")
    return f"{made}, {cached} known already" if cached else made
