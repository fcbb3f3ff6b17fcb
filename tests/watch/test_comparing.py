"""Tonight compared with earlier nights: only a good cell can break, and only through a failure that ran."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from night_cells import choices, record, records
from packaging.version import Version

from harness.watch.record import CellStatus, compare, is_superseded, nearest_sibling

GOOD, NOTHING = (CellStatus.GOOD, ""), (CellStatus.UNJUDGED, "")


def BAD(pattern: str) -> tuple[CellStatus, str]:  # noqa: N802
    """A failure that matches the signature."""
    return CellStatus.BEFORE, pattern


def ODD(pattern: str) -> tuple[CellStatus, str]:  # noqa: N802
    """Another failure."""
    return CellStatus.UNJUDGED, pattern


def shows(standing: CellStatus, pattern: str = "", *, name: str = "a", observation: str = "tonight", **more):
    """What tonight's run of a cell shows."""
    return record(name, standing, pattern=pattern, observation=observation, **more)


past = st.lists(records, max_size=6).map(
    lambda found: {one.name: one for one in found if one.standing.is_judged},
)
seen = st.builds(
    lambda choice, shown: shows(*shown, name=str(sorted(choice.items(), key=str)), choice=choice),
    choices,
    st.sampled_from([GOOD, *(bad for pattern in ("p", "q") for bad in (BAD(pattern), ODD(pattern))), NOTHING]),
)


@given(seen, past, past)
def test_only_an_unbroken_cell_can_break(seen, past, tonight):
    compared = compare(seen, past, tonight)
    if compared.record.standing is CellStatus.TURNED:
        assert compared.baseline.standing in (CellStatus.GOOD, CellStatus.TURNED, CellStatus.FLAKY)
        assert seen.pattern


@given(seen, past, past)
def test_a_cell_that_never_ran_is_not_judged(seen, past, tonight):
    stands = compare(seen, past, tonight).record.standing
    assert (stands is CellStatus.UNJUDGED) or (seen.standing, seen.pattern) != NOTHING
    assert seen.standing is not CellStatus.GOOD or stands is CellStatus.GOOD


@given(seen, past, past)
def test_a_cell_is_first_compared_with_itself(seen, past, tonight):
    compared = compare(seen, past, tonight)
    assert seen.name not in past or compared.baseline == past[seen.name]


@given(seen, past)
def test_an_unchanged_cell_is_no_news(seen, past):
    """A recorded result that is seen again neither breaks nor is fixed."""
    standing = {CellStatus.GOOD: CellStatus.GOOD, CellStatus.BEFORE: CellStatus.BROKEN}.get(seen.standing)
    if standing is not None:
        before = record(seen.name, standing, choice=dict(seen.choice), pattern=seen.pattern)
        compared = compare(seen, {**past, seen.name: before}, {})
        assert (compared.record.standing, compared.is_fixed) == (standing, False)


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
    bad = record("b", CellStatus.BROKEN, choice={"packages.app": "1", "packages.helper": "2"})
    good = record("g", CellStatus.GOOD, choice={"packages.app": "2", "packages.helper": "1"})
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
        (CellStatus.GOOD, "p", CellStatus.TURNED),
        (CellStatus.TURNED, "p", CellStatus.TURNED),
        (CellStatus.BROKEN, "p", CellStatus.BROKEN),
        (CellStatus.BROKEN, "q", CellStatus.UNJUDGED),
        (CellStatus.BEFORE, "p", CellStatus.BEFORE),
        (CellStatus.FLAKY, "p", CellStatus.TURNED),
    ],
)
def test_the_meaning_of_a_failure_depends_on_the_previous_state(standing, pattern, now):
    before = record("a", standing, pattern=pattern)
    assert compare(shows(*BAD("p")), {"a": before}, {}).record.standing is now


@pytest.mark.parametrize("was", [CellStatus.BROKEN, CellStatus.BEFORE])
def test_a_bad_cell_that_is_good_now_is_fixed(was):
    before = record("a", was)
    assert compare(shows(*GOOD), {"a": before}, {}).is_fixed
    assert not compare(shows(*GOOD), {"a": record("a", CellStatus.FLAKY)}, {}).is_fixed


def test_a_known_flaky_run_is_no_news():
    before = record("a", CellStatus.FLAKY)
    again = shows(*BAD("p"), observation="run a")
    assert compare(again, {"a": before}, {}).record.standing is CellStatus.FLAKY


def test_in_a_first_night_bad_is_known_and_other_failures_are_not_judged():
    assert compare(shows(*BAD("p")), {}, {}).record.standing is CellStatus.BEFORE
    assert compare(shows(*ODD("p")), {}, {}).record.standing is CellStatus.UNJUDGED


def test_a_cell_is_superseded_by_a_good_newer_release_of_the_culprit():
    old = record("old", CellStatus.BROKEN, choice={"packages.app": "1.1"})
    good = record("good", choice={"packages.app": "1.2"})
    assert is_superseded(old, [good], ["app"])
    assert not is_superseded(old, [good], ["helper"])
    assert not is_superseded(good, [record("older")], ["app"])
    assert not is_superseded(old, [record("bad", CellStatus.BROKEN, choice={"packages.app": "1.2"})], ["app"])
