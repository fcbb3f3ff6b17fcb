"""The sentence about a culprit: how sure it is, which package it is in, and short however much there is to name."""

from __future__ import annotations

import pytest
from attrs import evolve
from support import changed, make_answer

from harness.asking.answer import Status
from harness.asking.wording import culprit_sentence, sentence_for, sentence_with_culprit
from harness.model import Change, Signature, Verdict
from harness.model.culprit import Culprit, Finding, Level, Proof, Region
from harness.search import BisectionResult, BisectionStatus
from harness.search.measured import effect_of

ANSWER = make_answer("shop", before="1.0", after="1.1")
CHANGE = Change("shop", "1.0", "1.1")
NAMES = {0: "1.0", 1: "1.1"}
BACK = Proof("shop 1.1 with shop.py from 1.0", Verdict.GOOD, Verdict.GOOD, "ran to its end")
FORTH = Proof("shop 1.0 with shop.py from 1.1", Verdict.BAD, Verdict.BAD, "it failed")
SKIPPED = evolve(FORTH, verdict=Verdict.SKIP)


def region(line, file="shop.py", function=""):
    return Region(file, (line, line), (line, line), function, "")


def said(**parts):
    finding = Finding(Level.REGION, **{"packages": (CHANGE,), "proofs": (BACK, FORTH), **parts})
    return culprit_sentence(ANSWER, Culprit((finding,)))


def test_proof_both_ways_makes_a_culprit():
    told = said(files=("shop.py",), regions=(region(3, function="run"),))
    assert all(fact in told for fact in ("culprit is shop 1.1", "in run (shop.py, line 3)", "reverted", "adding it"))
    assert "not proved" not in told


def test_a_fix_is_said_to_remove_the_bug():
    answer = changed(ANSWER, status=Status.FIXED, before="1.0", after="1.1", is_fix=True)
    told = culprit_sentence(answer, Culprit((Finding(Level.FILE, (CHANGE,), ("shop.py",), proofs=(BACK, FORTH)),)))
    assert "The fix is shop 1.1" in told
    assert "bug is gone" not in told


def test_proof_one_way_or_none_makes_a_suspect():
    one_way = said(files=("shop.py",), proofs=(BACK, SKIPPED))
    assert one_way.startswith("The suspect is shop 1.1, in shop.py: shown one way only")
    assert said(proofs=(SKIPPED,)) == "The suspect is shop 1.1: not proved."


@pytest.mark.parametrize(
    ("count", "places"),
    [(2, "lines 1 and 3"), (3, "lines 1, 3 and 5"), (9, "lines 1, 3 and 7 more")],
)
def test_only_the_first_two_of_many_places_are_named(count, places):
    lines = tuple(region(line) for line in range(1, 2 * count, 2))
    assert f"in shop.py, {places}: " in said(files=("shop.py",), regions=lines)
    needed = said(files=("shop.py",), regions=(region(50),), needs=lines)
    assert f"(shop.py, {places})" in needed.partition("adding it")[2]


def test_each_place_names_its_file():
    told = said(files=("a.py", "b.py"), regions=(region(1, "a.py"), region(2, "b.py", "run")))
    assert ", in a.py, line 1 and run (b.py, line 2): " in told


def test_files_needed_along_with_the_culprit_are_named():
    told = said(files=("a.py",), needed_files=("b.py",))
    assert "(b.py)" in told.partition("adding it")[2]
    assert "import" not in told


def test_imports_needed_along_with_the_culprit_are_called_imports():
    imports = evolve(region(1), diff="@@ -1 +1,2 @@\n import a\n+from b import c\n")
    assert "imports" in said(files=("a.py",), regions=(region(9),), needs=(imports,))
    code = evolve(imports, diff="@@ -1 +1,2 @@\n import a\n+c = 1\n")
    assert "imports" not in said(files=("a.py",), regions=(region(9),), needs=(imports, code))


def test_a_culprit_in_another_package_is_kept_apart_from_where_users_hit_it():
    finding = Finding(Level.FILE, (Change("tool", "1.0", "2.0"),), ("tool.py",), proofs=(BACK, FORTH))
    answer = changed(ANSWER, sentence=sentence_for(ANSWER, BisectionResult(BisectionStatus.FOUND), NAMES))
    told = sentence_with_culprit(answer, Culprit((finding,)))
    assert "broke it" not in told
    users, _, culprit = told.partition("The culprit is ")
    assert "shop 1.1" in users
    assert "tool" not in users
    assert culprit.startswith("tool 2.0, which shop 1.1 ")
    assert "in tool.py" in culprit


def test_a_culprit_in_the_bisected_package_broke_it():
    answer = changed(ANSWER, sentence=sentence_for(ANSWER, BisectionResult(BisectionStatus.FOUND), NAMES))
    told = sentence_with_culprit(answer, Culprit((Finding(Level.FILE, (CHANGE,), proofs=(BACK, FORTH)),)))
    assert told.startswith(answer.sentence)


def test_a_removed_package_is_reported():
    told = said(packages=(Change("tool", "1.0", None),))
    assert "tool (removed)" in told
    assert "lets in" not in told


def test_an_excluded_release_between_the_sides_is_reported():
    """The excluded release can be the first with the change; pre-releases are not mentioned, because nobody installs
    them by default."""
    left_out = {"1.0.5": "yanked: it deletes files", "1.1rc1": "pre-release (--pre includes it)", "0.9": "yanked"}
    told = sentence_for(changed(ANSWER, left_out=left_out), BisectionResult(BisectionStatus.FOUND), NAMES)
    plain = sentence_for(ANSWER, BisectionResult(BisectionStatus.FOUND), NAMES)
    assert plain == "shop 1.1 broke it: 1.0 is good, 1.1 is bad."
    assert told.startswith(plain)
    assert "1.0.5 (yanked)" in told
    assert "rc1" not in told
    assert "0.9" not in told


@pytest.mark.parametrize("bad", [[2.0] * 3, [1.1, 0.9, 1.4]])
def test_only_a_metric_that_varies_too_much_is_said_to_hide_the_change(bad):
    """Releases between the sides can be skipped as well; then the metric is not to blame."""
    effect = effect_of([1.0, 1.0, 1.0], bad, 0.99)
    result = BisectionResult(BisectionStatus.INCONCLUSIVE, last_good=0, first_bad=2, suspects=(1, 2), effect=effect)
    answer = make_answer(status=Status.INCONCLUSIVE, signature=Signature(metric="loss", above=1.0), effect=effect)
    told = sentence_for(changed(answer, suspects=("1.1", "1.2")), result, {0: "1.0", 1: "1.1", 2: "1.2"})
    assert ("loss varies by 0.5" in told) == (not effect.is_clear)
    assert "1.1" in told
