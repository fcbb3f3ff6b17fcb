"""The GitHub Actions follow the schema, and their steps run here like on runners, night after night.

One action runs the tests, the other writes what they showed; only an artifact goes from one to the other.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from attrs import define, field
from fake_gh import write_fake_gh

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parent.parent
ACTION = ROOT / "action.yml"
REPORT = ROOT / ".github" / "actions" / "report" / "action.yml"
BOTH = pytest.mark.parametrize("action", [ACTION, REPORT], ids=["run", "report"])
TEST = """
import unittest
import brittle

class TestStep(unittest.TestCase):
    def test_step(self): brittle.step()
    def test_number(self): self.assertGreaterEqual(brittle.NUMBER, 0)
    def test_never_worked(self): import never_published
"""
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
GREEN, BROKEN, FIXED = "2023-06-15", "2023-08-15", "2023-12-15"  # brittle 1.5, 1.7, 1.11
TOKEN = "t0ken"


def check(path: Path) -> subprocess.CompletedProcess[str]:
    words = ["--builtin-schema", "vendor.github-actions", str(path)]
    return subprocess.run(
        [sys.executable, "-m", "check_jsonschema", *words], capture_output=True, text=True, check=False
    )


def git(folder: Path, *words: str) -> str:
    told = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(folder), *words]
    return subprocess.run(told, check=True, capture_output=True, text=True).stdout


@BOTH
def test_it_follows_the_schema(action):
    ended = check(action)
    assert ended.returncode == 0, ended.stdout


def test_the_schema_check_works(tmp_path):
    """A misspelled key fails."""
    wrong = tmp_path / "action.yml"
    wrong.write_text(ACTION.read_text(encoding="utf-8").replace("using: composite", "uses: composite"))
    assert check(wrong).returncode != 0


@BOTH
def test_every_expression_names_an_input_or_a_step_that_exists(action):
    text = action.read_text(encoding="utf-8")
    told = yaml.safe_load(text)
    steps = {step["id"] for step in told["runs"]["steps"] if "id" in step}
    named = re.findall(r"\b(inputs|steps)\.([\w-]+)", text)
    assert {name for kind, name in named if kind == "inputs"} == set(told["inputs"])
    assert {name for kind, name in named if kind == "steps"} <= steps


@BOTH
def test_no_script_contains_an_expression(action):
    """Text from an input would run as part of the script; it is passed in variables instead."""
    scripts = [step["run"] for step in yaml.safe_load(action.read_text())["runs"]["steps"] if "run" in step]
    assert len(scripts) >= 4
    assert not any(EXPRESSION.search(script) for script in scripts)


def test_the_part_that_runs_tests_writes_nothing_to_the_repository():
    scripts = "".join(step.get("run", "") for step in yaml.safe_load(ACTION.read_text())["runs"]["steps"])
    assert "git push" not in scripts
    assert "harness issues" not in scripts


def test_the_part_that_writes_runs_no_tests_and_nothing_of_the_artifact():
    steps = yaml.safe_load(REPORT.read_text())["runs"]["steps"]
    scripts = [step["run"] for step in steps if "run" in step]
    assert not any("harness watch " in script or "harness probe" in script for script in scripts)
    (keep,) = [script for script in scripts if "harness-found" in script]
    used = {line.strip() for line in keep.splitlines() if "$found" in line}
    assert used == {'if [ -f "$found/$file" ] && [ ! -L "$found/$file" ]; then cp "$found/$file" "$state/$file"; fi'}


@define
class Job:
    """One run of the action on a runner, with the results of its steps."""

    folder: Path
    environ: dict[str, str]
    inputs: dict[str, str]
    outcomes: dict[str, str] = field(factory=dict)
    outputs: dict[tuple[str, str], str] = field(factory=dict)
    said: str = ""

    @property
    def status(self) -> str:
        """The output `status`."""
        return self.outputs.get(("watch", "status"), "")

    def value(self, expression: str) -> str:
        """The value of a simple expression."""
        where, _, rest = expression.partition(".")
        if where == "inputs":
            return self.inputs[rest]
        if where == "steps":
            step, _, what = rest.partition(".")
            return (
                self.outcomes.get(step, "skipped")
                if what == "outcome"
                else self.outputs.get((step, what.removeprefix("outputs.")), "")
            )
        return {
            "runner.temp": str(self.folder),
            "github.action_path": str(ROOT),
            "github.token": TOKEN,
            "github.server_url": f"file://{self.folder.parent}",
        }[expression]

    def holds(self, condition: str) -> bool:
        """Whether a condition, with parts joined by &&, is true."""
        parts = condition.removeprefix("${{").removesuffix("}}").strip().split(" && ")
        failed = "failure" in self.outcomes.values()
        assert parts[0] in ("!cancelled()", "always()") or not failed
        for part in parts:
            if part in ("!cancelled()", "always()"):
                continue
            name, _, literal = part.partition(" == ")
            if self.value(name) != literal.strip("'"):
                return False
        return True

    def run(self, steps: list[dict]) -> None:
        """Run the steps; after a failed step only those with a condition run."""
        for step in steps:
            name = step.get("id", "")
            # The harness is there already, and so are the caches; `night` carries the artifact.
            if "run" not in step or name in ("install", "sandbox"):
                continue
            if not (self.holds(step["if"]) if "if" in step else "failure" not in self.outcomes.values()):
                continue
            ended = self._step(step)
            self.outcomes[name] = "success" if ended.returncode == 0 else "failure"
            self.said += ended.stdout

    def _step(self, step: dict) -> subprocess.CompletedProcess[str]:
        output, summary = self.folder / "output", self.folder / "summary"
        output.write_text("")
        variables = {key: EXPRESSION.sub(lambda m: self.value(m[1]), value) for key, value in step["env"].items()}
        ended = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.folder / "checkout",
            env={**self.environ, **variables, "GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        for line in output.read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition("=")
            self.outputs[step["id"], key] = value
        return ended


@pytest.fixture
def repository(harness, tmp_path):
    """A repository with tests, and `night(day)`: one action runs in a new checkout of it, the other without one."""
    origin, first, gh = tmp_path / "some-one" / "project", tmp_path / "first", write_fake_gh(tmp_path / "gh")
    origin.parent.mkdir()
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", origin], check=True)
    first.mkdir()
    (first / "test_step.py").write_text(TEST, encoding="utf-8")
    (first / "requirements.txt").write_text("brittle\n", encoding="utf-8")
    git(first, "init", "-q", "-b", "main")
    git(first, "add", ".")
    git(first, "commit", "-q", "-m", "code")
    git(first, "push", "-q", str(origin), "main")
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "harness").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m harness "$@"\n')
    (programs / "harness").chmod(0o755)
    actions = {action: yaml.safe_load(action.read_text(encoding="utf-8")) for action in (ACTION, REPORT)}
    environ = {
        **os.environ,
        **harness.environ,
        "PATH": os.pathsep.join([str(programs), str(gh), os.environ["PATH"]]),
        "PYTHONPATH": str(ROOT),
        "GITHUB_REPOSITORY": "some-one/project",
    }

    def job(action: Path, inputs: dict[str, str]) -> Job:
        night.count += 1
        folder = tmp_path / f"runner{night.count}"
        (folder / "checkout").mkdir(parents=True)
        given = actions[action]["inputs"]
        defaults = {
            name: str(one.get("default", "")).replace("${{ github.token }}", TOKEN) for name, one in given.items()
        }
        return Job(folder, environ, {**defaults, **{name: inputs[name] for name in given if name in inputs}})

    def night(day: str, found: Callable[[Path], None] = lambda _: None, **inputs: str) -> tuple[Job, Job | None]:
        """Both jobs of a night, the second one None if the first has no artifact; `found` changes the artifact."""
        given = {"run": "python -m unittest -q test_step", "options": f"--day {day}", "sandbox": "auto", **inputs}
        tests = job(ACTION, given)
        subprocess.run(["git", "clone", "-q", "--depth=1", f"file://{origin}", tests.folder / "checkout"], check=True)
        tests.run(actions[ACTION]["runs"]["steps"])
        if tests.outcomes.get("watch") != "success":
            return tests, None
        report = job(REPORT, given)
        shutil.copytree(tests.folder / "harness-state", report.folder / "harness-found")
        found(report.folder / "harness-found")
        report.run(actions[REPORT]["runs"]["steps"])
        return tests, report

    night.count = 0
    night.origin = origin
    night.issues = lambda: json.loads((gh / "issues.json").read_text(encoding="utf-8"))
    return night


def kept(repository, name: str, branch: str = "harness-watch") -> str:
    return git(repository.origin, "show", f"{branch}:{name}")


def test_nights_of_a_project(repository):
    passing = {"run": "python -m unittest -q test_step.TestStep.test_step test_step.TestStep.test_number"}
    first, wrote = repository(GREEN, **passing)
    assert (first.status, first.outcomes) == ("passes", {"open": "success", "watch": "success"}), first.said
    assert wrote.outcomes == {"keep": "success", "issue": "success"}, wrote.said
    assert "brittle==1.5" in kept(repository, "green.txt")

    second, wrote = repository(BROKEN, **passing)
    assert second.status == "broken", second.said
    assert wrote.outcomes["result"] == "failure"
    assert "brittle 1.6" in second.outputs["watch", "sentence"]
    assert "brittle==1.5" in kept(repository, "green.txt")
    assert kept(repository, "constraints.txt") == "brittle<1.6\n"
    (issue,) = repository.issues()
    assert issue["state"] == "OPEN"
    assert "brittle 1.6" in issue["title"]
    assert "test_step.TestStep.test_step" in issue["body"]

    fixed, wrote = repository(FIXED, **passing)
    assert fixed.status == "passes", fixed.said
    assert "result" not in wrote.outcomes
    assert [issue["state"] for issue in repository.issues()] == ["CLOSED"]
    assert "brittle==1.11" in kept(repository, "green.txt")
    assert "report.md" not in git(repository.origin, "ls-tree", "--name-only", "harness-watch").split()
    assert git(repository.origin, "rev-list", "--count", "harness-watch").strip() == "3"


@pytest.mark.parametrize("value", ["true", "false"])
def test_without_these_settings_a_break_opens_no_issue_and_does_not_fail(tmp_path, value):
    broken = Job(tmp_path, {}, {"issue": value, "fail": value}, {"keep": "success"}, {("keep", "status"): "broken"})
    steps = {step.get("id"): step for step in yaml.safe_load(REPORT.read_text())["runs"]["steps"]}
    assert {broken.holds(steps[name]["if"]) for name in ("issue", "result")} == {value == "true"}


def test_a_mistake_in_an_input_fails_the_step_and_keeps_nothing(repository):
    tests, report = repository(GREEN, project="no-such-folder")
    assert tests.outcomes == {"open": "success", "watch": "failure"}
    assert report is None
    assert "no-such-folder" in tests.said
    assert git(repository.origin, "branch", "--list", "harness-watch") == ""


def test_the_tests_see_no_token(repository):
    """Neither in a variable nor in the checkout, which keeps no credentials."""
    look = "import os, sys; sys.exit(any('t0ken' in value for value in os.environ.values()))"
    tests, _ = repository(
        GREEN, run=f'python -c "{look}"', options=f"--day {GREEN} --pass-env TOKEN --pass-env GH_TOKEN"
    )
    assert tests.status == "passes", tests.said
    config = (tests.folder / "checkout" / ".git" / "config").read_text(encoding="utf-8")
    assert "extraheader" not in config.lower()


def test_of_an_artifact_only_known_files_are_taken_and_nothing_runs(repository, tmp_path):
    ran, secret = tmp_path / "ran", tmp_path / "secret.txt"
    secret.write_text("not for everybody")

    def changed(found: Path) -> None:
        hook = found / ".git" / "hooks" / "pre-commit"
        hook.parent.mkdir(parents=True)
        hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
        hook.chmod(0o755)
        (found / ".gitattributes").write_text("* filter=evil\n")
        (found / "harness").write_text(f"#!/bin/sh\ntouch {ran}\n")
        (found / "report.md").symlink_to(secret)

    passing = "python -m unittest -q test_step.TestStep.test_number"
    tests, report = repository(GREEN, changed, run=passing)
    assert (tests.status, report.outcomes["keep"]) == ("passes", "success"), report.said
    assert git(repository.origin, "ls-tree", "-r", "--name-only", "harness-watch").split() == [
        "green.txt",
        "night.json",
    ]
    assert not ran.exists()


def test_an_artifact_of_another_watch_is_refused(repository):
    def changed(found: Path) -> None:
        night = json.loads((found / "night.json").read_text(encoding="utf-8"))
        (found / "night.json").write_text(json.dumps({**night, "name": "Other tests"}), encoding="utf-8")

    _, report = repository(GREEN, changed, run="python -m unittest -q test_step.TestStep.test_number")
    assert report.outcomes == {"keep": "failure"}
    assert "Other tests" in report.said
    assert git(repository.origin, "branch", "--list", "harness-watch") == ""
