"""The questions that each run answers: one for each group of newly failing tests, or one for a whole command."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from harness.bisect.groups import Group, newly_failing, seen_by
from harness.bisect.standing import Stand, stand_of_command, stand_of_group
from harness.model import Observation, Outcome, RaisedException, Signature
from harness.probe import Judge
from harness.store import Store


@frozen
class GroupQuestion:
    """The question of one group: its tests (none for a whole command), its signature, and how to judge a run.

    `exceptions` are those of the bad end; they are used to guess the package.
    """

    tests: tuple[str, ...]
    signature: Signature
    stand: Stand
    exceptions: tuple[RaisedException, ...] = ()


@frozen
class GroupQuestions:
    """All questions between two runs, the largest group first; the other fields are as in `Groups`."""

    questions: tuple[GroupQuestion, ...]
    failing_at_both: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    not_run: tuple[str, ...] = ()

    @property
    def tests(self) -> tuple[str, ...]:
        """The tests of all groups."""
        return tuple(test for question in self.questions for test in question.tests)


def questions_between(
    good: Observation,
    bad: Observation,
    store: Store,
    given: Signature | None = None,
    *,
    good_again: Sequence[Observation] = (),
    bad_again: Sequence[Observation] = (),
) -> GroupQuestions:
    """Return the questions about what passes in the good run and fails in the bad one, if anything does.

    Further runs of the same two environments show which tests are flaky.
    """
    if good.tests and given is None:
        found = newly_failing(good, bad, good_again=good_again, bad_again=bad_again)
        questions = tuple(
            GroupQuestion(group.tests, group.signature, stand_of_group(group), raised_by(bad, group))
            for group in found.groups
        )
        return GroupQuestions(questions, found.failing_at_both, found.flaky, found.not_run)
    signature = given or Judge(None, store).captured(bad)
    if signature is None or good.outcome is not Outcome.COMPLETED:
        return GroupQuestions(())
    stand = stand_of_command(Judge(signature, store))
    exceptions = (bad.exception,) if bad.exception is not None else ()
    return GroupQuestions((GroupQuestion((), signature, stand, exceptions),))


def raised_by(bad: Observation, group: Group) -> tuple[RaisedException, ...]:
    """Return the exception of the group at the bad end, followed by its causes."""
    raised = seen_by(bad, group).exception
    found: list[RaisedException] = []
    while raised is not None:
        found.append(raised)
        raised = raised.cause
    return tuple(found)
