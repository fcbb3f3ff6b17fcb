"""The commits on the main line that changed a file."""

from __future__ import annotations

from pathlib import Path

from git_project import new_project

from harness.repository.git import Repository


def test_the_commits_that_changed_a_file_are_those_of_the_main_line(tmp_path: Path) -> None:
    """A merge stands for its branch; a name with signs of git's own is a name."""
    project = new_project(tmp_path / "p")
    older = project.commit("Begin", {"pkg/a.py": "1\n", "pkg/[b]*.py": "1\n", "pkg/b.py": "1\n"})
    first = project.commit("Change it", {"pkg/a.py": "2\n"})
    project.commit("Noise", {"pkg/b.py": "2\n"})
    project.git("checkout", "--quiet", "-b", "side")
    project.commit("Change it on a branch", {"pkg/a.py": "3\n"})
    project.git("checkout", "--quiet", "main")
    odd = project.commit("Change another", {"pkg/[b]*.py": "2\n"})
    project.merge("side", "Merge side")
    newer = project.git("rev-parse", "main")
    repository = Repository.open(project.folder)
    assert repository.first_parents(older, newer, "pkg/a.py") == (first, newer)
    assert repository.first_parents(older, newer, "pkg/[b]*.py", "pkg/c.py") == (odd,)
    assert len(repository.first_parents(older, newer)) == 4
