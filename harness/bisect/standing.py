"""The standing of a group's tests in one run: passed, failed like the bad end, failed differently, or did not run.

A group is one question; a command without test results is one group without tests. Whether another failure counts
as bad depends on the question: tests may have failed with another message before they failed with the current one.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

from attrs import frozen

from harness.bisect.groups import Group, fails_at_all, judge_group
from harness.model import Judgement, Observation, Verdict
from harness.probe import Judge


class Standing(enum.Enum):
    """The result of one run for a group."""

    PASSES = "passes"
    FAILS = "fails"
    FAILS_OTHERWISE = "fails otherwise"
    UNTESTED = "untested"


@frozen
class Stood:
    """A standing with its reason in one sentence."""

    standing: Standing
    reason: str

    @property
    def strict(self) -> Judgement:
        """The verdict if a failure other than that of the bad end is a skip."""
        verdicts = {Standing.PASSES: Verdict.GOOD, Standing.FAILS: Verdict.BAD}
        return Judgement(verdicts.get(self.standing, Verdict.SKIP), self.reason)

    @property
    def by_passing(self) -> Judgement:
        """The verdict if every failure of the tests is bad."""
        verdicts = {Standing.PASSES: Verdict.GOOD, Standing.UNTESTED: Verdict.SKIP}
        return Judgement(verdicts.get(self.standing, Verdict.BAD), self.reason)

    @property
    def by_message(self) -> Judgement:
        """The verdict if only the failure of the bad end is bad, and any other is good."""
        verdicts = {Standing.FAILS: Verdict.BAD, Standing.UNTESTED: Verdict.SKIP}
        return Judgement(verdicts.get(self.standing, Verdict.GOOD), self.reason)


Stand = Callable[[Observation], Stood]


def stand_of_command(judge: Judge) -> Stand:
    """Return a function that judges a whole command by its signature."""

    def stand(observation: Observation) -> Stood:
        judgement = judge(observation)
        if judgement.verdict is Verdict.GOOD:
            return Stood(Standing.PASSES, judgement.reason)
        if judgement.verdict is Verdict.BAD:
            return Stood(Standing.FAILS, judgement.reason)
        ran = observation.outcome.may_show_bug
        return Stood(Standing.FAILS_OTHERWISE if ran else Standing.UNTESTED, judgement.reason)

    return stand


def stand_of_group(group: Group) -> Stand:
    """Return a function that judges a group of tests."""

    def stand(observation: Observation) -> Stood:
        judgement = judge_group(observation, group)
        if judgement.verdict is Verdict.GOOD:
            return Stood(Standing.PASSES, judgement.reason)
        if judgement.verdict is Verdict.BAD:
            return Stood(Standing.FAILS, judgement.reason)
        at_all = fails_at_all(observation, group)
        if at_all.verdict is Verdict.BAD:
            return Stood(Standing.FAILS_OTHERWISE, at_all.reason)
        return Stood(Standing.UNTESTED, judgement.reason)

    return stand
