"""The commits behind changed lines."""

from __future__ import annotations

from pathlib import Path

from git_project import new_project

from harness.repository.git import ChangedLines, Repository, commits_behind

_BODY = "".join(f"line_{i} = {i}\n" for i in range(20))


def test_blame_follows_added_lines_through_a_rename(tmp_path: Path) -> None:
    project = new_project(tmp_path / "p")
    older = project.commit("Begin", {"pkg/a.py": _BODY})
    project.commit("Noise", {"pkg/other.py": "1\n"})
    guilty = project.commit("Add a line", {"pkg/a.py": _BODY + "broken = True\n"})
    project.commit("Move it", {"pkg/a.py": None, "pkg/b.py": _BODY + "broken = True\n"})
    newer = project.commit("Noise again", {"pkg/other.py": "2\n"})
    found = commits_behind(Repository.open(project.folder), older, newer, [ChangedLines("pkg/b.py", after=(21, 21))])
    assert found == (guilty,)


def test_pickaxe_names_the_commit_that_removed_a_line(tmp_path: Path) -> None:
    project = new_project(tmp_path / "p")
    older = project.commit("Begin", {"pkg/a.py": _BODY})
    guilty = project.commit("Remove a line", {"pkg/a.py": _BODY.replace("line_7 = 7\n", "")})
    newer = project.commit("Noise", {"pkg/other.py": "2\n"})
    found = commits_behind(
        Repository.open(project.folder), older, newer, [ChangedLines("pkg/a.py", removed=("line_7 = 7\n",))]
    )
    assert found == (guilty,)


def test_lines_older_than_the_range_name_no_commit(tmp_path: Path) -> None:
    project = new_project(tmp_path / "p")
    older = project.commit("Begin", {"pkg/a.py": _BODY})
    newer = project.commit("Noise", {"pkg/other.py": "2\n"})
    assert commits_behind(Repository.open(project.folder), older, newer, [ChangedLines("pkg/a.py", after=(1, 3))]) == ()
