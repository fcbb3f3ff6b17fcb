"""The commit that a release was built from."""

from pathlib import Path

import pytest
from git_project import new_project

from harness.errors import BadRepository
from harness.repository.git import Repository
from harness.repository.layout import blob_id
from harness.repository.release_source import find_source


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
