"""Workflows follow GitHub's schema, and the nox sessions and scripts that they run exist."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
OWN = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
WORKFLOWS = [*OWN, *sorted((ROOT / "docs" / "guides").glob("*.yml"))]
ACTIONS = [ROOT / "action.yml", *sorted((ROOT / ".github" / "actions").glob("*/action.yml"))]
EACH = pytest.mark.parametrize("path", [*WORKFLOWS, *ACTIONS], ids=lambda path: str(path.relative_to(ROOT)))
# What runs code of other people: fresh releases, or whoever wrote a pull request.
RUNS_OTHERS = re.compile(
    r"nox -s (nightly|matrix|tests|wheel)\b|\.ci/run|uses: \./\.regression-harness\n|harness (watch|gate|bisect) "
)
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


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_all_sessions_and_scripts_exist(path, sessions):
    text = path.read_text(encoding="utf-8")
    named, scripts = SESSION.findall(text), SCRIPT.findall(text)
    assert named or scripts or "uses: ./.regression-harness" in text
    assert set(named) <= sessions
    assert all(os.access(ROOT / script, os.X_OK) for script in scripts)


def test_pushes_and_pull_requests_run_every_check():
    ci = yaml.load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"), yaml.BaseLoader)
    assert {"push", "pull_request"} <= ci["on"].keys()
    assert ".ci/run" in [step.get("run") for job in ci["jobs"].values() for step in job["steps"]]


def test_each_python_that_the_metadata_claims_is_tested():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    claimed = {name[-4:] for name in project["classifiers"] if re.search(r":: 3\.\d+$", name)}
    assert claimed == set(re.findall(r'python(?:-version)?: "([\d.]+)"', (WORKFLOWS[0]).read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_no_job_has_more_permissions_than_it_names(path):
    """Without this line, a job would have the repository's default rights."""
    assert "\npermissions: {}\n" in path.read_text(encoding="utf-8")


@EACH
def test_each_action_is_pinned_to_a_commit(path):
    """A tag can be moved. The comment names the release for people, and for bots that update it."""
    used = re.findall(r"uses: (.*)", path.read_text(encoding="utf-8"))
    others = [one for one in used if not one.startswith("./")]
    assert used or path.parent.name == "workflows"
    assert [one for one in others if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one)] == []


def test_each_action_has_one_commit_everywhere():
    pins: dict[str, set[str]] = {}
    for path in (*WORKFLOWS, *ACTIONS):
        for name, sha in re.findall(r"uses: ([\w-]+/[\w-]+)\S*@(\w+)", path.read_text(encoding="utf-8")):
            pins.setdefault(name, set()).add(sha)
    assert len(pins) >= 7
    assert {name: shas for name, shas in pins.items() if len(shas) > 1} == {}


JOBS = [
    pytest.param(job, id=f"{path.stem}-{name}")
    for path in WORKFLOWS
    for name, job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].items()
]


def runs_others(job) -> bool:
    """Whether a job runs code of other people."""
    steps = [f"uses: {step['uses']}\n" if "uses" in step else step["run"] for step in job["steps"]]
    return any(map(RUNS_OTHERS.search, steps))


@pytest.mark.parametrize("job", JOBS)
def test_no_checkout_keeps_its_credentials(job):
    checkouts = [step for step in job["steps"] if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


@pytest.mark.parametrize("job", JOBS)
def test_a_job_either_runs_code_of_others_or_writes(job):
    """Such code runs as the user of the job, so it could change what the next step runs."""
    if runs_others(job):
        assert job["permissions"] == {"contents": "read"}
        assert "GH_TOKEN" not in str(job)
    else:
        assert "write" in job["permissions"].values()


def test_the_two_kinds_of_jobs_are_told_apart():
    assert [one.id for one in JOBS if runs_others(one.values[0])] == [
        "ci-checks",
        "ci-tests",
        "newest-packages-tests",
        "nightly-gpu-night",
        "release-build",
        "gate-gate",
        "pull-request-tests",
    ]


@EACH
def test_caches_are_saved_after_a_red_night_too(path):
    told = yaml.safe_load(path.read_text(encoding="utf-8"))
    for job in [told["runs"]] if "runs" in told else told["jobs"].values():
        used = [(step["uses"].partition("@")[0], step) for step in job["steps"] if "uses" in step]
        assert "actions/cache" not in [name for name, _ in used]  # it saves nothing if the job fails
        restored = [step for name, step in used if name == "actions/cache/restore"]
        saved = [step for name, step in used if name == "actions/cache/save"]
        assert [step["with"]["key"] for step in restored] == [step["with"]["key"] for step in saved]
        assert all(step["if"].startswith("${{ always() &&") for step in saved)


@EACH
def test_what_is_installed_beside_a_token_is_locked(path):
    """Workflows install the files that .github/locked.txt names, and the harness itself with nothing else."""
    lines = [
        line for line in path.read_text(encoding="utf-8").splitlines() if re.search(r"\bpip\b.* install|pip\[@\]", line)
    ]
    for line in lines:
        assert "pip=(" in line or "--require-hashes" in line or "--no-deps --no-build-isolation" in line, line


def test_the_lock_of_workflows_has_all_that_the_harness_needs():
    text = (ROOT / ".github" / "locked.txt").read_text(encoding="utf-8")
    assert "://" not in text
    entries = re.findall(r"^([\w.-]+)==([^\s;]+).*?\\\n((?:    --hash=sha256:[0-9a-f]{64}.*\n)+)", text, re.MULTILINE)
    assert len(entries) == len(re.findall(r"^[\w-]+==", text, re.MULTILINE))
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    own = (ROOT / ".github" / "locked.in").read_text(encoding="utf-8").splitlines()
    wanted = [*pyproject["project"]["dependencies"], *pyproject["build-system"]["requires"], *own]
    for requirement in (Requirement(line) for line in wanted if not line.startswith("#")):
        versions = [version for name, version, _ in entries if name == requirement.name]
        assert versions, f"{requirement} is missing: nox -s lock"
        assert all(map(requirement.specifier.contains, versions)), f"{requirement}: nox -s lock"


GH = """#!/bin/sh
echo "$@" >> calls.txt
case "$*" in *"/pulls "*) echo $NUMBER ;; *"/comments --jq"*) printf "$KNOWN" ;; *DELETE*) exit 1 ;; esac
"""


@pytest.mark.parametrize(
    ("known", "conclusion", "calls"),
    [
        ("", "success", ["POST repos/a/b/issues/7/comments", "labels[]=gate: passes", "labels/gate:%20fails"]),
        ("5\n8\n", "failure", ["PATCH repos/a/b/issues/comments/8", "labels[]=gate: fails", "labels/gate:%20passes"]),
    ],
)
def test_a_pull_request_has_one_comment_of_the_gate_and_one_label(tmp_path, known, conclusion, calls):
    text = (ROOT / "docs/guides/gate-comment.yml").read_text(encoding="utf-8")
    (script,) = [step["run"] for step in yaml.safe_load(text)["jobs"]["comment"]["steps"] if "run" in step]
    assert "${{" not in script
    (tmp_path / "gh").write_text(GH, encoding="utf-8")
    (tmp_path / "gh").chmod(0o755)
    found = tmp_path / "comment.md"
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "GH_REPO": "a/b", "SHA": "1a", "BRANCH": "me:x"}
    environ |= {"CONCLUSION": conclusion, "FOUND": str(found), "NUMBER": "7", "KNOWN": known}

    def run(**more: str) -> int:
        words = ["bash", "-e", "-o", "pipefail", "-c", script]
        return subprocess.run(words, cwd=tmp_path, env={**environ, **more}, check=False).returncode

    assert run() == 1  # no comment: an artifact of somebody else
    found.write_text("x" * 70_000, encoding="utf-8")
    assert run() == 0
    called = (tmp_path / "calls.txt").read_text(encoding="utf-8").splitlines()
    assert len(called) == 5
    assert all(part in line for part, line in zip(calls, called[2:], strict=True))
    assert (tmp_path / "body.md").stat().st_size == 65_000
    assert run(NUMBER="") == 0
    assert len((tmp_path / "calls.txt").read_text(encoding="utf-8").splitlines()) == 6
