"""Which commit a release was built from, and where the files of its wheel are in the repository."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_project import new_project
from packaging.version import Version

from harness.errors import BadRepository
from harness.repository.git import Repository
from harness.repository.releases import blob_id, built_from, find_layout, find_source, tagged_versions, tags_of


def _wheel(**files: str) -> dict[str, str]:
    return {path: blob_id(text.encode()) for path, text in files.items()}


def test_of_two_tags_the_one_matching_the_wheel_is_taken(tmp_path: Path) -> None:
    project = new_project(tmp_path / "p")
    project.commit("First", {"src/pkg/__init__.py": "1\n"})
    project.git("tag", "1.0")
    right = project.commit("Second", {"src/pkg/__init__.py": "2\n"})
    project.git("tag", "v1.0")
    found = find_source(Repository.open(project.folder), "pkg", "1.0", _wheel(**{"pkg/__init__.py": "2\n"}))
    assert (found.tag, found.sha) == ("v1.0", right)
    assert found.layout.prefixes == {"pkg": "src/"}
    assert found.notes == ()


SHA = "ab12cd34" * 5


@pytest.mark.parametrize(
    ("version", "files", "commit"),
    [
        ("0.10.1rc2.dev12+gab12cd3", {}, "ab12cd3"),
        ("1.17.0.dev0+git20250801.ab12cd3", {}, "ab12cd3"),
        ("0.10.1.dev12+gab12cd3.cu128", {}, "ab12cd3"),
        ("2.9.0.dev20250801+cu128", {"torch/version.py": f"git_version = '{SHA}'\n"}, SHA),
        ("1.0", {"p/_version.py": f"__commit_id__ = commit_id = 'g{SHA[:9]}'\n"}, SHA[:9]),
        ("1.0", {"p/version.py": f"git_revision: str = '{SHA}'\n", "p/other.py": "git_version = 'ab12cd34'"}, SHA),
        ("1.0", {"p-1.0.dist-info/direct_url.json": f'{{"vcs_info": {{"commit_id": "{SHA}"}}}}'}, SHA),
        ("1.0", {"p-1.0.dist-info/METADATA": f"Project-URL: Built, https://github.com/a/p/commit/{SHA}\n"}, SHA),
        ("1.0+cpu", {"p/version.py": "git_version = 'Unknown'\n"}, ""),
        ("1.0+local", {}, ""),
    ],
)
def test_a_build_names_its_commit(version: str, files: dict[str, str], commit: str) -> None:
    assert built_from(version, files, files.__getitem__) == commit


def test_files_missing_at_the_tag_are_reported(tmp_path: Path) -> None:
    project = new_project(tmp_path / "p")
    project.commit("First", {"pkg/__init__.py": "1\n"})
    project.git("tag", "v1.0")
    wheel = _wheel(**{"pkg/__init__.py": "1\n", "pkg/_version.py": "v\n"})
    notes = find_source(Repository.open(project.folder), "pkg", "1.0", wheel).notes
    assert len(notes) == 1
    assert "pkg/_version.py" in notes[0]


@pytest.mark.parametrize(("version", "files"), [("2.0", {"pkg/__init__.py": "1\n"}), ("1.0", {"other/x.py": "q\n"})])
def test_a_missing_release_gives_one_sentence(tmp_path: Path, version: str, files: dict[str, str]) -> None:
    project = new_project(tmp_path / "p")
    project.commit("First", {"pkg/__init__.py": "1\n"})
    project.git("tag", "v1.0")
    with pytest.raises(BadRepository):
        find_source(Repository.open(project.folder), "pkg", version, _wheel(**files))


WHEEL = _wheel(
    **{
        "pkg/__init__.py": "a",
        "pkg/sub/mod.py": "b",
        "pkg/data.json": "{}",
        "pkg/_version.py": "1",
        "pkg-1.dist-info/METADATA": "m",
    }
)


def test_the_hash_equals_that_of_git() -> None:
    assert blob_id(b"hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a"


def test_a_src_layout_is_found() -> None:
    tree = _wheel(**{"src/pkg/__init__.py": "a", "src/pkg/sub/mod.py": "b", "src/pkg/data.json": "{}", "setup.py": ""})
    layout = find_layout(WHEEL, tree)
    assert layout.prefixes == {"pkg": "src/"}
    assert layout.generated == ("pkg/_version.py",)
    assert layout.changed == {}


def test_of_two_copies_the_one_with_equal_contents_is_the_package() -> None:
    tree = _wheel(
        **{
            "old/pkg/__init__.py": "x",
            "old/pkg/sub/mod.py": "y",
            "libs/core/pkg/__init__.py": "a",
            "libs/core/pkg/sub/mod.py": "b",
        }
    )
    assert find_layout(WHEEL, tree).prefixes == {"pkg": "libs/core/"}


def test_changes_are_the_differences_of_a_commit() -> None:
    tag = _wheel(**{"pkg/__init__.py": "a", "pkg/sub/mod.py": "b", "pkg/data.json": "{}"})
    commit = _wheel(
        **{"pkg/__init__.py": "a", "pkg/sub/new.py": "c", "pkg/data.json": "{1}", "pkg/notes.md": "n", "tests/t.py": ""}
    )
    changes = find_layout(WHEEL, tag).changes(WHEEL, commit)
    assert changes == {"pkg/sub/new.py": blob_id(b"c"), "pkg/data.json": blob_id(b"{1}"), "pkg/sub/mod.py": None}


def test_a_generated_file_is_kept_from_the_wheel() -> None:
    tag = _wheel(**{"pkg/__init__.py": "a"})
    assert "pkg/_version.py" not in find_layout(WHEEL, tag).changes(WHEEL, _wheel(**{"pkg/__init__.py": "z"}))


def test_a_file_written_by_the_build_is_kept_only_where_the_commit_has_that_of_the_tag() -> None:
    tag = _wheel(**{"pkg/__init__.py": "a", "pkg/sub/mod.py": "without version"})
    layout = find_layout(WHEEL, tag)
    assert layout.changes(WHEEL, tag) == {}
    commit = _wheel(**{"pkg/__init__.py": "a", "pkg/sub/mod.py": "new"})
    assert layout.changes(WHEEL, commit)["pkg/sub/mod.py"] == blob_id(b"new")


def test_a_file_of_another_commit_is_never_kept() -> None:
    """The wheel was not built from the tag: its file is in the repository."""
    tag = _wheel(**{"pkg/__init__.py": "a", "pkg/sub/mod.py": "old"})
    layout = find_layout(WHEEL, tag).with_sources(WHEEL, {blob_id(b"b")})
    assert layout.elsewhere == ("pkg/sub/mod.py",)
    assert layout.changes(WHEEL, tag)["pkg/sub/mod.py"] == blob_id(b"old")


def test_tests_missing_from_the_wheel_stay_out() -> None:
    tag = _wheel(**{"pkg/__init__.py": "a", "pkg/tests/test_a.py": "t"})
    layout = find_layout(WHEEL, tag)
    assert layout.left_out == {"pkg/tests"}
    assert "pkg/tests/test_b.py" not in layout.files(_wheel(**{"pkg/tests/test_b.py": "t"}))


def test_a_single_module_is_its_own_top() -> None:
    wheel = _wheel(**{"six.py": "a"})
    layout = find_layout(wheel, _wheel(**{"six.py": "a", "setup.py": ""}))
    assert layout.prefixes == {"six.py": ""}
    assert layout.changes(wheel, _wheel(**{"six.py": "b"})) == {"six.py": blob_id(b"b")}


def test_a_wheel_of_another_project_has_no_layout() -> None:
    assert not find_layout(_wheel(**{"other/x.py": "1"}), _wheel(**{"pkg/y.py": "2"})).has_package


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
