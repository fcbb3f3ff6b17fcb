"""An answer as JUnit XML, for what shows tests in CI: each test as it ran at the bad end, and what broke it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from harness.bisection.answer import Status
from harness.bisection.by_culprit import answer_about
from harness.bisection.failures import stands_for
from harness.model import Observation, RaisedException, TestOutcome, TestResult, Verdict
from harness.model.text import one_line, plain
from harness.redact import redacted
from harness.report.excerpts import trimmed_traceback

if TYPE_CHECKING:
    from harness.bisection.answer import Answer
    from harness.model.culprit import Culprit
    from harness.redact import Private

_NAME = "harness bisect"
_CHILDREN = {
    TestOutcome.FAILED: "failure",
    TestOutcome.ERROR: "error",
    TestOutcome.SKIPPED: "skipped",
    TestOutcome.XFAILED: "skipped",
}
_MESSAGE = 400  # characters of an attribute; the text below has all


def junit_of(answer: Answer, private: Private) -> str:
    """Return the XML. What runs no tests, as a script, is one test; `private` is hidden.

    A test that failed has what broke it as its message, and what fails at both ends or only sometimes says so.
    """
    answer = redacted(answer, private)
    run = _bad_run(answer)
    whole = _whole(answer, run)
    results = (run.tests if run is not None else ()) or (whole,)
    reasons = _reasons(answer, results)
    suite = ElementTree.Element("testsuite", name=_NAME)
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in _properties(answer).items():
        ElementTree.SubElement(properties, "property", name=name, value=plain(value))
    for result in results:
        address = {"classname": "harness", "name": plain(result.id)} if result is whole else _address(result.id)
        case = ElementTree.SubElement(suite, "testcase", {**address, "time": f"{result.duration_s:.3f}"})
        if (child := _CHILDREN.get(result.outcome)) is not None:
            _add(case, child, result, *reasons.get(result.id, ("", "")))
    kinds = Counter(_CHILDREN.get(result.outcome) for result in results)
    total = {"tests": str(len(results)), "failures": str(kinds["failure"]), "errors": str(kinds["error"])}
    if run is not None:
        suite.attrib |= {"timestamp": run.started[:19]}
        total |= {"time": f"{run.duration_s:.3f}"}
    suite.attrib |= {**total, "skipped": str(kinds["skipped"])}
    suites = ElementTree.Element("testsuites", {"name": _NAME, **total})
    suites.append(suite)
    ElementTree.indent(suites)
    # As text it would declare the encoding of the user's locale.
    content: bytes = ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)
    return content.decode() + "\n"


def _bad_run(answer: Answer) -> Observation | None:
    """Return the run of the bad end, or of the bad side if no ends were compared."""
    return answer.comparison.runs[-1] if answer.comparison.runs else answer.boundary.by_verdict.get(Verdict.BAD)


def _reasons(answer: Answer, results: tuple[TestResult, ...]) -> dict[str, tuple[str, str]]:
    """Say of each failed test why it fails, in a clause and in a sentence: what broke it, or that no upgrade did."""
    failed = {result.id for result in results if result.outcome.is_failure}
    # Such as a module that can't be imported, whose tests are what newly fails.
    holders = [result.id for result in results if result.outcome is TestOutcome.ERROR]
    nothing = ("", answer.sentence) if not answer.failures else ("", "")
    reasons = dict.fromkeys(failed, nothing)
    apart = {
        ("fails at both ends", "It fails with the packages of the good end, too."): answer.comparison.failing_at_both,
        ("flaky", "It passed and failed with the same packages."): answer.comparison.flaky,
    }
    for reason, tests in apart.items():
        reasons |= dict.fromkeys(failed.intersection(tests), reason)
    for failure in answer.failures:
        culprits = " and ".join(map(_named, failure.culprits))
        why = f"{'fixed in' if answer.boundary.is_fix else 'fails since'} {culprits}" if culprits else failure.note
        about = answer_about(answer, failure.culprits).sentence if culprits else answer.sentence
        held = (test for test in holders if any(stands_for(test, other) for other in failure.tests))
        of_it = failed.intersection(failure.tests) if failure.tests else failed
        reasons |= dict.fromkeys((*of_it, *held), (why, about))
    return reasons


def _named(culprit: Culprit) -> str:
    return f"{culprit.package} {culprit.boundary.ends[1] or '(removed)'}"


def _whole(answer: Answer, run: Observation | None) -> TestResult:
    """Return the result of what runs no tests."""
    if answer.status is Status.NO_FAILURE:
        outcome = TestOutcome.PASSED
    else:
        outcome = TestOutcome.ERROR if answer.status is Status.MACHINE else TestOutcome.FAILED
    if run is None:
        return TestResult(answer.repro, outcome)
    exception = run.exception or RaisedException("Failed", run.detail)
    return TestResult(answer.repro, outcome, exception, run.duration_s)


def _properties(answer: Answer) -> dict[str, str]:
    return {
        "harness.status": answer.status.value,
        "harness.exit_code": str(answer.exit_code),
        "harness.sentence": answer.sentence,
        "harness.culprits": ", ".join(map(_named, answer.culprits)),
        "harness.constraints": answer.constraint,
        "harness.advice": answer.advice,
    }


def _address(test: str) -> dict[str, str]:
    """Return the attributes that name a test, as pytest and unittest-xml-reporting write them."""
    place, bracket, parameters = plain(test).partition("[")
    path, *names = place.split("::")
    dotted = ".".join([path.removesuffix(".py").replace("/", "."), *names[:-1]])
    where, name = (dotted, names[-1]) if names else ("", dotted) if "/" in path else dotted.rpartition(".")[::2]
    return {"classname": where, "name": f"{name}{bracket}{parameters}"}


def _add(case: ElementTree.Element, child: str, result: TestResult, why: str, about: str) -> None:
    """Add to a test that it was skipped, or why it failed, in a clause and in a sentence."""
    if child == "skipped":
        ElementTree.SubElement(case, child)
        return
    raised = result.exception
    what = f"{raised.name}: {raised.message}" if raised is not None else "failed"
    message = one_line(": ".join(filter(None, [why, what])), _MESSAGE)
    added = ElementTree.SubElement(case, child, message=message, type=raised.type if raised is not None else "failed")
    packages = {frame.package for frame in raised.frames} if raised is not None else set()
    trace = trimmed_traceback(raised, packages, "") if raised is not None and raised.frames else ""
    added.text = plain("\n\n".join(filter(None, [about, trace])))
