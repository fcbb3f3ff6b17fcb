"""Files in the history of a repository."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from git_project import GitProject, new_project

from harness.errors import UserMistake
from harness.question.request import EndKind, parse_end
from harness.question.revisions import TrackedFile
from harness.repository.git import Repository

NOW = datetime(2025, 8, 1, tzinfo=UTC)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitProject:
    project = new_project(tmp_path / "mine")
    project.commit("Begin", {"pins.txt": "alpha==1.0\n"}, "2024-01-15")
    project.commit("Upgrade", {"pins.txt": "alpha==2.0\n"}, "2024-05-15")
    monkeypatch.chdir(project.folder)
    return project


def test_the_file_is_read_from_the_commit(project: GitProject) -> None:
    end = parse_end("pins.txt@HEAD~1", "--good", now=NOW)
    assert (end.kind, end.moment) == (EndKind.LOCK, datetime(2024, 1, 15, 12, tzinfo=UTC))
    assert end.commit is not None
    assert TrackedFile.at(Path("pins.txt")).pins_in(end.commit, "3.11.7").requirements == ("alpha==1.0",)


def test_a_file_outside_the_repository_is_not_included(project: GitProject, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("hidden==1.0\n")
    project.commit("Include", {"pins.txt": f"-r ../secret.txt\n-r {tmp_path}/secret.txt\nalpha\n"})
    commit = Repository.open(project.folder).commit("HEAD")
    with pytest.raises(UserMistake) as caught:
        TrackedFile.at(Path("pins.txt")).pins_in(commit, "3.11.7")
    assert "hidden" not in caught.value.message


@pytest.mark.parametrize("revision", ["HEAD~1", "2024-01-20"])
def test_a_shallow_clone_says_how_to_get_older_commits(
    project: GitProject, revision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.git("clone", "--quiet", "--depth=1", project.folder.as_uri(), os.fspath(tmp_path / "shallow"))
    monkeypatch.chdir(tmp_path / "shallow")
    with pytest.raises(UserMistake) as caught:
        parse_end(f"pins.txt@{revision}", "--good", now=NOW)
    assert "git fetch --unshallow" in caught.value.hint
