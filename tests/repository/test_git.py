"""Reading repositories, and one clear sentence for everything missing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from git_project import GitProject, new_project

from harness.errors import BadRepository
from harness.repository.git import Repository


@pytest.fixture
def project(tmp_path: Path) -> GitProject:
    made = new_project(tmp_path / "project")
    made.commit("Begin", {"pkg/__init__.py": "x = 1\n"})
    made.git("tag", "v1.0")
    made.commit("Say more (#12)", {"pkg/__init__.py": "x = 2\n", "pkg/new.py": "y = 1\n"})
    made.git("tag", "--annotate", "--message", "two", "v2.0")
    return made


def test_a_revision_is_found_by_branch_tag_and_hash(project: GitProject) -> None:
    repository = Repository.open(project.folder)
    head = project.git("rev-parse", "HEAD")
    found = [repository.commit(name) for name in ("main", "v2.0", head[:8])]
    assert {one.sha for one in found} == {head}
    assert found[0].subject == "Say more (#12)"
    assert found[0].pull_request == 12
    assert found[0].author == "A. Author"
    assert found[0].parents == (repository.commit("v1.0").sha,)


def test_an_annotated_tag_names_its_commit(project: GitProject) -> None:
    tags = Repository.open(project.folder).tags()
    assert tags == {"v1.0": project.git("rev-parse", "v1.0"), "v2.0": project.git("rev-parse", "HEAD")}


def test_trees_and_contents_are_those_of_the_commit(project: GitProject) -> None:
    repository = Repository.open(project.folder)
    tree = repository.tree(repository.commit("v1.0").sha)
    assert set(tree) == {"pkg/__init__.py"}
    blob = tree["pkg/__init__.py"].blob
    assert repository.contents([blob]) == {blob: b"x = 1\n"}


def test_a_merge_request_number_comes_from_a_merge_subject(project: GitProject) -> None:
    project.git("checkout", "--quiet", "-b", "side")
    project.commit("Work", {"pkg/side.py": ""})
    project.git("checkout", "--quiet", "main")
    merged = project.merge("side", "Merge pull request #77 from someone/side")
    found = Repository.open(project.folder).commit(merged)
    assert found.pull_request == 77


def test_first_parents_leave_out_merged_commits(project: GitProject) -> None:
    base = project.git("rev-parse", "HEAD")
    project.git("checkout", "--quiet", "-b", "side")
    project.commit("Work", {"pkg/side.py": ""})
    project.git("checkout", "--quiet", "main")
    merged = project.merge("side", "Merge side")
    assert Repository.open(project.folder).first_parents(base, merged) == (merged,)


@pytest.mark.parametrize("name", ["no-such-branch", "deadbeef", "--help", ""])
def test_an_unknown_revision_gives_one_sentence(project: GitProject, name: str) -> None:
    with pytest.raises(BadRepository) as caught:
        Repository.open(project.folder).commit(name)
    assert repr(name) in caught.value.message


def test_a_folder_without_a_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRepository):
        Repository.open(tmp_path / "nothing")


def test_a_shallow_clone_says_how_to_complete_it(project: GitProject, tmp_path: Path) -> None:
    shallow = tmp_path / "shallow"
    subprocess.run(
        ["git", "clone", "--quiet", "--depth=1", f"file://{project.folder}", str(shallow)],
        check=True,
        capture_output=True,
    )
    with pytest.raises(BadRepository) as caught:
        Repository.open(shallow).commit("v1.0")
    assert "--unshallow" in caught.value.hint


def test_hooks_of_the_repository_never_run(project: GitProject, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    script = tmp_path / "monitor"
    script.write_text(f"#!/bin/sh\ntouch {trap}\n", encoding="utf-8")
    script.chmod(0o755)
    project.git("config", "core.fsmonitor", str(script))
    project.git("config", "diff.external", str(script))
    repository = Repository.open(project.folder)
    repository.tree(repository.commit("main").sha)
    repository.lines("log", "--no-ext-diff", "--format=%H")
    assert not trap.exists()


def test_the_clone_is_unchanged(project: GitProject) -> None:
    before = {path: path.stat().st_mtime_ns for path in sorted(project.folder.rglob("*")) if path.is_file()}
    repository = Repository.open(project.folder)
    repository.tree(repository.commit("main").sha)
    repository.describe(repository.commit("v1.0").sha)
    assert {path: path.stat().st_mtime_ns for path in sorted(project.folder.rglob("*")) if path.is_file()} == before


def test_a_branch_that_only_origin_has_is_found(project: GitProject, tmp_path: Path) -> None:
    project.git("branch", "next")
    subprocess.run(["git", "clone", "--quiet", str(project.folder), str(tmp_path / "clone")], check=True)
    clone = Repository.open(tmp_path / "clone")
    assert clone.commit("next").sha == project.git("rev-parse", "next")


def test_a_tag_of_a_tag_names_its_commit_and_one_of_a_file_is_left_out(project: GitProject) -> None:
    project.git("tag", "--annotate", "--message", "again", "v2.0.0", "v2.0")
    project.git("tag", "v3.0", "HEAD:pkg/new.py")
    tags = Repository.open(project.folder).tags()
    assert tags["v2.0.0"] == project.git("rev-parse", "HEAD")
    assert "v3.0" not in tags


def test_a_folder_inside_a_repository_is_that_repository(project: GitProject, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(project.folder / "pkg")
    for folder in (project.folder / "pkg", tmp_path / "link"):
        found = Repository.open(folder)
        assert (found.folder, found.inside) == (project.folder, "pkg")


def test_nothing_is_fetched_into_a_partial_clone(project: GitProject, tmp_path: Path) -> None:
    project.git("config", "uploadpack.allowFilter", "true")
    clone = ["git", "clone", "--quiet", "--no-checkout", "--filter=blob:none", project.folder.as_uri()]
    subprocess.run([*clone, str(tmp_path / "partial")], check=True, capture_output=True)
    repository = Repository.open(tmp_path / "partial")
    tree = repository.tree(repository.commit("v1.0").sha)
    with pytest.raises(BadRepository) as caught:
        repository.contents(entry.blob for entry in tree.values())
    assert "partial" in caught.value.hint
