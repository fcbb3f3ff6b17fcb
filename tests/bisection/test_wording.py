"""The sentence of an answer: since when it fails, which package it is, how sure, and short however much there is."""

from __future__ import annotations

import pytest
from support import changed, make_answer

from harness.bisection.answer import Status
from harness.bisection.wording import cause_of, sentence_of, why_unsure
from harness.model import Change, Signature, Verdict
from harness.model.culprit import Commit, Finding, Level, Proof, Region
from harness.model.verdict import Step
from harness.search import LineResult, LineStatus
from harness.search.numbers import effect_of

ANSWER = make_answer("shop", before="1.0", after="1.1")
CHANGE = Change("shop", "1.0", "1.1")
TOOL = Change("tool", "1.0", "2.0")
GONE = Change("tool", "1.0", None)
BACK = Proof("shop 1.1 with shop.py from 1.0", Verdict.GOOD, Verdict.GOOD, "ran to its end")
FORTH = Proof("shop 1.0 with shop.py from 1.1", Verdict.BAD, Verdict.BAD, "it failed")


def region(line, file="shop.py", function=""):
    return Region(file, (line, line), (line, line), function, "")


def answer_with(**parts):
    finding = Finding(**{"level": Level.REGION, "packages": (CHANGE,), "proofs": (BACK, FORTH), **parts})
    return changed(ANSWER, findings=(finding,))


def cause(**parts):
    return cause_of(answer_with(**parts).culprits[0])


# Only the yanked one is between the sides, and nobody installs a pre-release by default.
LEFT_OUT = {"1.0.5": "yanked: it deletes files", "1.1rc1": "pre-release (--pre includes it)", "0.9": "yanked"}
COMMIT = Commit("0123456789abcdef", "A. Author", "2025-06-20T12:00:00+02:00", "Rework the price")


def in_tool(**parts):
    return answer_with(packages=(TOOL,), files=("tool.py",), **parts)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (answer_with(files=("shop.py",)), "step fails since shop 1.1."),
        (changed(ANSWER, status=Status.FIXED, is_fix=True), "step is fixed in shop 1.1."),
        (in_tool(), "step fails since shop 1.1 (the culprit is tool 2.0)."),
        (in_tool(proofs=(BACK,)), "step fails since shop 1.1 (the culprit is tool 2.0)."),
        (in_tool(proofs=()), "step fails since shop 1.1 (the suspect is tool 2.0)."),
        (answer_with(packages=(CHANGE, TOOL)), "step fails since shop 1.1 together with tool 2.0."),
        (answer_with(packages=(GONE,)), "step fails since shop 1.1 (the culprit is tool (removed))."),
        (changed(ANSWER, after=None), "step fails since shop 1.0 is no longer installed."),
        (
            changed(answer_with(level=Level.COMMIT, commits=(COMMIT,)), unit="commit"),
            "step fails since shop commit 0123456789 (Rework the price; 2025-06-20).",
        ),
        (changed(ANSWER, left_out=LEFT_OUT), "step fails since shop 1.1 (1.0.5 before it not run: yanked)."),
    ],
)
def test_the_sentence_of_an_answer(answer, sentence):
    assert sentence_of(answer) == sentence


@pytest.mark.parametrize(
    ("count", "places"),
    [(2, "lines 1 and 3"), (3, "lines 1, 3 and 5"), (9, "lines 1, 3 and 7 more")],
)
def test_only_the_first_two_of_many_places_are_named(count, places):
    lines = tuple(region(line) for line in range(1, 2 * count, 2))
    assert cause(files=("shop.py",), regions=lines) == f"shop 1.1 changed shop.py, {places}"


def test_each_place_names_its_file():
    told = cause(files=("a.py", "b.py"), regions=(region(1, "a.py"), region(2, "b.py", "run")))
    assert told == "shop 1.1 changed a.py, line 1 and run (b.py, line 2)"


@pytest.mark.parametrize("bad", [[2.0] * 3, [1.1, 0.9, 1.4]])
def test_only_a_metric_that_varies_too_much_is_said_to_hide_the_change(bad):
    """Releases between the sides can be skipped as well; then the metric is not to blame."""
    effect = effect_of([1.0, 1.0, 1.0], bad, 0.99)
    result = LineResult(LineStatus.INCONCLUSIVE, boundary=(0, 2), suspects=(1, 2), effect=effect)
    steps = tuple(Step(name, Verdict.GOOD, "", name, cached=False, seconds=1.0) for name in ("1.0", "1.2"))
    answer = make_answer(effect=effect, suspects=("1.1", "1.2"), before="1.0", after="1.2", steps=steps)
    told = why_unsure(answer.boundary, result, Signature(metric="loss", above=1.0))
    assert ("loss varies by 0.5" in told) == (not effect.is_clear)
    assert "1.1" in told
