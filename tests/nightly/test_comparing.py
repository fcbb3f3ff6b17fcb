"""Tonight compared with earlier nights: only a good cell can break, and only through a failure that ran."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from night_cells import choices, record, records
from packaging.version import Version

from harness.nightly.record import Seen, Shown, Standing, compare, is_superseded, nearest_sibling

past = st.lists(records, max_size=6).map(
    lambda found: {one.name: one for one in found if one.standing.is_judged},
)
seen = st.builds(
    lambda choice, shown, pattern: Seen(str(sorted(choice.items(), key=str)), choice, shown, pattern, "tonight"),
    choices,
    st.sampled_from(list(Shown)),
    st.sampled_from(["p", "q"]),
)


@given(seen, past, past)
def test_only_an_unbroken_cell_can_break(seen, past, tonight):
    compared = compare(seen, past, tonight)
    if compared.standing is Standing.TURNED:
        assert compared.baseline.standing in (Standing.GOOD, Standing.TURNED, Standing.FLAKY)
        assert seen.shown in (Shown.BAD, Shown.ODD)


@given(seen, past, past)
def test_a_cell_that_never_ran_is_not_judged(seen, past, tonight):
    stands = compare(seen, past, tonight).standing
    assert (stands is Standing.UNJUDGED) or seen.shown is not Shown.NOTHING
    assert seen.shown is not Shown.GOOD or stands is Standing.GOOD


@given(seen, past, past)
def test_a_cell_is_first_compared_with_itself(seen, past, tonight):
    compared = compare(seen, past, tonight)
    assert seen.name not in past or compared.baseline == past[seen.name]


@given(seen, past)
def test_an_unchanged_cell_is_no_news(seen, past):
    """A recorded result that is seen again neither breaks nor is fixed."""
    standing = {Shown.GOOD: Standing.GOOD, Shown.BAD: Standing.BROKEN}.get(seen.shown)
    if standing is not None:
        before = record(seen.name, standing, choice=dict(seen.choice), pattern=seen.pattern)
        compared = compare(seen, {**past, seen.name: before}, {})
        assert (compared.standing, compared.is_fixed) == (standing, False)


@given(choices, st.lists(records, max_size=8))
def test_the_sibling_is_the_next_older_judged_release(choice, others):
    found = nearest_sibling(choice, others)
    same = [
        other
        for other in others
        if other.standing.is_judged
        and other.choice["parameters.case"] == choice["parameters.case"]
        and Version(other.choice["packages.app"]) < Version(choice["packages.app"])
    ]
    assert (found is None) == (not same)
    if found is not None:
        newest = max(Version(other.choice["packages.app"]) for other in same)
        assert Version(found.choice["packages.app"]) == newest


def test_the_good_one_of_two_siblings_is_taken():
    choice = {"packages.app": "2", "packages.helper": "2"}
    bad = record("b", Standing.BROKEN, choice={"packages.app": "1", "packages.helper": "2"})
    good = record("g", Standing.GOOD, choice={"packages.app": "2", "packages.helper": "1"})
    assert nearest_sibling(choice, [bad, good]) == good


def test_the_same_release_in_another_spelling_is_not_older():
    assert nearest_sibling({"packages.app": "1.0"}, [record(choice={"packages.app": "1.0.0"})]) is None


def test_a_cell_with_another_python_or_parameter_is_not_a_sibling():
    other = record(choice={"packages.app": "1", "python": "3.11"})
    assert nearest_sibling({"packages.app": "1", "python": "3.12"}, [other]) is None
    assert nearest_sibling({"packages.app": "2", "python": "3.12"}, [other]) is None


@pytest.mark.parametrize(
    ("standing", "pattern", "now"),
    [
        (Standing.GOOD, "p", Standing.TURNED),
        (Standing.TURNED, "p", Standing.TURNED),
        (Standing.BROKEN, "p", Standing.BROKEN),
        (Standing.BROKEN, "q", Standing.UNJUDGED),
        (Standing.BEFORE, "p", Standing.BEFORE),
        (Standing.FLAKY, "p", Standing.TURNED),
    ],
)
def test_the_meaning_of_a_failure_depends_on_the_previous_state(standing, pattern, now):
    before = record("a", standing, pattern=pattern)
    assert compare(Seen("a", before.choice, Shown.BAD, "p", "tonight"), {"a": before}, {}).standing is now


@pytest.mark.parametrize("was", [Standing.BROKEN, Standing.BEFORE])
def test_a_bad_cell_that_is_good_now_is_fixed(was):
    before = record("a", was)
    assert compare(Seen("a", before.choice, Shown.GOOD), {"a": before}, {}).is_fixed
    assert not compare(Seen("a", before.choice, Shown.GOOD), {"a": record("a", Standing.FLAKY)}, {}).is_fixed


def test_a_known_flaky_run_is_no_news():
    before = record("a", Standing.FLAKY)
    assert compare(Seen("a", before.choice, Shown.BAD, "p", "run a"), {"a": before}, {}).standing is Standing.FLAKY


def test_in_a_first_night_bad_is_known_and_other_failures_are_not_judged():
    assert compare(Seen("a", {}, Shown.BAD, "p"), {}, {}).standing is Standing.BEFORE
    assert compare(Seen("a", {}, Shown.ODD, "p"), {}, {}).standing is Standing.UNJUDGED


def test_a_cell_is_superseded_by_a_good_newer_release_of_the_culprit():
    old = record("old", Standing.BROKEN, choice={"packages.app": "1.1"})
    good = record("good", choice={"packages.app": "1.2"})
    assert is_superseded(old, [good], ["app"])
    assert not is_superseded(old, [good], ["helper"])
    assert not is_superseded(good, [record("older")], ["app"])
    assert not is_superseded(old, [record("bad", Standing.BROKEN, choice={"packages.app": "1.2"})], ["app"])
