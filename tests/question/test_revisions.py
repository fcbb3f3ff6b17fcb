"""Files in the history of a repository."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from git_project import GitProject, new_project

from harness.errors import UserMistake
from harness.question.ends import EndKind, commit_end, parse_end
from harness.question.revisions import LockHistory, TrackedFile
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


def lock(**versions: str) -> str:
    """A uv.lock of a workspace whose members require these packages."""
    needs = ", ".join(f'{{ name = "{name}" }}' for name in versions)
    member = f'name = "mine"\nversion = "1"\nsource = {{ editable = "packages/mine" }}\ndependencies = [{needs}]\n'
    tables = [member, 'name = "root"\nversion = "1"\nsource = { virtual = "." }\n']
    tables += [
        f'name = "{name}"\nversion = "{version}"\nsource = {{ registry = "https://example.org/simple" }}\n'
        for name, version in versions.items()
    ]
    head = 'version = 1\n[manifest]\nmembers = ["mine", "root"]\n'
    return "\n".join([head, *(f"[[package]]\n{table}" for table in tables)])


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitProject:
    """A workspace whose lock is above the project, which had a lock of Poetry before."""
    project = new_project(tmp_path / "workspace")
    old = '[[package]]\nname = "alpha"\nversion = "0.9"\n[metadata]\nlock-version = "2.1"\n'
    project.commit("Begin", {"packages/mine/poetry.lock": old, "packages/mine/pyproject.toml": ""}, "2024-01-01")
    files: dict[str, str | None] = {"packages/mine/poetry.lock": None, "uv.lock": lock(alpha="1.0", beta="1.0")}
    project.commit("Move to uv", files, "2024-02-01")
    for month, versions in enumerate((("1.0", "1.1"), ("2.0", "1.1"), ("2.0", "1.2"), ("2.1", "1.2")), start=3):
        alpha, beta = versions
        subject = f"Lock {alpha} {beta}"
        project.commit(subject, {"uv.lock": lock(alpha=alpha, beta=beta)}, f"2024-{month:02}-01")
    project.commit("Write more", {"packages/mine/more.py": ""}, "2024-08-01")
    monkeypatch.chdir(project.folder / "packages/mine")
    return project


def test_the_history_of_a_workspace_is_that_of_its_locks(workspace: GitProject) -> None:
    history = LockHistory.of(Path.cwd(), {"alpha"}, "3.11.7")
    assert history is not None
    assert len(history.commits) == 6
    files = [history.file_in(sha) for sha in history.commits]
    assert [file.path if file is not None else "" for file in files] == ["uv.lock"] * 5 + ["packages/mine/poetry.lock"]
    until = history.until(datetime(2024, 4, 15, tzinfo=UTC))
    assert until.commits == history.commits[2:]


def test_an_end_of_the_history_can_be_typed(workspace: GitProject) -> None:
    history = LockHistory.of(Path.cwd(), {"alpha"}, "3.11.7")
    assert history is not None
    file = history.file_in(history.commits[0])
    assert file is not None
    end = commit_end(file, history.repository.describe(history.commits[0]))
    assert end.text == f"../../uv.lock@{history.commits[0][:10]}"
    typed = parse_end(end.text, "--good", now=NOW)
    assert (typed.commit, typed.moment) == (end.commit, end.moment)
    assert typed.commit is not None
    assert typed.path is not None
    pins = TrackedFile.at(typed.path).pins_in(typed.commit, "3.11.7")
    assert pins.requirements == ("alpha==2.1", "beta==1.2")


@pytest.mark.parametrize(
    ("package", "version", "subject"),
    [
        ("alpha", "2.0", "Lock 2.0 1.1"),
        ("alpha", "1.5", "Lock 2.0 1.1"),
        ("alpha", "0.9", "Begin"),
        ("beta", "1.2", "Lock 2.0 1.2"),
        ("beta", "1.0", "Move to uv"),
        ("beta", "1.3", ""),
    ],
)
def test_the_commit_that_brought_a_release_in(workspace: GitProject, package: str, version: str, subject: str) -> None:
    history = LockHistory.of(Path.cwd(), {"alpha"}, "3.11.7")
    assert history is not None
    introduction = history.introduction(package, version, "3.11.7")
    assert introduction is not None
    assert (introduction.commit.subject if introduction.commit is not None else "") == subject
    if subject == "Lock 2.0 1.1":
        assert introduction.lines == ('-version = "1.0"', '+version = "2.0"')


def test_a_package_that_no_lock_lists_has_no_commit(workspace: GitProject) -> None:
    history = LockHistory.of(Path.cwd(), {"alpha"}, "3.11.7")
    assert history is not None
    assert history.introduction("gamma", "1.0", "3.11.7") is None


def test_a_shallow_clone_does_not_tell_which_commit_it_was(
    workspace: GitProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.git("clone", "--quiet", "--depth=1", workspace.folder.as_uri(), os.fspath(tmp_path / "shallow"))
    monkeypatch.chdir(tmp_path / "shallow/packages/mine")
    history = LockHistory.of(Path.cwd(), {"alpha"}, "3.11.7")
    assert history is not None
    assert history.introduction("alpha", "2.0", "3.11.7") is None


def test_a_lock_above_is_only_that_of_its_members(workspace: GitProject) -> None:
    workspace.commit("Begin another", {"packages/other/pyproject.toml": ""})
    assert LockHistory.of(workspace.folder / "packages/other", {"alpha"}, "3.11.7") is None
