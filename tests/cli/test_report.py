"""`harness report` shows a finding to others, and the commands in it work."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess

import pytest
from support import MESSAGE, harness_in, repro_in
from uv import find_uv_bin


@pytest.fixture(scope="module")
def answered(tmp_path_factory, house, uv_cache, cache):
    """The folder of a bisection, and what the command said."""
    there = harness_in(tmp_path_factory.mktemp("answered"), house, uv_cache, cache)
    repro_in(there.folder, "brittle")
    with contextlib.chdir(there.folder):
        return there.folder, there("bisect", "brittle", "--good", "1.4", "--bad", "1.7", "--confirm", "1")


@pytest.fixture
def bisected(harness, answered):
    """What the command said; the working directory is a copy of that folder."""
    shutil.copytree(answered[0], harness.folder, dirs_exist_ok=True)
    return answered[1]


def test_a_bisection_ends_with_both_reports(harness, bisected):
    (path,) = re.findall(r"  report +(\S+)", bisected.stdout)
    assert path.startswith("results/reports/")
    assert all((harness.folder / path).with_suffix(end).stat().st_size > 1000 for end in (".md", ".html"))


def test_the_newest_answer_is_shown_as_markdown(harness, bisected):
    ended = harness("report")
    assert ended.code == 0
    assert ended.stdout.startswith("**brittle_step fails since brittle 1.6.")
    assert f"RuntimeError: {MESSAGE}" in ended.stdout
    written = next((harness.folder / "results" / "reports").glob("*.md"))
    assert written.read_text(encoding="utf-8") == ended.stdout


def test_an_answer_is_found_by_a_prefix_of_its_id(harness, bisected, write_repro):
    first = harness("report", "--format", "json").json["id"]
    write_repro("stale")
    harness("bisect", "stale", "--depth", "release", "--confirm", "1")
    assert harness("report", "--format", "json").json["subject"] == "stale"
    assert harness("report", first[:6], "--format", "json").json["subject"] == "brittle"


def test_an_unknown_id_lists_the_known_ones(harness, bisected):
    ended = harness("report", "zzz")
    assert ended.code == 2
    assert "brittle with brittle_step" in ended.stderr


def test_an_unwritable_file_is_reported(harness, bisected):
    (harness.folder / "afile").write_text("", encoding="utf-8")
    ended = harness("report", "--output", "afile/out.md")
    assert ended.code == 6
    assert "can't write afile/out.md" in ended.stderr


def test_no_report_identifies_this_machine(harness, bisected, answered, house):
    for style in ("markdown", "html", "json"):
        text = harness("report", "--format", style, HOME=str(answered[0])).stdout
        assert str(answered[0]) not in text
        assert str(harness.folder) not in text
        assert str(house.root) not in text
        assert harness.environ["HARNESS_CACHE_DIR"] not in text


def test_the_two_commands_reproduce_both_sides(harness, bisected, tmp_path):
    """Run like a reader would, in a folder with only the repro from the report."""
    text = harness("report").stdout
    commands = re.findall(r"```sh\n(uv run .*--with .*)\n```", text)
    source = re.search(r"```python\n(.*?)\n```", text, re.DOTALL)[1]
    folder = tmp_path / "reader"
    folder.mkdir()
    (folder / "brittle_step.py").write_text(source + "\n", encoding="utf-8")
    environ = {**os.environ, **harness.environ}
    ended = [
        subprocess.run([find_uv_bin(), *words], cwd=folder, env=environ, capture_output=True, text=True)
        for _, *words in map(shlex.split, commands)
    ]
    assert [run.returncode for run in ended] == [0, 1]
    assert MESSAGE in ended[1].stderr
    assert json.loads(harness("report", "--format", "json").stdout)["first_bad"] == "1.6"
