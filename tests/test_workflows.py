"""Workflows follow GitHub's schema, and the nox sessions and scripts that they run exist."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SESSION = re.compile(r"\bnox -s (\w+)")
SCRIPT = re.compile(r"run: (\.\S+)")


def check(path: Path) -> subprocess.CompletedProcess[str]:
    words = ["--builtin-schema", "vendor.github-workflows", str(path)]
    return subprocess.run(
        [sys.executable, "-m", "check_jsonschema", *words], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_it_follows_the_schema(path):
    ended = check(path)
    assert ended.returncode == 0, ended.stdout


def test_a_misspelled_key_fails(tmp_path):
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(WORKFLOWS[0].read_text(encoding="utf-8").replace("runs-on:", "runs-at:"), encoding="utf-8")
    assert check(wrong).returncode != 0


@pytest.fixture(scope="module")
def sessions() -> set[str]:
    """The session names listed by `nox -l`."""
    listed = subprocess.run(
        [sys.executable, "-m", "nox", "--nocolor", "-f", str(ROOT / "noxfile.py"), "-l"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(re.findall(r"^[*-] (\w+)", listed.stdout, re.MULTILINE))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_all_sessions_and_scripts_exist(path, sessions):
    text = path.read_text(encoding="utf-8")
    named, scripts = SESSION.findall(text), SCRIPT.findall(text)
    assert named or scripts
    assert set(named) <= sessions
    assert all(os.access(ROOT / script, os.X_OK) for script in scripts)


def test_pushes_and_pull_requests_run_every_check():
    ci = yaml.load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"), yaml.BaseLoader)
    assert {"push", "pull_request"} <= ci["on"].keys()
    assert ".ci/run" in [step.get("run") for job in ci["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_no_job_has_more_permissions_than_it_names(path):
    """Without this line, a job would have the repository's default rights."""
    assert "\npermissions: {}\n" in path.read_text(encoding="utf-8")
