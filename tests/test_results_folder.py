"""Where results go if nothing says it: `.harness` in a user's project; `results` where that is in use."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from support import Harness, write_repro  # noqa: F401 - a fixture

from harness.environment import Workspace
from harness.session import results_with
from harness.settings import results_folder


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "mine"
    (folder / "src" / "deep").mkdir(parents=True)
    (folder / "pyproject.toml").write_text("[project]\nname = 'mine'\n", encoding="utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.delenv("HARNESS_RESULTS", raising=False)
    return folder


def test_a_project_has_its_own_folder_also_seen_from_below(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert results_folder() == Path(".harness")
    monkeypatch.chdir(project / "src" / "deep")
    assert results_folder() == Path("../../.harness")


def test_the_project_and_the_environment_can_name_another(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "pyproject.toml").write_text("[tool.harness]\nresults = 'seen'\n", encoding="utf-8")
    assert results_folder() == Path("seen")
    monkeypatch.setenv("HARNESS_RESULTS", "/elsewhere")
    assert results_folder() == Path("/elsewhere")


def test_the_search_ends_at_the_root_of_a_repository(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project.parent / ".harness").mkdir()
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    assert results_folder() == Path(".harness")


def test_this_repository_keeps_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HARNESS_RESULTS", raising=False)
    monkeypatch.chdir(Path(__file__).parent)
    assert results_folder() == Path("../results")


def test_git_sees_nothing_of_it_and_report_and_again_find_it(harness: Harness, write_repro) -> None:  # noqa: F811
    write_repro("brittle")
    subprocess.run(["git", "init", "-q"], cwd=harness.folder, check=True)
    own = harness.with_environ(HARNESS_RESULTS="")
    asked = ("bisect", "brittle", "--good", "1.4", "--bad", "1.7", "--depth", "release")
    answer = own(*asked)
    assert answer.code == 0, answer.stderr
    assert ".harness/reports/" in answer.stdout
    assert not (harness.folder / "results").exists()
    seen = subprocess.run(["git", "status", "--porcelain"], cwd=harness.folder, capture_output=True, text=True)
    assert seen.stdout == "?? repros/\n"
    assert "brittle 1.6" in own("report").stdout
    assert "nothing was run" in own(*asked, "--json").json["notes"][-1]


def test_the_note_of_a_question_that_has_no_folder_yet_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process that looks for a run must not remove it."""
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path / "cache"))
    notes = Workspace.opened().results
    for name in ("begun", "removed"):
        (notes / name).write_text(str(tmp_path / name), encoding="utf-8")
    os.utime(notes / "removed", (0, 0))
    assert results_with("abc", tmp_path) == tmp_path
    assert [note.name for note in notes.iterdir()] == ["begun"]
