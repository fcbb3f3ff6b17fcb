"""The tests broken by an upgrade, grouped by how they fail; each group is a separate question. Pure.

One run of a test suite judges every group. A failure that does not match the group's signature is a skip, never bad.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from attrs import evolve, frozen

from harness.model import Judgement, Observation, Outcome, RaisedException, Signature, TestOutcome, TestResult, Verdict
from harness.model.observation import WHOLE_RUN
from harness.model.signature import normalized_message

FAILS_DIFFERENTLY = "fails differently: "
_PASSES = frozenset({TestOutcome.PASSED, TestOutcome.XPASSED})
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`'\"])")
_MESSAGE_LIMIT = 300


@frozen
class Group:
    """Tests that passed at the good end and fail in the same way at the bad end; `signature` describes that failure."""

    tests: tuple[str, ...]
    signature: Signature


@frozen
class Groups:
    """The tests of a question's two ends.

    `groups` passed at the good end and fail at the bad one, the largest first; `flaky` both passed and failed in one
    environment; `not_run` passed at the good end and have no result at the bad one; `only_at_bad` fail there and are
    unknown at the good end; `passing_at_good` is the number of tests that passed at the good end.
    """

    groups: tuple[Group, ...]
    failing_at_both: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    not_run: tuple[str, ...] = ()
    only_at_bad: tuple[str, ...] = ()
    passing_at_good: int = 0

    @property
    def tests(self) -> tuple[str, ...]:
        """The tests of all groups."""
        return tuple(test for group in self.groups for test in group.tests)


def newly_failing(
    good: Observation,
    bad: Observation,
    *,
    good_again: Sequence[Observation] = (),
    bad_again: Sequence[Observation] = (),
) -> Groups:
    """Group the tests that pass at the good end and fail at the bad one by how they fail.

    `good_again` and `bad_again` are further runs in the same two environments; a test with contradicting results is
    flaky. The failure of a module that can't be imported counts for all its tests.
    """
    flaky = _disagreeing((good, *good_again)) | _disagreeing((bad, *bad_again))
    at_good, at_bad = _Results(good), _Results(bad)
    found: dict[tuple[str, ...], list[tuple[str, RaisedException]]] = {}
    both: list[str] = []
    not_run: list[str] = []
    passing = 0
    for test in at_good.own:
        if not at_good.all_pass(test):
            fails = at_good.failures(test) and at_bad.failures(test) and test not in flaky
            both += [test] if fails else []
            continue
        passing += 1
        failures = at_bad.failures(test)
        if test in flaky or any(failure.id in flaky for failure in failures):
            continue
        if not failures:
            not_run += [test] if not at_bad.all_pass(test) else []
            continue
        raised = failures[0].exception or RaisedException("Failed", "")
        found.setdefault(_key(test, failures[0], raised), []).append((test, raised))
    groups = tuple(
        Group(tuple(test for test, _ in failing), _signature([raised for _, raised in failing]))
        for failing in found.values()
    )
    return Groups(
        groups=tuple(sorted(groups, key=lambda group: (-len(group.tests), group.tests))),
        failing_at_both=tuple(both),
        flaky=tuple(sorted(flaky)),
        not_run=tuple(not_run),
        only_at_bad=tuple(test.id for test in bad.tests if test.outcome.is_failure and not at_good.knows(test.id)),
        passing_at_good=passing,
    )


def judge_group(observation: Observation, group: Group) -> Judgement:
    """Judge a run for one group.

    Bad if one of its tests fails with its signature, good if all of its tests ran and passed. Otherwise skip, with a
    reason that starts with `FAILS_DIFFERENTLY` or says what kept the tests from running.
    """
    results = _Results(observation)
    other: TestResult | None = None
    for failure in results.all_failures(group.tests):
        match = group.signature.match(_raising(observation, failure.exception))
        if match:
            return Judgement(Verdict.BAD, f"{match} ({failure.id})")
        other = other or failure
    if other is not None:
        return Judgement(Verdict.SKIP, f"{FAILS_DIFFERENTLY}{_titled(other.exception)} ({other.id})")
    return _good_or_not_run(observation, results, group)


def fails_at_all(observation: Observation, group: Group) -> Judgement:
    """Judge a run for one group, with any failure of its tests counted as bad.

    The exception may change within a range of bad releases, so the tests may fail in earlier releases than those with
    the current message.
    """
    results = _Results(observation)
    failure = next(iter(results.all_failures(group.tests)), None)
    if failure is not None:
        return Judgement(Verdict.BAD, f"{_titled(failure.exception)} ({failure.id})")
    return _good_or_not_run(observation, results, group)


def seen_by(observation: Observation, group: Group) -> Observation:
    """Return the run as if it had only run the group's tests, with their exception as that of the run.

    So code for repros, such as a `Judge` with the group's signature, also works for a group of tests.
    """
    judgement, results = judge_group(observation, group), _Results(observation)
    if judgement.verdict is Verdict.GOOD:
        return evolve(observation, outcome=Outcome.COMPLETED, exception=None, exit_code=0, detail=judgement.reason)
    failures = list(results.all_failures(group.tests))
    if judgement.verdict is Verdict.BAD:
        failures = [one for one in failures if group.signature.match(_raising(observation, one.exception))]
    if failures:
        return evolve(_raising(observation, failures[0].exception), detail=_titled(failures[0].exception))
    if observation.outcome.ran:
        return evolve(observation, outcome=Outcome.DECLINED, exception=None, detail=judgement.reason)
    return observation


def failing_of(observation: Observation, tests: Iterable[str]) -> tuple[str, ...]:
    """Return the tests among these that fail in a run, for any reason."""
    results = _Results(observation)
    return tuple(test for test in tests if results.failures(test))


class _Results:
    """The results of one run by test; the failure of a module, class or folder counts for the tests in it."""

    def __init__(self, observation: Observation) -> None:
        self.own = {result.id: result for result in observation.tests}
        self._failed = [result for result in observation.tests if result.outcome.is_failure]
        self._by_function: dict[str, list[TestResult]] = {}
        for result in observation.tests:
            self._by_function.setdefault(_function(result.id), []).append(result)

    def of(self, test: str) -> list[TestResult]:
        """Return the results that count for a test.

        Its own result; else those of its function with other parameters; else the failure of what contains it.
        """
        own = self.own.get(test)
        if own is not None:
            return [own]
        if function := self._by_function.get(_function(test)):
            return function
        near = [result for result in self._failed if _stands_for(result.id, test)]
        return sorted(near, key=lambda result: -len(result.id) if result.id != WHOLE_RUN else 1)[:1]

    def failures(self, test: str) -> list[TestResult]:
        """Return the failures among the results that count for a test."""
        return [result for result in self.of(test) if result.outcome.is_failure]

    def all_failures(self, tests: Iterable[str]) -> Iterable[TestResult]:
        """Return each failure of these tests once."""
        return {failure.id: failure for test in tests for failure in self.failures(test)}.values()

    def all_pass(self, test: str) -> bool:
        """Whether a test ran and passed."""
        results = self.of(test)
        return bool(results) and all(result.outcome in _PASSES for result in results)

    def knows(self, failed: str) -> bool:
        """Whether this run has a result for something that failed elsewhere: the test, its function, or its module."""
        return bool(self.of(failed)) or any(_stands_for(failed, test) for test in self.own)


def _stands_for(failed: str, test: str) -> bool:
    """Whether a failed module, class, folder or run contains this test."""
    if failed == WHOLE_RUN:
        return test != WHOLE_RUN
    if test.startswith((f"{failed}::", f"{failed}/")) or ("/" not in failed and test.startswith(f"{failed}.")):
        return True
    folder, _, name = failed.rpartition("/")
    return name in ("conftest.py", "__init__.py") and test != failed and test.startswith(f"{folder}/" if folder else "")


def _function(test: str) -> str:
    """Return the id of a test without its parameters, because their text may change between releases."""
    head, bracket, _ = test.partition("[")
    return head if bracket and test.endswith("]") else test


def _disagreeing(observations: Sequence[Observation]) -> frozenset[str]:
    """Tests that passed in one of these runs and failed in another."""
    passed: set[str] = set()
    failed: set[str] = set()
    for observation in observations:
        for result in observation.tests:
            if result.outcome in _PASSES:
                passed.add(result.id)
            elif result.outcome.is_failure:
                failed.add(result.id)
    return frozenset(passed & failed)


def _key(test: str, failure: TestResult, raised: RaisedException) -> tuple[str, ...]:
    """Return a key that is the same for failures with the same cause.

    The message of an AssertionError differs between tests, so it is not used; the frame in a package is used instead,
    as it is for failures without a message.
    """
    if failure.id != test and _function(failure.id) != _function(test):
        raised = _root(raised)  # several modules may fail to import for the same root cause
    if raised.name == "AssertionError":
        return (raised.type, _foreign_frame(raised) or _function(test))
    message = _told(raised)
    return (raised.type, message) if message else (raised.type, "", _foreign_frame(raised))


def _signature(failures: Sequence[RaisedException]) -> Signature:
    """Return the signature that recognises these failures."""
    first = failures[0]
    if len({(raised.type, _told(raised)) for raised in failures}) > 1:
        roots = [_root(raised) for raised in failures]
        first = roots[0] if len({(raised.type, _told(raised)) for raised in roots}) == 1 else first
    message = None if first.name == "AssertionError" else _told(first) or None
    frames = {_foreign_frame(raised) for raised in failures}
    frame = next(iter(frames)) if message is None and len(frames) == 1 else ""
    return Signature(exception=first.name, message=message, frame=frame or None, captured=True)


def _root(raised: RaisedException) -> RaisedException:
    while raised.cause is not None:
        raised = raised.cause
    return raised


def _foreign_frame(raised: RaisedException) -> str:
    """Return the innermost frame in an installed package as "file:function", "" if there is none."""
    inner = next((frame for frame in reversed(raised.frames) if frame.package), None)
    return f"{inner.file}:{inner.function}" if inner is not None else ""


def _told(raised: RaisedException) -> str:
    """Return the first sentence of a message; for a missing fixture without the test that requests it."""
    sentence = _first_sentence(raised.message)
    return sentence.split(",")[0] if raised.name == "FixtureLookupError" else sentence


def _first_sentence(message: str) -> str:
    """Return the first sentence of the first line that is not empty, normalised."""
    line = next((line for line in message.splitlines() if line.strip()), "")
    return normalized_message(_SENTENCE_END.split(line.strip(), maxsplit=1)[0])[:_MESSAGE_LIMIT]


def _good_or_not_run(observation: Observation, results: _Results, group: Group) -> Judgement:
    if not observation.outcome.ran:
        return Judgement(Verdict.SKIP, observation.detail or observation.outcome.value)
    missing = [test for test in group.tests if not results.all_pass(test)]
    if not missing:
        count = len(group.tests)
        return Judgement(Verdict.GOOD, "the test passed" if count == 1 else f"all {count} tests passed")
    skipped = [test for test in missing if results.of(test)]
    what = "was skipped" if missing[0] in skipped else "did not run"
    more = f" and {len(missing) - 1} more of {len(group.tests)}" if len(missing) > 1 else ""
    detail = observation.detail if observation.outcome is not Outcome.COMPLETED else ""
    return Judgement(Verdict.SKIP, f"{missing[0]} {what}{more}" + (f"; {detail}" if detail else ""))


def _raising(observation: Observation, raised: RaisedException | None) -> Observation:
    return evolve(observation, outcome=Outcome.RAISED, exception=raised or RaisedException("Failed", ""))


def _titled(raised: RaisedException | None, width: int = 200) -> str:
    if raised is None:
        return "failed"
    line = " ".join(f"{raised.name}: {raised.message}".split()).removesuffix(":")
    return line if len(line) <= width else line[: width - 1] + "…"
