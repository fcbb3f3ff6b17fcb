"""The GitHub Action follows the schema, and its steps run here like on a runner, night after night."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from attrs import define, field
from fake_gh import write_fake_gh

ROOT = Path(__file__).parent.parent
ACTION = ROOT / "action.yml"
TEST = """
import unittest
import brittle

class TestStep(unittest.TestCase):
    def test_step(self): brittle.step()
    def test_number(self): self.assertGreaterEqual(brittle.NUMBER, 0)
    def test_never_worked(self): self.assertLess(brittle.NUMBER, 0)
"""
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
GREEN, BROKEN, FIXED = "2023-06-15", "2023-08-15", "2023-12-15"  # brittle 1.5, 1.7, 1.11


def check(path: Path) -> subprocess.CompletedProcess[str]:
    words = ["--builtin-schema", "vendor.github-actions", str(path)]
    return subprocess.run(
        [sys.executable, "-m", "check_jsonschema", *words], capture_output=True, text=True, check=False
    )


def git(folder: Path, *words: str) -> str:
    told = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(folder), *words]
    return subprocess.run(told, check=True, capture_output=True, text=True).stdout


def test_it_follows_the_schema():
    ended = check(ACTION)
    assert ended.returncode == 0, ended.stdout


def test_the_schema_check_works(tmp_path):
    """A misspelled key fails."""
    wrong = tmp_path / "action.yml"
    wrong.write_text(ACTION.read_text(encoding="utf-8").replace("using: composite", "uses: composite"))
    assert check(wrong).returncode != 0


def test_every_expression_names_an_input_or_a_step_that_exists():
    text = ACTION.read_text(encoding="utf-8")
    told = yaml.safe_load(text)
    steps = {step["id"] for step in told["runs"]["steps"] if "id" in step}
    named = re.findall(r"\b(inputs|steps)\.([\w-]+)", text)
    assert {name for kind, name in named if kind == "inputs"} == set(told["inputs"])
    assert {name for kind, name in named if kind == "steps"} <= steps


def test_no_script_contains_an_expression():
    """Text from an input would run as part of the script; it is passed in variables instead."""
    scripts = [step["run"] for step in yaml.safe_load(ACTION.read_text())["runs"]["steps"] if "run" in step]
    assert len(scripts) >= 5
    assert not any(EXPRESSION.search(script) for script in scripts)


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
        return {"runner.temp": str(self.folder), "github.action_path": str(ROOT), "github.token": "t"}[expression]

    def holds(self, condition: str) -> bool:
        """Whether a condition, with parts joined by &&, is true."""
        parts = condition.removeprefix("${{").removesuffix("}}").strip().split(" && ")
        failed = "failure" in self.outcomes.values()
        assert parts[0] == "!cancelled()" or not failed
        for part in parts[1:]:
            name, _, literal = part.partition(" == ")
            if self.value(name) != literal.strip("'"):
                return False
        return True

    def run(self, steps: list[dict]) -> None:
        """Run the steps; after a failed step only those with a condition run."""
        for step in steps:
            name = step.get("id", "")
            if "run" not in step or name == "install":  # the harness is there already, and so are the caches
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
    """A repository with tests, and `night(day)`, which runs the action in a new checkout of it."""
    origin, first, gh = tmp_path / "origin.git", tmp_path / "first", write_fake_gh(tmp_path / "gh")
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
    told = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    defaults = {name: str(given.get("default", "")) for name, given in told["inputs"].items()}

    def night(day: str, **inputs: str) -> Job:
        night.count += 1
        folder = tmp_path / f"runner{night.count}"
        folder.mkdir()
        subprocess.run(["git", "clone", "-q", "--depth=1", f"file://{origin}", folder / "checkout"], check=True)
        environ = {
            **os.environ,
            **harness.environ,
            "PATH": os.pathsep.join([str(programs), str(gh), os.environ["PATH"]]),
            "PYTHONPATH": str(ROOT),
            "GITHUB_REPOSITORY": "some-one/project",
        }
        given = {"run": "python -m unittest -q test_step", "options": f"--day {day}"}
        job = Job(folder, environ, {**defaults, **given, **inputs})
        job.run(told["runs"]["steps"])
        return job

    night.count = 0
    night.origin = origin
    night.issues = lambda: json.loads((gh / "issues.json").read_text(encoding="utf-8"))
    return night


def kept(repository, name: str, branch: str = "harness-watch") -> str:
    return git(repository.origin, "show", f"{branch}:{name}")


def test_nights_of_a_project(repository):
    passing = {"run": "python -m unittest -q test_step.TestStep.test_step test_step.TestStep.test_number"}
    first = repository(GREEN, **passing)
    assert (first.status, first.outcomes) == (
        "passes",
        {"open": "success", "watch": "success", "keep": "success", "issue": "success"},
    ), first.said
    assert "brittle==1.5" in kept(repository, "green.txt")

    second = repository(BROKEN, **passing)
    assert second.status == "broken", second.said
    assert second.outcomes["result"] == "failure"
    assert "brittle 1.6" in second.outputs["watch", "sentence"]
    assert "brittle==1.5" in kept(repository, "green.txt")
    assert kept(repository, "constraints.txt") == "brittle<1.6\n"
    (issue,) = repository.issues()
    assert issue["state"] == "OPEN"
    assert "brittle 1.6" in issue["title"]
    assert "test_step.TestStep.test_step" in issue["body"]

    again = repository(BROKEN, **passing)
    assert again.status == "broken"
    assert len(repository.issues()) == 1
    assert again.outcomes["result"] == "failure"

    fixed = repository(FIXED, **passing)
    assert fixed.status == "passes", fixed.said
    assert "result" not in fixed.outcomes
    assert [issue["state"] for issue in repository.issues()] == ["CLOSED"]
    assert "brittle==1.11" in kept(repository, "green.txt")
    assert "report.md" not in git(repository.origin, "ls-tree", "--name-only", "harness-watch").split()
    assert git(repository.origin, "rev-list", "--count", "harness-watch").strip() in ("3", "4")


def test_a_test_that_never_passed_is_no_news_after_the_first_night(repository):
    """With that setting the action opens no issue and does not fail."""
    first = repository(GREEN, issue="false", fail="false")
    assert first.status == "unknown", first.said
    assert "test_step.TestStep.test_never_worked" in kept(repository, "green.txt")
    second = repository(BROKEN, issue="false", fail="false")
    assert second.status == "broken", second.said
    assert "1 test fails since brittle 1.6" in second.outputs["watch", "sentence"]
    assert second.outcomes == {"open": "success", "watch": "success", "keep": "success"}
    assert repository.issues() == []


def test_a_mistake_in_an_input_fails_the_step_and_keeps_nothing(repository):
    job = repository(GREEN, project="no-such-folder")
    assert job.outcomes == {"open": "success", "watch": "failure"}
    assert "no-such-folder" in job.said
    assert git(repository.origin, "branch", "--list", "harness-watch") == ""
