"""Clones and folders of commits in the cache; the user's own repositories are never changed."""

from pathlib import Path

import pytest
from git_project import new_project

from harness.errors import BadRepository, NoNetwork
from harness.repository.git import Repository, archive_of, clone_of


def test_a_clone_is_made_once_and_then_updated(tmp_path: Path) -> None:
    project = new_project(tmp_path / "p")
    first = project.commit("First", {"a.py": "1\n"})
    url = f"file://{project.folder}"
    clone = clone_of(url, tmp_path / "cache")
    assert clone.commit("main").sha == first
    second = project.commit("Second", {"a.py": "2\n"})
    assert clone_of(url, tmp_path / "cache") == clone
    assert clone.commit("main").sha == second
    with pytest.raises(BadRepository, match="has no commit 'nope'") as caught:
        clone.commit("nope")
    assert caught.value.message.startswith(url)
    assert "git fetch" not in caught.value.hint


def test_an_unreachable_url_gives_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(NoNetwork):
        clone_of(f"file://{tmp_path}/nothing", tmp_path / "cache")
    assert [path for path in (tmp_path / "cache").iterdir() if path.is_dir()] == []


def test_a_commit_becomes_a_folder_with_only_its_files(tmp_path: Path) -> None:
    project = new_project(tmp_path / "p")
    first = project.commit("First", {"pkg/a.py": "1\n"})
    project.commit("Second", {"pkg/a.py": "2\n"})
    repository = Repository.open(project.folder)
    folder = archive_of(repository, repository.commit(first), tmp_path / "cache")
    assert (folder / "pkg/a.py").read_text(encoding="utf-8") == "1\n"
    assert not (folder / ".git").exists()


def test_a_link_that_leaves_the_folder_is_refused(tmp_path: Path) -> None:
    project = new_project(tmp_path / "p")
    (project.folder / "link").symlink_to("/etc")
    project.commit("Trap", {"a.py": ""})
    repository = Repository.open(project.folder)
    with pytest.raises(BadRepository):
        archive_of(repository, repository.commit("main"), tmp_path / "cache")
