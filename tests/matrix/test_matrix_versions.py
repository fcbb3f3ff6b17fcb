"""Words and ranges become installable versions; the others are reported where they matter."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from attrs import evolve
from hypothesis import given, reject
from hypothesis import strategies as st
from packaging.tags import Tag
from packaging.version import Version

from harness.errors import BadMatrix
from harness.matrix import LeftOut, Matrix, expanded
from harness.model import Release, Target

ANY = Target("3.11.7", frozenset([Tag("py3", "none", "any")]))


def release(version: str, month: int | None = 1, **more) -> Release:
    told = {"wheels": (f"x-{version}-py3-none-any.whl",), **more}
    uploaded = datetime(2025, month, len(version), tzinfo=UTC) if month else None
    return Release("x", Version(version), uploaded=uploaded, **told)


RELEASES = (
    release("1.0", 1),
    release("1.1", 1),
    release("1.2rc1", 2),
    release("1.2", 2, yanked="it was a mistake"),
    release("2.0rc1", 3),
    release("2.0", 3),
    release("2.1", 5),
    release("2.1.1", 4),
    release("2.2", 6, wheels=(), has_sdist=True),
    release("3.0rc1", 7),
    release("3.0rc2", 8),
)


def asked(*values: str, **more) -> Matrix:
    return Matrix("m", {"repro": ("step",), "packages.x": values}, **more)


def versions(*values: str, releases=RELEASES) -> tuple:
    return expanded(asked(*values), lambda project: releases, [ANY]).axes["packages.x"]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("latest", ["2.1.1"]),
        ("latest 3", ["2.0", "2.1", "2.1.1"]),
        ("latest 99", ["1.0", "1.1", "2.0", "2.1", "2.1.1"]),
        ("latest <2", ["1.1"]),
        ("latest 2 x >=1,<2.1", ["1.1", "2.0"]),
        (">=1.1,<2.1", ["1.1", "2.0"]),
        ("x >=2.0rc1,<2.1", ["2.0rc1", "2.0"]),
        ("prereleases >=1,<3", ["1.2rc1", "2.0rc1"]),
    ],
)
def test_each_word_means_its_releases(value, found):
    assert versions(value) == tuple(found)


def test_pre_releases_are_those_newer_than_the_newest_final_release():
    assert versions("latest", "prereleases") == ("2.1.1", "3.0rc1", "3.0rc2")


def test_values_are_merged_and_put_in_version_order():
    """A version in the file keeps its spelling, so that its cell keeps its name."""
    assert versions("2.1.1.0", "latest 2", "<2", "0.5") == ("0.5", "1.0", "1.1", "2.1", "2.1.1.0")


def test_plain_versions_are_kept_without_asking_the_index():
    plain = asked("2.0", "1.0")
    assert expanded(plain, lambda project: pytest.fail("the index was asked"), [ANY]) is plain


def test_an_uninstallable_release_is_reported_where_it_matters():
    """The yanked release is older than those of `latest`, so it matters only to the range."""
    source = LeftOut("x", "2.2", "no wheel, source only")
    assert expanded(asked("latest"), lambda project: RELEASES, [ANY]).left_out == (source,)
    told = expanded(asked(">=1.2"), lambda project: RELEASES, [ANY]).left_out
    assert told == (source, LeftOut("x", "1.2", "yanked: it was a mistake"))


def test_a_release_needs_to_fit_only_one_python():
    old = Target("3.9.2", frozenset([Tag("cp39", "cp39", "any")]))
    releases = (
        release("1.0"),
        release("1.1", wheels=("x-1.1-cp39-cp39-any.whl",)),
        release("1.2", wheels=("x-1.2-cp313-cp313-any.whl",)),
        release("1.3", requires_python=">=3.12"),
    )
    found = expanded(asked(">=1"), lambda project: releases, [ANY, old])
    assert found.axes["packages.x"] == ("1.0", "1.1")
    assert found.left_out == (
        LeftOut("x", "1.3", "requires Python >=3.12, this is 3.11.7"),
        LeftOut("x", "1.2", "no wheel for Python 3.11.7 on this platform"),
    )


def test_missing_pre_releases_are_fine_beside_another_value():
    assert versions("latest", "prereleases", releases=RELEASES[:2]) == ("1.1",)
    with pytest.raises(BadMatrix, match=r"m: axes.packages.x: x has no pre-releases now, .* add one"):
        versions("prereleases", releases=RELEASES[:2])


def test_any_other_value_without_releases_is_refused():
    with pytest.raises(BadMatrix, match=r"'latest >9' matches no release of x that can be tried$"):
        versions("latest >9", "1.0")
    with pytest.raises(BadMatrix, match=r"'==2.2' matches no .* \(2.2 is left out: no wheel, source only\)"):
        versions("==2.2")


def test_an_included_cell_gets_the_newest_release():
    found = expanded(asked("1.0", include=({"packages.x": "latest <2"},)), lambda project: RELEASES, [ANY])
    assert [cell.name for cell in found.cells] == ["step-x-1.0", "step-x-1.1"]


def test_an_exclusion_of_a_release_no_longer_newest_is_dropped():
    """Any other exclusion without a match is still a mistake."""
    old = asked("latest 2", exclude=({"packages.x": ("1.0",)}, {"packages.x": (">=2.1.1",)}))
    found = expanded(old, lambda project: RELEASES, [ANY])
    assert [cell.name for cell in found.cells] == ["step-x-2.1"]
    wrong = evolve(old, exclude=({"repro": ("other",)},))
    with pytest.raises(BadMatrix, match="matches no cell"):
        _ = expanded(wrong, lambda project: RELEASES, [ANY]).cells


@given(
    st.lists(
        st.builds(
            release,
            st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from(["", "rc1", ".post1"])).map(
                lambda t: f"{t[0]}.{t[1]}{t[2]}"
            ),
            st.one_of(st.none(), st.integers(1, 12)),
            yanked=st.sampled_from([None, None, ""]),
        ),
        min_size=1,
        unique_by=lambda r: r.version,
    ),
    st.sampled_from([("latest",), ("latest 3",), ("prereleases",), (">=1,<3",)]),
)
def test_a_release_is_chosen_or_reported_never_both(releases, values):
    """Chosen releases are installable, final unless pre-releases were requested, and in order."""
    try:
        found = expanded(asked(*values), lambda project: sorted(releases, key=lambda r: r.version), [ANY])
    except BadMatrix:
        reject()
    chosen = [Version(str(value)) for value in found.axes["packages.x"]]
    by_version = {r.version: r for r in releases}
    assert chosen == sorted(set(chosen))
    assert all(by_version[version].yanked is None for version in chosen)
    assert all(version.is_prerelease == (values == ("prereleases",)) for version in chosen)
    assert not {str(version) for version in chosen} & {row.version for row in found.left_out}
