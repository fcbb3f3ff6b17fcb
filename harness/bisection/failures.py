"""The failures between two runs: the tests that newly fail, grouped by how they fail; a command has one failure.

One run of a test suite judges every group. Whether a failure with another message counts as bad depends on the search:
the tests may have failed with another message before they failed with the current one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from attrs import evolve, field, frozen

from harness.culprit.mentions import SENTENCE_END
from harness.culprit.ranking import named_in
from harness.model import (
    Judgement,
    Observation,
    Outcome,
    RaisedException,
    Signature,
    TestOutcome,
    TestResult,
    Verdict,
)
from harness.model.observation import EXIT, WHOLE_RUN
from harness.model.signature import normalized_message, without_end
from harness.model.text import one_line
from harness.probing import Judge
from harness.run.commands import NO_TESTS
from harness.store import Store

_PASSES = frozenset({TestOutcome.PASSED, TestOutcome.XPASSED})
_NEITHER = frozenset({TestOutcome.SKIPPED, TestOutcome.XFAILED})
_MESSAGE_LIMIT = 300
_LINE = 200  # characters of an exception in a sentence
_FAILED = RaisedException("Failed", "")


@frozen
class FailureJudge(Judge):
    """Judges runs by one failure: of some tests, or without `tests` of the whole command.

    `differing` is the verdict on a failure with another message: the tests may have failed so before. `is_new` is that
    of the group.
    """

    tests: tuple[str, ...] = field(default=(), kw_only=True)
    is_new: bool = field(default=False, kw_only=True)
    differing: Verdict = field(default=Verdict.SKIP, kw_only=True)

    def __call__(self, observation: Observation) -> Judgement:
        """Return the verdict on one observation, with its reason."""
        observation = self.reduced(observation)
        judgement = super().__call__(observation)
        differs = judgement.verdict is Verdict.SKIP and observation.outcome.may_show_bug
        verdict = self.differing if differs else judgement.verdict
        return Judgement(verdict, (self.tests and observation.detail) or judgement.reason, differs)

    def _failures(self, observation: Observation, log: str) -> Mapping[str, RaisedException]:
        signature = self.signature
        if not self.tests or signature is None:
            return super()._failures(observation, log)
        failures = _Results(observation).all_failures(self.tests)
        alike = (failure for failure in failures if signature.match(_raising(observation, failure.exception)))
        return {failure.id: failure.exception for failure in alike if failure.exception is not None}

    def reduced(self, observation: Observation) -> Observation:
        """The run as if only its tests had run."""
        if not self.tests or self.signature is None:
            return observation
        return reduced_to(observation, Group(self.tests, self.signature, is_new=self.is_new))

    def raised(self, observation: Observation) -> RaisedException | None:
        """The exception of the first of its tests that failed, else the one that ended the run."""
        failures = _Results(observation).all_failures(self.tests)
        exception = next((failure.exception for failure in failures if failure.exception is not None), None)
        return exception or super().raised(observation)


@frozen
class Group:
    """Tests that passed at the good end and fail in the same way at the bad end; none for a whole command.

    `signature` describes that failure. `exceptions` are those of the bad end, followed by their causes; they are used
    to guess the package. With `is_new` the tests did not pass at the good end but did not fail either: they were
    skipped, expected to fail, or not there, so any run in which they don't fail is good.
    """

    tests: tuple[str, ...]
    signature: Signature
    exceptions: tuple[RaisedException, ...] = ()
    is_new: bool = False

    def judge(self, store: Store) -> FailureJudge:
        """Return the judge for which only this failure is bad; `store` has the logs of the runs."""
        return FailureJudge(self.signature, store, tests=self.tests, is_new=self.is_new)


@frozen
class Groups:
    """The failures between a question's two ends, the largest first.

    `flaky` tests both passed and failed in one environment; `not_run` passed at the good end and have no result at the
    bad one.
    """

    groups: tuple[Group, ...]
    failing_at_both: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    not_run: tuple[str, ...] = ()

    @property
    def tests(self) -> tuple[str, ...]:
        """The tests of all groups."""
        return tuple(test for group in self.groups for test in group.tests)


def failures_between(
    good: Sequence[Observation], bad: Sequence[Observation], store: Store, given: Signature | None = None
) -> Groups:
    """Return what passes at the good end and fails at the bad one, if anything does.

    Each end has one run or more of one environment; further runs show which tests are flaky.
    """
    if good[0].tests and given is None:
        return newly_failing(good, bad)
    if given is not None and not any(Judge(given, store)(run).verdict is Verdict.BAD for run in bad):
        return Groups(())
    failing = next((run for run in bad if fails(run, store, given)), bad[0])
    signature = given or Judge(None, store).captured(failing)
    if signature is None or fails(good[0], store, given):
        return Groups(())
    return Groups((Group((), signature, (failing.exception,) if failing.exception is not None else ()),))


def fails(run: Observation, store: Store, given: Signature | None) -> bool:
    """Whether a run fails: a run to the end does if it has the given signature, such as a wrong number."""
    if run.outcome is not Outcome.COMPLETED or given is None:
        return run.outcome is not Outcome.COMPLETED
    return Judge(given, store)(run).verdict is Verdict.BAD


def newly_failing(good: Sequence[Observation], bad: Sequence[Observation]) -> Groups:
    """Group the tests that pass at the good end and fail at the bad one by how they fail.

    The first run of each end counts; a test with contradicting results in further ones is flaky. The failure of a
    module that can't be imported counts for all its tests. What was skipped, expected to fail or absent in a good end
    that ended well, and the clean-up of a class or module, can newly fail, too.
    """
    flaky = disagreeing(good) | disagreeing(bad)
    at_good, at_bad = _Results(good[0]), _Results(bad[0])
    failing_by_key: dict[tuple[str, ...], list[tuple[str, RaisedException]]] = {}
    both: list[str] = []
    not_run: list[str] = []
    for test in at_good.own:
        if not at_good.all_pass(test):
            fails = at_good.failures(test) and at_bad.failures(test) and test not in flaky
            both += [test] if fails else []
            continue
        failures = at_bad.failures(test)
        if test in flaky or any(failure.id in flaky for failure in failures):
            continue
        if not failures:
            not_run += [test] if test != EXIT and not at_bad.all_pass(test) else []
            continue
        raised = failures[0].exception or _FAILED
        failing_by_key.setdefault(_key(test, failures[0], raised), []).append((test, raised))
    new: dict[tuple[str, ...], list[tuple[str, RaisedException]]] = {}
    is_whole = good[0].repro_digest == bad[0].repro_digest  # a run of some tests says nothing about the others
    for failure in at_bad.new_failures(at_good, good[0].outcome is Outcome.COMPLETED) if is_whole else ():
        if failure.id not in flaky:
            raised = failure.exception or _FAILED
            new.setdefault(_key(failure.id, failure, raised), []).append((failure.id, raised))
    groups = tuple(
        Group(tuple(test for test, _ in failing), _signature([raised for _, raised in failing]), is_new=is_new)
        for is_new, by_key in ((False, failing_by_key), (True, new))
        for failing in by_key.values()
    )
    groups = tuple(evolve(group, exceptions=_raised_by(bad[0], group)) for group in groups)
    return Groups(
        groups=tuple(sorted(groups, key=lambda group: (-len(group.tests), group.tests))),
        failing_at_both=tuple(both),
        flaky=tuple(sorted(flaky)),
        not_run=tuple(not_run),
    )


def reduced_to(observation: Observation, group: Group) -> Observation:
    """Return the run as if it had only run the group's tests; as it is if the group is a whole command.

    It raised the exception of the group, or else of another failure of its tests; it completed if all of them ran and
    passed. So code for repros also works for a group of tests.
    """
    if not group.tests:
        return observation
    results = _Results(observation)
    raised = [(failure.id, _raising(observation, failure.exception)) for failure in results.all_failures(group.tests)]
    if raised:
        test, run = next((pair for pair in raised if group.signature.match(pair[1])), raised[0])
        return evolve(run, detail=f"{titled(run.exception)} ({test})")
    if not observation.outcome.ran:
        return observation
    if group.is_new and results.ended:
        return evolve(observation, outcome=Outcome.COMPLETED, exception=None, exit_code=0, detail=_no_failure(group))
    missing = [test for test in group.tests if not results.all_pass(test)]
    if not missing:
        passed = "the test passed" if len(group.tests) == 1 else f"all {len(group.tests)} tests passed"
        passed = "the exit code is 0" if group.tests == (EXIT,) else passed
        return evolve(observation, outcome=Outcome.COMPLETED, exception=None, exit_code=0, detail=passed)
    if missing == [EXIT]:
        detail = f"other tests failed, so the exit code says nothing: {observation.detail}"
        return evolve(observation, outcome=Outcome.DECLINED, exception=None, detail=detail)
    what = "was skipped" if results.of(missing[0]) else "did not run"
    others = f" and {len(missing) - 1} more of {len(group.tests)}" if len(missing) > 1 else ""
    why = f"; {observation.detail}" if observation.detail and observation.outcome is not Outcome.COMPLETED else ""
    detail = f"{missing[0]} {what}{others}{why}"
    return evolve(observation, outcome=Outcome.DECLINED, exception=None, detail=detail)


def _no_failure(group: Group) -> str:
    return f"{group.tests[0]} does not fail" if len(group.tests) == 1 else f"none of {len(group.tests)} tests fails"


def some_of_each(observation: Observation, tests: Sequence[str] = ()) -> tuple[str, ...]:
    """Return some failing tests for each way to fail in a run; of `tests`, if there are any.

    Modules that can't be imported stand for their tests. Empty if nothing could be run.
    """
    results = _Results(observation)
    tests_by_key: dict[tuple[str, ...], list[str]] = {}
    for test in tests or (result.id for result in observation.tests):
        for failure in results.failures(test)[:1]:
            raised = failure.exception or _FAILED
            tests_by_key.setdefault(_key(test, failure, raised), []).append(test)
    every = (test for names in tests_by_key.values() for test in (names[0], names[len(names) // 2], names[-1]))
    return tuple(dict.fromkeys(every)) if WHOLE_RUN not in results.own else ()


def fails_alike(run: Observation, bad: Observation) -> bool:
    """Whether a test fails in a run as one does in `bad`; true if nothing could be run there."""
    if WHOLE_RUN in _Results(bad).own:
        return True
    keys, wanted = (
        {_key(result.id, result, result.exception or _FAILED) for result in observed.tests if result.outcome.is_failure}
        for observed in (run, bad)
    )
    return not keys.isdisjoint(wanted)


def packages_named(observation: Observation, packages: Sequence[str]) -> tuple[str, ...]:
    """Return those of some packages that the failures of a run name or have in a traceback, the most frequent first."""
    counts = Counter(
        name for exception in raised_in(observation) for name in named_in(tuple(exception.chain()), packages)
    )
    return tuple(name for name, _ in counts.most_common())


def failing_of(observation: Observation, tests: Iterable[str]) -> tuple[str, ...]:
    """Return the tests among these that fail in a run, for any reason."""
    results = _Results(observation)
    return tuple(test for test in tests if results.failures(test))


class _Results:
    """The results of one run by test; the failure of a module, class or folder counts for the tests in it.

    The exit code of a command counts as a test that passed, if it is 0.
    """

    def __init__(self, observation: Observation) -> None:
        self.own = {result.id: result for result in observation.tests}
        if observation.tests and observation.outcome is Outcome.COMPLETED:
            self.own[EXIT] = TestResult(EXIT, TestOutcome.PASSED)
        has_no_test = observation.mistake == NO_TESTS
        self.ended = EXIT in self.own or has_no_test or (bool(self.own) and observation.outcome is Outcome.EXITED)
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
        near = [result for result in self._failed if stands_for(result.id, test)]
        return sorted(near, key=lambda result: -len(result.id) if result.id != WHOLE_RUN else 1)[:1]

    def failures(self, test: str) -> list[TestResult]:
        """Return the failures among the results that count for a test."""
        return [result for result in self.of(test) if result.outcome.is_failure]

    def all_failures(self, tests: Iterable[str]) -> Iterable[TestResult]:
        """Return each failure of these tests once."""
        return {failure.id: failure for test in tests for failure in self.failures(test)}.values()

    def new_failures(self, older: _Results, ended_well: bool) -> Iterable[TestResult]:
        """Return the failures of what neither passed nor failed in an older run.

        If that run did not end well, only those of a clean-up are known to be new.
        """
        ran = [test for test, result in older.own.items() if result.outcome not in _NEITHER]
        counted = {failure.id for test in ran for failure in self.failures(test)}
        for failure in self._failed:
            if failure.id == WHOLE_RUN or failure.id in counted:
                continue
            is_new = failure.id not in older.own and not older.of(failure.id)
            if ended_well or (is_new and self._is_clean_up(failure)):
                yield failure

    def _is_clean_up(self, failure: TestResult) -> bool:
        """Whether tests of a class or module that failed have ended before."""
        return any(stands_for(failure.id, test) for test in self.own)

    def all_pass(self, test: str) -> bool:
        """Whether a test ran and passed."""
        results = self.of(test)
        return bool(results) and all(result.outcome in _PASSES for result in results)


def stands_for(failed: str, test: str) -> bool:
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


def disagreeing(observations: Sequence[Observation]) -> frozenset[str]:
    """Return the tests that passed in one of these runs and failed in another, the exit code among them."""
    passed: set[str] = set()
    failed: set[str] = set()
    for observation in observations:
        for result in observation.tests:
            if result.outcome in _PASSES:
                passed.add(result.id)
            elif result.outcome.is_failure:
                failed.add(result.id)
    # A run of some tests says nothing about the exit code of all.
    all_ran = max((len(observation.tests) for observation in observations), default=0) - (EXIT in failed)
    if any(run.outcome is Outcome.COMPLETED and len(run.tests) >= all_ran for run in observations):
        passed.add(EXIT)
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
    message = without_end(_text_of(raised))
    return (raised.type, message) if message else (raised.type, "", _foreign_frame(raised))


def _signature(failures: Sequence[RaisedException]) -> Signature:
    """Return the signature that recognises these failures."""
    first = failures[0]
    if len({(raised.type, without_end(_text_of(raised))) for raised in failures}) > 1:
        roots = [_root(raised) for raised in failures]
        first = roots[0] if len({(raised.type, _text_of(raised)) for raised in roots}) == 1 else first
    message = None if first.name == "AssertionError" else _text_of(first) or None
    frames = {_foreign_frame(raised) for raised in failures}
    frame = next(iter(frames)) if message is None and len(frames) == 1 else ""
    return Signature(exception=first.name, message=message, frame=frame or None, captured=True)


def _root(raised: RaisedException) -> RaisedException:
    *_, root = raised.chain()
    return root


def _foreign_frame(raised: RaisedException) -> str:
    """Return the innermost frame in an installed package as "file:function", "" if there is none."""
    inner = next((frame for frame in reversed(raised.frames) if frame.package), None)
    return f"{inner.file}:{inner.function}" if inner is not None else ""


def _text_of(raised: RaisedException) -> str:
    """Return the first sentence of a message, normalised; for a missing fixture without the test that requests it."""
    line = next((line for line in raised.message.splitlines() if line.strip()), "")
    sentence = normalized_message(SENTENCE_END.split(line.strip(), maxsplit=1)[0])[:_MESSAGE_LIMIT]
    return sentence.split(",")[0] if raised.name == "FixtureLookupError" else sentence


def _raised_by(bad: Observation, group: Group) -> tuple[RaisedException, ...]:
    """Return the exception of the group at the bad end, followed by its causes."""
    raised = reduced_to(bad, group).exception
    return tuple(raised.chain()) if raised is not None else ()


def _raising(observation: Observation, raised: RaisedException | None) -> Observation:
    return evolve(observation, outcome=Outcome.RAISED, exception=raised or _FAILED)


def titled(raised: RaisedException | None) -> str:
    """Return an exception in one line, "failed" without one."""
    return one_line(f"{raised.name}: {raised.message}".strip(": "), _LINE) if raised is not None else "failed"


def raised_in(run: Observation) -> list[RaisedException]:
    """Return the exception of a run, and those of its tests that failed."""
    raised = [run.exception, *(test.exception for test in run.tests if test.outcome.is_failure)]
    return [exception for exception in raised if exception is not None]
