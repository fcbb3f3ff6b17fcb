"""A lower bound that is lifted lets older releases in and nothing else; no more are lifted than are needed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from harness.model.requirements import without_lower_bound
from harness.search import fewest

VERSIONS = st.tuples(st.integers(0, 12), st.integers(0, 3)).map(lambda parts: f"{parts[0]}.{parts[1]}")
BOUNDS = st.one_of(
    st.tuples(st.sampled_from([">=", ">", "~=", "==", "<=", "<", "!="]), VERSIONS).map("".join),
    VERSIONS.map(lambda version: f"=={version.split('.')[0]}.*"),
)


@given(st.lists(BOUNDS, max_size=3), VERSIONS)
def test_older_releases_are_let_in_and_newer_ones_only_as_before(bounds, version):
    text = "shop" + ",".join(bounds)
    before, after = Requirement(text).specifier, Requirement(without_lower_bound(text)).specifier
    if version in before:
        assert version in after
    if version in after:
        assert all(version in SpecifierSet(bound) for bound in bounds if bound.startswith(("<", "!=")))
        pins = [Version(bound[2:]) for bound in bounds if bound.startswith("==") and not bound.endswith("*")]
        assert all(Version(version) <= pin for pin in pins)
    assert without_lower_bound(f"shop{after}") == f"shop{after}"


@given(st.integers(0, 12), st.sets(st.integers(0, 11)))
def test_the_first_items_that_are_enough_are_taken_and_none_that_is_not_needed(count, needed):
    calls = []

    def is_enough(items):
        calls.append(items)
        return needed <= set(items)

    found = fewest(range(count), is_enough)
    if not needed <= set(range(count)):
        assert found is None
        return
    assert set(found) == needed
    assert len(calls) <= 2 + (len(needed) + 1) * 8


@given(st.lists(st.sets(st.integers(0, 7), min_size=1), min_size=1, max_size=3))
def test_of_several_ways_a_smallest_one_is_taken(ways):
    def is_enough(items):
        return any(way <= set(items) for way in ways)

    found = fewest(range(8), is_enough)
    assert is_enough(found)
    assert not any(is_enough([one for one in found if one != left_out]) for left_out in found)
    assert max(found) == min(map(max, ways))
