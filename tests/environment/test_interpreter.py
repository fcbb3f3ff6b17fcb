"""The interpreter fits the repro, or the command says why there is none."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from attrs import frozen

from harness.environment import find_interpreter
from harness.environment.interpreter import installed_in
from harness.errors import UserMistake


@frozen
class Pythons:
    """A fake uv: what it finds without a version, and with one."""

    own: Path
    other: Path

    def find_python(self, asked):  # noqa: D102
        return self.own if asked is None else self.other


def answering(path, told):
    """Write a program that answers any question about itself in the same way."""
    path.write_text(f"#!/bin/sh\necho '{json.dumps(told)}'\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def old(tmp_path):
    return answering(tmp_path / "python3.9", ["3.9.1", "cpython-39", "/nowhere"])


def test_another_python_is_used_if_the_current_one_does_not_fit(old):
    pythons = Pythons(old, Path(sys.executable))
    assert find_interpreter(None, pythons).version == "3.9.1"
    assert find_interpreter(None, pythons, needs=">=3.9").version == "3.9.1"
    assert find_interpreter(None, pythons, needs=">=3.10").path == Path(sys.executable)


def test_a_requested_python_that_does_not_fit_is_refused(old):
    with pytest.raises(UserMistake, match=r"requires Python >=3.10, and --python 3.9 is 3.9.1"):
        find_interpreter("3.9", Pythons(Path(sys.executable), old), needs=">=3.10")
    with pytest.raises(UserMistake, match=r"requires Python >=3.10"):
        find_interpreter(str(old), Pythons(Path(sys.executable), old), needs=">=3.10")


def test_what_is_no_python_or_too_old_is_refused(tmp_path):
    other = answering(tmp_path / "python", [1, 2])
    with pytest.raises(UserMistake, match="is not a Python that can be run"):
        find_interpreter(str(other), Pythons(other, other))
    with pytest.raises(UserMistake, match="can't list its installed packages"):
        installed_in(other)
    older = answering(tmp_path / "python3.8", ["3.8.1", "cpython-38", "/nowhere"])
    with pytest.raises(UserMistake, match=r"is Python 3\.8\.1, and runs need Python 3\.9 or later"):
        find_interpreter(str(older), Pythons(older, older))


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
