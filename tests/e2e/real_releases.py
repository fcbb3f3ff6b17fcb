"""Bisections of real releases, with the answers that are known for them.

Not collected by a plain `pytest`: each takes minutes, and the package index is needed. `nox -s e2e` runs all of
them, `nox -s e2e -- quick` the one named so. Each starts with no results, so that every probe is run.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Bisect = Callable[..., dict[str, Any]]

# Runs beyond a plain bisection that a good search may need: the two ends.
_SPARE = 2


@pytest.fixture
def bisect(tmp_path: Path) -> Bisect:
    """The answer of `harness bisect` down to the release, by its own JSON."""

    def run(*words: str, expected: int = 0) -> dict[str, Any]:
        command = [sys.executable, "-m", "harness", "bisect", "--depth", "release", *words, "--json"]
        command += ["--results", str(tmp_path / "results")]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ended.returncode == expected, ended.stderr + ended.stdout
        answer: dict[str, Any] = json.loads(ended.stdout)
        return answer

    return run


def most_probes(answer: dict[str, Any], releases: int) -> None:
    """No more runs than a bisection needs for so many releases."""
    assert answer["probes"] <= math.ceil(math.log2(releases)) + _SPARE


def test_quick_bisection_around_the_change(bisect: Bisect) -> None:
    """Three releases, three runs: 4.53.0 broke the training step."""
    answer = bisect("transformers", "--good", "4.52.4", "--bad", "4.53.1")
    assert (answer["last_good"], answer["first_bad"]) == ("4.52.4", "4.53.0")
    assert answer["suspects"] == ["4.53.0"]
    assert [change["name"] for change in answer["lock_changes"]] == ["transformers"]


def test_the_release_that_broke_it(bisect: Bisect) -> None:
    """Over all 27 releases from 4.50.3 to 4.57.6 it is 4.53.0."""
    answer = bisect("transformers", "--good", "4.50.3", "--bad", "4.57.6")
    assert (answer["last_good"], answer["first_bad"]) == ("4.52.4", "4.53.0")
    assert answer["signature"]["exception"] == "RuntimeError"
    most_probes(answer, 27)


def test_the_release_that_mended_it(bisect: Bisect) -> None:
    """No 4.x release mends it; 5.0.0 does."""
    answer = bisect("transformers", "--find-fix", "--bad", "4.57.6", "--good", "5.10.4")
    assert (answer["last_bad"], answer["first_good"]) == ("4.57.6", "5.0.0")


def test_the_pre_release_that_mended_it(bisect: Bisect) -> None:
    """Among pre-releases it is the second candidate of 5.0.0."""
    answer = bisect("transformers", "--find-fix", "--bad", "4.57.6", "--good", "5.10.4", "--pre")
    assert (answer["last_bad"], answer["first_good"]) == ("5.0.0rc1", "5.0.0rc2")


def test_peft_did_not_break_it(bisect: Bisect) -> None:
    """With transformers held at a broken release every peft fails, so peft is not to blame."""
    answer = bisect("peft", "--good", "0.15.2", "--bad", "0.18.1", expected=1)
    assert answer["status"] == "not-a-regression"


def test_peft_with_a_transformers_that_works(bisect: Bisect) -> None:
    """With transformers held at the last good release there is no failure to find."""
    answer = bisect("peft", "--good", "0.15.2", "--bad", "0.18.1", "--hold", "transformers==4.52.4", expected=1)
    assert answer["status"] == "no-failure"
