"""Tags and the releases that they name."""

import pytest
from packaging.version import Version

from harness.repository.tags import tagged_versions, tags_of


def tagged_version(tag: str, project: str) -> Version | None:
    """The version that a tag names."""
    return next(iter(tagged_versions([tag], project)), None)


@pytest.mark.parametrize(
    "tag",
    ["v1.2.3", "1.2.3", "V1.2.3", "my-package-1.2.3", "my_package==1.2.3", "my-package/v1.2.3", "release/1.2.3",
     "release-1.2.3", "rel_1_2_3", "mypackage-v1.2.3", "version-1.2.3", "packages/my-package/v1.2.3", "python-v1.2.3",
     "py-1.2.3", "libs/my-package==1.2.3", "my-package@1.2.3", "1.2.3-final", "v1.2.3.Final", "r1.2.3"],
)  # fmt: skip
def test_common_forms_name_their_version(tag: str) -> None:
    assert tagged_version(tag, "My.Package") == Version("1.2.3")


@pytest.mark.parametrize("tag", ["other-1.2.3", "nightly", "v", "my-package-plugin-1.2.3", "deploy-2024-01-02"])
def test_a_tag_without_a_version_of_the_project_is_ignored(tag: str) -> None:
    assert tagged_version(tag, "my-package") is None


def test_digits_in_a_name_are_not_a_version() -> None:
    assert tagged_version("py3dns-4.0", "py3dns") == Version("4.0")


def test_versions_are_compared_by_value() -> None:
    assert tags_of("1.0rc1", ["v1.0-rc1", "v1.0", "v1.0.0"], "x") == ("v1.0-rc1",)
    assert tags_of("2.8.0+cpu", ["v2.8.0"], "torch") == ("v2.8.0",)


def test_the_tag_with_the_whole_name_comes_first() -> None:
    """A repository of several projects has tags of all of them."""
    tags = ["v1.0", "shop-1.0", "shop-core-1.0", "core-v1.0", "till-1.0"]
    assert tags_of("1.0", tags, "shop-core") == ("shop-core-1.0", "v1.0", "shop-1.0", "core-v1.0")
    assert tags_of("1.0", tags, "shop") == ("shop-1.0", "v1.0")
