"""The steps of the nightly workflow: the results branch is created, updated and published."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import PATH

ROOT = Path(__file__).parent.parent
MATRIX = '[axes]\nrepro = "brittle_step"\n[axes.packages]\nbrittle = ["1.5"]\n'


def git(folder: Path, *words: str) -> str:
    told = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(folder), *words]
    return subprocess.run(told, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def nox(harness, write_repro, tmp_path):
    """Run nox in a checkout with a remote; `fresh` starts from a new checkout, like a runner."""
    write_repro("brittle")
    origin, first = tmp_path / "origin.git", harness.folder
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", origin], check=True)
    shutil.copy(ROOT / "noxfile.py", first)
    (first / ".gitignore").write_text("/harness\n/nightly-results/\n/site/\n/.nox/\n__pycache__/\n", encoding="utf-8")
    (first / "matrices").mkdir()
    (first / "matrices" / "nightly.toml").write_text(MATRIX, encoding="utf-8")
    git(first, "init", "-q", "-b", "main")
    git(first, "add", ".")
    git(first, "commit", "-q", "-m", "code")
    git(first, "remote", "add", "origin", str(origin))
    git(first, "push", "-q", "origin", "main")

    def run(name: str, *sessions: str, fresh: bool = False, words=()) -> subprocess.CompletedProcess[str]:
        folder = tmp_path / name
        if fresh:
            subprocess.run(["git", "clone", "-q", "--depth=1", f"file://{origin}", folder], check=True)
            (folder / "harness").symlink_to(ROOT / "harness")
        ended = subprocess.run(
            [sys.executable, "-m", "nox", "--no-venv", "--no-install", "--nocolor", "-s", *sessions, "--", *words],
            cwd=folder,
            env={**os.environ, "PATH": PATH, **harness.environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        run.folder = folder
        return ended

    run.origin = origin
    return run


def test_nights_are_kept_on_a_branch_between_runners(nox):
    """The first run creates the branch, the second continues it; only pages are published."""
    first = nox("one", "nightly_open", "nightly", "nightly_keep", fresh=True, words=("--date", "2024-03-01"))
    assert first.returncode == 0, first.stdout
    assert "first night" in first.stdout
    again = nox("one", "nightly_open", "nightly_keep")
    assert again.returncode == 0, again.stdout
    assert git(nox.origin, "rev-list", "--count", "nightly-results").strip() == "1"

    second = nox("two", "nightly_open", "nightly", "nightly_keep", fresh=True, words=("--date", "2024-03-02"))
    assert second.returncode == 0, second.stdout
    assert "nothing changed" in second.stdout
    files = git(nox.origin, "ls-tree", "-r", "--name-only", "nightly-results").splitlines()
    assert {
        "nights/index.html",
        "nights/nightly-2024-03-01T000000Z.json",
        "nights/nightly-2024-03-02T000000Z.json",
    } <= set(files)
    assert "noxfile.py" not in files

    pages = nox("two", "nightly_pages")
    assert pages.returncode == 0, pages.stdout
    site = nox.folder / "site"
    assert sorted(path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()) == [
        "index.html",
        "nights/index.html",
    ]


def test_a_night_with_a_break_fails_its_session(nox):
    """The workflow shows the failure; later steps still run."""
    nox("one", "nightly", fresh=True, words=("--date", "2023-01-01"))  # brittle 1.5 is not there yet
    ended = nox("one", "nightly", words=("matrices/nightly.toml", "--budget", "0", "--date", "2024-03-01"))
    assert ended.returncode == 1
    assert "matrices/nightly.toml" in ended.stdout


def test_of_the_results_of_another_job_no_links_and_hidden_files_are_taken(nox, tmp_path):
    """What the night ran may have changed them: a .git there would be obeyed by the job that pushes."""
    found = tmp_path / "found"
    for name in ("nights/index.html", ".git", ".hooks/pre-commit", "reports/.hidden", "reports/a.md"):
        (found / name).parent.mkdir(parents=True, exist_ok=True)
        (found / name).write_text("text", encoding="utf-8")
    (found / "reports" / "b.md").symlink_to(ROOT / "README.md")
    (found / "linked").symlink_to(ROOT / "docs")
    ended = nox("one", "nightly_open", fresh=True)
    assert ended.returncode == 0, ended.stdout
    for session, words in (("nightly_take", (str(found),)), ("nightly_keep", ())):
        ended = nox("one", session, words=words)
        assert ended.returncode == 0, ended.stdout
    files = git(nox.origin, "ls-tree", "-r", "--name-only", "nightly-results").splitlines()
    assert files == ["nights/index.html", "reports/a.md"]
