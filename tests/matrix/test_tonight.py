"""A night runs the newest releases whatever versions the file names, and reports what it changed."""

from __future__ import annotations

from harness.nightly.tonight import tonight

TEXT = """
[axes]
repro = "step"
[axes.packages]
transformers = ["1.0", "1.1", "1.2"]
peft = "monthly >=0.5"
trl = ["0.9", "latest 3"]
torch = "2.8.0"
[[exclude]]
packages.transformers = "1.1"
packages.trl = "0.9"
[[exclude]]
packages.trl = "0.9"
packages.torch = "2.8.0"
[[include]]
packages.transformers = "1.0"
[[include]]
packages.torch = "2.7.0"
[[include]]
packages.peft = "latest"
"""


def test_only_axes_that_do_not_follow_the_index_are_replaced(matrix):
    """An axis with a single version is a pin."""
    night, _ = tonight(matrix(TEXT))
    assert night.axes == {
        "repro": ("step",),
        "packages.transformers": ("latest", "prereleases"),
        "packages.peft": ("latest", "prereleases"),
        "packages.trl": ("0.9", "latest 3"),
        "packages.torch": ("2.8.0",),
    }


def test_exclusions_and_inclusions_are_kept(matrix):
    """An exclude of a release that is not the newest matches nothing, and `expanded` drops it."""
    night, _ = tonight(matrix(TEXT))
    assert (night.exclude, night.include) == (matrix(TEXT).exclude, matrix(TEXT).include)


def test_each_change_is_reported_in_one_sentence(matrix):
    _, sentences = tonight(matrix(TEXT))
    assert sentences == (
        "transformers: latest and pre-releases instead of 3 versions",
        "peft: latest and pre-releases instead of monthly >=0.5",
    )


def test_a_matrix_that_follows_the_index_is_unchanged(matrix):
    follows = matrix('axes.repro = "step"\naxes.packages.torch = ["latest", "prereleases"]')
    assert tonight(follows) == (follows, ())
