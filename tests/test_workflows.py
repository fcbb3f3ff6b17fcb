"""The workflow follows GitHub's schema, and each of its steps is a session that exists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SESSION = re.compile(r"\bnox -s (\w+)")


def check(path: Path) -> subprocess.CompletedProcess[str]:
    words = ["--builtin-schema", "vendor.github-workflows", str(path)]
    return subprocess.run(
        [sys.executable, "-m", "check_jsonschema", *words], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_it_follows_the_schema(path):
    ended = check(path)
    assert ended.returncode == 0, ended.stdout


def test_the_schema_is_looked_at(tmp_path):
    """One with a misspelt key fails."""
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(WORKFLOWS[0].read_text(encoding="utf-8").replace("runs-on:", "runs-at:"), encoding="utf-8")
    assert check(wrong).returncode != 0


@pytest.fixture(scope="module")
def sessions() -> set[str]:
    """The names that `nox -l` lists."""
    listed = subprocess.run(
        [sys.executable, "-m", "nox", "--nocolor", "-f", str(ROOT / "noxfile.py"), "-l"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(re.findall(r"^[*-] (\w+)", listed.stdout, re.MULTILINE))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_each_step_is_a_session_that_exists(path, sessions):
    named = SESSION.findall(path.read_text(encoding="utf-8"))
    assert named
    assert set(named) <= sessions


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_no_job_has_more_rights_than_it_names(path):
    """Without this line, a job would have those that the repository gives by default."""
    assert "\npermissions: {}\n" in path.read_text(encoding="utf-8")
