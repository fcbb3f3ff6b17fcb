"""Why a release is excluded."""

from __future__ import annotations

import pytest
from packaging.tags import Tag
from packaging.version import Version

from harness.model import Release, Target, normalized_name

TAGS = frozenset({Tag("py3", "none", "any"), Tag("cp311", "cp311", "linux_x86_64")})
ANY, LINUX, WINDOWS = (f"p-1-{tag}.whl" for tag in ("py3-none-any", "cp311-cp311-linux_x86_64", "cp311-cp311-win32"))

TABLE = {
    "a wheel for all": (Release("p", Version("1"), wheels=(ANY,)), None),
    "a wheel for this platform": (Release("p", Version("1"), wheels=(WINDOWS, LINUX)), None),
    "no files": (Release("p", Version("1")), "no files on the index"),
    "yanked": (Release("p", Version("1"), wheels=(ANY,), yanked=""), "yanked"),
    "yanked with a reason": (Release("p", Version("1"), wheels=(ANY,), yanked="oops"), "yanked: oops"),
    "pre-release": (Release("p", Version("1rc1"), wheels=(ANY,)), "pre-release (--pre includes it)"),
    "development release": (Release("p", Version("1.dev0"), wheels=(ANY,)), "pre-release (--pre includes it)"),
    "post release": (Release("p", Version("1.post1"), wheels=(ANY,)), None),
    "newer Python": (
        Release("p", Version("1"), wheels=(ANY,), requires_python=">=3.12"),
        "requires Python >=3.12, this is 3.11.7 (--python 3.12 can install it)",
    ),
    "this Python": (Release("p", Version("1"), wheels=(ANY,), requires_python=">=3.9,<3.12"), None),
    "requires nonsense": (Release("p", Version("1"), wheels=(ANY,), requires_python="3.x or so"), None),
    "other platform": (Release("p", Version("1"), wheels=(WINDOWS,)), "no wheel for Python 3.11.7 on this platform"),
    "no wheel name": (Release("p", Version("1"), wheels=("odd.whl",)), "no wheel for Python 3.11.7 on this platform"),
    "source only": (
        Release("p", Version("1"), has_sdist=True),
        "no wheel, source only (--build allows building it)",
    ),
}


@pytest.mark.parametrize("case", TABLE)
def test_every_reason(case):
    release, reason = TABLE[case]
    assert release.left_out_because(Target("3.11.7", TAGS)) == reason


def test_a_requested_release_is_allowed():
    pre, source = TABLE["pre-release"][0], TABLE["source only"][0]
    assert pre.left_out_because(Target("3.11.7", TAGS), prereleases=True) is None
    assert source.left_out_because(Target("3.11.7", TAGS), build_from_source=True) is None


def test_names_are_compared_as_the_index_does():
    assert normalized_name("Foo__Bar.baz") == "foo-bar-baz"
