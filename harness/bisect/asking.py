"""What is asked of every run: one question for each group of tests that newly fail, or one for a command as a whole."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from harness.bisect.groups import Group, newly_failing, seen_by
from harness.bisect.standing import Stand, stand_of_command, stand_of_group
from harness.model import Observation, Outcome, RaisedException, Signature
from harness.probe import Judge
from harness.store import Store


@frozen
class Asking:
    """One group's question: its tests (none for a command as a whole), its signature, and how a run is judged.

    `exceptions` are those of the bad end, which point at packages.
    """

    tests: tuple[str, ...]
    signature: Signature
    stand: Stand
    exceptions: tuple[RaisedException, ...] = ()


@frozen
class Asked:
    """All questions between two runs, the largest group first; tests set apart are named."""

    askings: tuple[Asking, ...]
    failing_at_both: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    passing_at_good: int = 0

    @property
    def tests(self) -> tuple[str, ...]:
        """The tests of all groups."""
        return tuple(test for asking in self.askings for test in asking.tests)


def asked_between(
    good: Observation,
    bad: Observation,
    store: Store,
    given: Signature | None = None,
    *,
    good_again: Sequence[Observation] = (),
    bad_again: Sequence[Observation] = (),
) -> Asked:
    """The questions of what passes in one run and fails in the other; none where nothing does.

    Further runs of the same two environments tell which tests are flaky.
    """
    if good.tests and given is None:
        found = newly_failing(good, bad, good_again=good_again, bad_again=bad_again)
        askings = tuple(
            Asking(group.tests, group.signature, stand_of_group(group), raised_by(bad, group)) for group in found.groups
        )
        return Asked(askings, found.failing_at_both, found.flaky, found.passing_at_good)
    signature = given or Judge(None, store).captured(bad)
    if signature is None or good.outcome is not Outcome.COMPLETED:
        return Asked(())
    stand = stand_of_command(Judge(signature, store))
    exceptions = (bad.exception,) if bad.exception is not None else ()
    return Asked((Asking((), signature, stand, exceptions),))


def raised_by(bad: Observation, group: Group) -> tuple[RaisedException, ...]:
    """What the group raised at the bad end, with what that came from."""
    raised = seen_by(bad, group).exception
    found: list[RaisedException] = []
    while raised is not None:
        found.append(raised)
        raised = raised.cause
    return tuple(found)
