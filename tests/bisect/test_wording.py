"""The sentence on a culprit: how sure it is, whose it is, and short however much there is to name."""

from __future__ import annotations

import pytest
from attrs import evolve

from harness.bisect.answer import Answer, Status
from harness.bisect.wording import culprit_sentence, sentence_for
from harness.model import Change, Verdict
from harness.model.culprit import Culprit, Finding, Level, Proof, Region
from harness.search import BisectionResult, BisectionStatus

ANSWER = Answer("shop", "step", Status.FOUND, "", None, (), last_good="1.0", first_bad="1.1")
CHANGE = Change("shop", "1.0", "1.1")
BACK = Proof("the bad environment with only it reverted", Verdict.GOOD, Verdict.GOOD, "ran to its end")
FORTH = Proof("the good environment with only it advanced", Verdict.BAD, Verdict.BAD, "it failed")
SKIPPED = evolve(FORTH, verdict=Verdict.SKIP)


def region(line, file="shop.py", function=""):
    return Region(file, (line, line), (line, line), function, "")


def said(**parts):
    finding = Finding(Level.REGION, **{"packages": (CHANGE,), "proofs": (BACK, FORTH), **parts})
    return culprit_sentence(ANSWER, Culprit((finding,)))


def test_what_is_proved_both_ways_is_the_cause():
    told = said(files=("shop.py",), regions=(region(3, function="run"),))
    assert told == (
        "The cause is shop 1.1, in shop.py, at line 3 of run: "
        "reverting that alone undoes it, adding that alone brings it."
    )


def test_what_is_shown_one_way_or_not_at_all_is_a_suspect():
    one_way = said(files=("shop.py",), proofs=(BACK, SKIPPED))
    assert one_way.startswith("The suspect is shop 1.1, in shop.py: shown one way only")
    assert said(proofs=(SKIPPED,)) == "The suspect is shop 1.1: not proved."


@pytest.mark.parametrize(
    ("count", "places"),
    [(2, "line 1 and line 2"), (3, "line 1, line 2 and line 3"), (9, "line 1, line 2 and 7 more")],
)
def test_of_many_places_the_first_two_are_named(count, places):
    lines = tuple(region(line) for line in range(1, count + 1))
    assert f"in shop.py, at {places}: " in said(files=("shop.py",), regions=lines)
    needed = said(files=("shop.py",), regions=(region(50),), needs=lines)
    assert needed.endswith(f"adding it brings it together with {places}.")


def test_in_several_files_each_place_has_its_own():
    told = said(files=("a.py", "b.py"), regions=(region(1, "a.py"), region(2, "b.py", "run")))
    assert ", at line 1 in a.py and line 2 of run in b.py: " in told


def test_files_that_had_to_come_along_are_told():
    assert said(files=("a.py",), needed_files=("b.py",)).endswith("adding it brings it together with b.py.")


def test_where_another_package_is_the_cause_it_says_where_users_meet_it():
    told = said(packages=(Change("tool", "1.0", None),))
    assert told.startswith("The cause is tool (removed): ")
    assert told.endswith("Users meet it with shop 1.1.")


def test_a_release_between_the_sides_that_was_left_out_is_told():
    """It may have brought the change first; pre-releases are not told, nobody installs them unasked."""
    left_out = {"1.0.5": "yanked: it deletes files", "1.1rc1": "pre-release (--pre includes it)", "0.9": "yanked"}
    told = sentence_for(evolve(ANSWER, left_out=left_out), BisectionResult(BisectionStatus.FOUND), {0: "1.0", 1: "1.1"})
    assert told == "shop 1.1 broke it: 1.0 is good, 1.1 is bad. Between them, and not tried: 1.0.5 (yanked)."
    plain = sentence_for(ANSWER, BisectionResult(BisectionStatus.FOUND), {0: "1.0", 1: "1.1"})
    assert plain == "shop 1.1 broke it: 1.0 is good, 1.1 is bad."
