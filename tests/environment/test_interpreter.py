"""The interpreter fits the repro, or the command says why there is none."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from attrs import frozen

from harness.environment import find_interpreter
from harness.errors import UserMistake


@frozen
class Pythons:
    """A fake uv: what it finds without a version, and with one."""

    own: Path
    other: Path

    def find_python(self, asked):  # noqa: D102
        return self.own if asked is None else self.other


@pytest.fixture
def old(tmp_path):
    """A program that answers like Python 3.8."""
    path = tmp_path / "python3.8"
    told = json.dumps(["3.8.1", "CPython", "cpython-38", "/nowhere"])
    path.write_text(f"#!/bin/sh\necho '{told}'\n")
    path.chmod(0o755)
    return path


def test_another_python_is_used_if_the_current_one_does_not_fit(old):
    pythons = Pythons(old, Path(sys.executable))
    assert find_interpreter(None, pythons).version == "3.8.1"
    assert find_interpreter(None, pythons, needs=">=3.8").version == "3.8.1"
    assert find_interpreter(None, pythons, needs=">=3.9").path == Path(sys.executable)


def test_a_requested_python_that_does_not_fit_is_refused(old):
    with pytest.raises(UserMistake, match=r"requires Python >=3.9, and --python 3.8 is 3.8.1"):
        find_interpreter("3.8", Pythons(Path(sys.executable), old), needs=">=3.9")
    with pytest.raises(UserMistake, match=r"requires Python >=3.9"):
        find_interpreter(str(old), Pythons(Path(sys.executable), old), needs=">=3.9")


def test_a_repro_that_no_installed_python_can_run_is_refused(harness, write_repro):
    path = write_repro("brittle")
    path.write_text(path.read_text().replace("# dependencies", '# requires-python = ">=3.99"\n# dependencies'))
    for words in (("probe", path), ("bisect", "brittle", "--repro", path), ("history", "brittle", "--repro", path)):
        ended = harness(*words)
        assert ended.code == 2, (words, ended.stderr)
        assert ">=3.99" in ended.stderr
        ended = harness(*words, "--python", sys.executable)
        assert ended.code == 2, (words, ended.stderr)
        assert "requires Python >=3.99" in ended.stderr
