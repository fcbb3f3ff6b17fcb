"""`harness gate` with the lock of uv, whose own check accepts the part that passes; and what is no update."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from support import outer_environ
from uv import find_uv_bin

from harness.terminal import stream

SCHEMA = Draft202012Validator(json.loads(Path(stream.__file__).with_name("stream.schema.json").read_text("utf-8")))
TEST = """
import unittest
import alpha, needy

class T(unittest.TestCase):
    def test_alpha(self): alpha.work()
    def test_needy(self): needy.work()
"""
PROJECT = """
[project]
name = "mine"
version = "1.0"
requires-python = ">=3.11"
dependencies = ["alpha{bound}", "companion", "other"]
"""
GATE = ("gate", "--run", "python -m unittest -q test_mine", "--confirm", "1")


@pytest.fixture
def project(harness, house):
    """A project with an update: alpha 2.0, which needs core, fails; so does needy 2.0, which companion 2.0 needs."""
    house.add("core", "1.0", files={"core.py": ""})
    for version, does in (("1.0", "return 1"), ("2.0", "raise RuntimeError('broken')")):
        work = f"def work(): {does}\n"
        house.add("alpha", version, files={"alpha.py": work}, requires=["core"] if version == "2.0" else [])
        house.add("needy", version, files={"needy.py": work})
        house.add("companion", version, files={"companion.py": ""}, requires=[f"needy=={version}"])
        house.add("other", version, files={"other.py": ""})
    (harness.folder / "test_mine.py").write_text(TEST, encoding="utf-8")
    return harness


def lock(harness, house, *words: str, bound: str = "") -> subprocess.CompletedProcess[str]:
    """Run uv lock in the project."""
    (harness.folder / "pyproject.toml").write_text(PROJECT.format(bound=bound), encoding="utf-8")
    environ = {**outer_environ(), **house.environ}
    return subprocess.run(
        [find_uv_bin(), "lock", *words], cwd=harness.folder, env=environ, capture_output=True, text=True
    )


def test_the_part_of_a_uv_lock_is_a_lock_that_uv_accepts(project, house):
    names = ("alpha", "companion", "other")
    assert lock(project, house, *(word for name in names for word in ("-P", f"{name}==1.0"))).returncode == 0
    current = project.folder / "uv.lock"
    current.rename(project.folder / "base.lock")
    assert lock(project, house).returncode == 0
    ended = project(*GATE, "--base", "base.lock", "--json")
    assert (ended.code, ended.json["status"]) == (1, "broken"), ended.stderr
    part = ended.json["part"]
    assert [change["name"] for change in part["held"]] == ["alpha", "companion", "core", "needy"]
    updated = current.read_text(encoding="utf-8")
    subprocess.run(["git", "apply", "-"], cwd=project.folder, input=part["diff"], check=True, text=True)
    checked = lock(project, house, "--check")
    assert checked.returncode == 0, checked.stderr
    edited = current.read_text(encoding="utf-8")
    current.write_text(updated, encoding="utf-8")
    assert lock(project, house, *part["command"].split()[2:]).returncode == 0
    assert current.read_text(encoding="utf-8") == edited
    # The update may have raised a bound in the project's own file, too.
    current.write_text(updated, encoding="utf-8")
    assert lock(project, house, bound=">=2").returncode == 0
    ended = project(*GATE, "--base", "base.lock", "--json")
    assert ended.json["part"]["unmet"] == ["alpha>=2"]


def test_the_stream_ends_with_the_result(project):
    (project.folder / "lock.txt").write_text("alpha==1.0\nneedy==1.0\n", encoding="utf-8")
    ended = project(*GATE, "--base", "lock.txt", "--head", "lock.txt", "--json-lines", "--comment", "comment.md")
    last = json.loads(ended.stdout.splitlines()[-1])
    SCHEMA.validate(last)
    assert (last["event"], last["exit_code"], last["answer"]["status"], ended.code) == ("answer", 0, "passes", 0)
    assert (project.folder / last["files"]["comment"]).read_text("utf-8").startswith("<!-- harness-gate -->\n**")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--base", "missing.txt"), "--base missing.txt: there is no such file"),
        (("--base", "2024-01-01"), "the base and the head are lock or requirements files"),
        (("--base", "empty.txt"), "empty.txt lists no package"),
        (("--base", "uv.lock@main"), "uv.lock is not in a git repository"),
        (("--head", "head.txt"), "name the lock before the update with --base"),
        ((), "has no lock file that is known"),
        (("--json", "--json-lines"), "give one of them"),
        (("--comment", "head.txt/comment.md", "--base", "head.txt", "--head", "head.txt"), "can't write"),
    ],
)
def test_a_mistake_is_one_sentence(project, words, says):
    (project.folder / "empty.txt").write_text("", encoding="utf-8")
    (project.folder / "head.txt").write_text("alpha==1.0\nneedy==1.0\n", encoding="utf-8")
    words = words if not words or "--head" in words or "--json" in words else (*words, "--head", "head.txt")
    ended = project(*GATE, *words)
    assert ended.code in (2, 6)
    assert says in ended.stderr + ended.stdout
    assert "Traceback" not in ended.stderr
