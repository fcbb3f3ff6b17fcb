"""`harness bisect` on tiny releases: the exact release, few probes, and skips that never blame a release."""

from __future__ import annotations

import itertools
import math
import shlex

import pytest
from support import FAULTS, MESSAGE

KEYS = {"schema", "subject", "status", "suspects", "signature", "steps", "probes", "wall_s"}
STEP_KEYS = {"release", "verdict", "reason", "observation", "cached", "seconds"}


def bisect(harness, *arguments, **environ):
    """Levels below the release have tests of their own."""
    return harness("bisect", *arguments, "--depth", "release", **environ)


def bisect_once(harness, *arguments, **environ):
    """Repetitions have tests of their own, too."""
    return bisect(harness, *arguments, "--confirm", "1", **environ)


def verdicts(answer):
    return {step["release"]: step["verdict"] for step in answer["steps"]}


def reason(answer, release):
    return next(step["reason"] for step in answer["steps"] if step["release"] == release)


# -- what is found


def test_the_exact_release_is_found_in_few_probes(harness, write_repro):
    write_repro("brittle")
    ended = bisect(harness, "brittle", "--good", "1.0", "--bad", "1.9", "--json")
    answer = ended.json
    assert ended.code == 0
    assert ended.stderr == ""
    assert (answer["status"], answer["last_good"], answer["first_bad"]) == ("found", "1.5", "1.6")
    assert answer["suspects"] == ["1.6"]
    first = [step for step in answer["steps"] if "attempt" not in step]
    assert len(first) <= math.ceil(math.log2(10)) + 2
    assert {step["release"] for step in answer["steps"] if "attempt" in step} <= {"1.5", "1.6"}
    assert answer["confidence"] >= 0.99
    assert answer["rates"]["good"]["failed"] == 0
    assert answer["probes"] == len(answer["steps"])
    assert answer.keys() >= KEYS | {"last_good", "first_bad"}
    assert all(step.keys() - {"attempt"} == STEP_KEYS for step in answer["steps"])
    assert (answer["schema"], answer["subject"]) == (4, "brittle")
    assert answer["signature"] == {"exception": "RuntimeError", "message": MESSAGE}
    assert reason(answer, "1.6") == f"RuntimeError: {MESSAGE}"
    assert reason(answer, "1.5") == "ran to its end"
    assert answer["lock_changes"] == [{"name": "brittle", "before": "1.5", "after": "1.6"}]
    assert all(not step["cached"] and step["seconds"] > 0 for step in answer["steps"])


# -- how it is searched


def test_three_lanes_find_the_same_release(harness, write_repro):
    write_repro("brittle")
    answer = bisect(harness, "brittle", "--good", "1.0", "--bad", "1.9", "--lanes", "3", "--json").json
    assert (answer["status"], answer["last_good"], answer["first_bad"]) == ("found", "1.5", "1.6")
    releases = [step["release"] for step in answer["steps"] if "attempt" not in step]
    assert len(releases) == len(set(releases))


def test_both_sides_are_run_again_to_confirm(harness, write_repro):
    write_repro("brittle")
    answer = bisect(harness, "brittle", "--good", "1.4", "--bad", "1.7", "--confirm", "1", "--json").json
    releases = [step["release"] for step in answer["steps"]]
    assert answer["status"] == "found"
    assert (releases.count("1.5"), releases.count("1.6")) == (2, 2)
    assert len({step["observation"] for step in answer["steps"]}) == len(releases)


# -- releases that can't be judged

SKIPPED = {
    "odderror": "failed differently: ValueError: another thing is wrong",
    "noimport": "failed differently: ModuleNotFoundError: No module named 'a_module_that_is_missing'",
    "greedy": "used more than 191 MiB of memory",
    "sleepy": "failed differently: ",
    "damaged": "uninstallable: ",
    "unmet": "unresolvable: ",
}


def small():
    return (
        f'timeout = 2\nmemory = "200 MB"\n[tool.harness.signature]\nexception = "RuntimeError"\nmessage = "{MESSAGE}"\n'
    )


@pytest.mark.parametrize("fault", FAULTS)
def test_a_release_that_fails_differently_is_skipped_with_a_reason(harness, write_repro, fault):
    write_repro(fault, tool=small())
    ended = bisect_once(harness, fault, "--good", "1.0", "--bad", "1.6", "--lanes", "1", "--json")
    answer = ended.json
    assert (ended.code, answer["status"]) == (0, "found")
    assert (answer["last_good"], answer["first_bad"], answer["suspects"]) == ("1.4", "1.5", ["1.5"])
    assert verdicts(answer)["1.3"] == "skip"
    assert SKIPPED[fault] in reason(answer, "1.3")


# -- asking again


def test_asking_again_works_without_network(harness, write_repro, house, tmp_path):
    write_repro("brittle")
    command = ["brittle", "--good", "1.4", "--bad", "1.7", "--json"]
    with house.served() as url:
        online = harness.with_environ(UV_DEFAULT_INDEX=url, HARNESS_CACHE_DIR=str(tmp_path / "cache"))
        first = bisect_once(online, *command)
    again = bisect_once(online, *command)
    assert first.json["probes"] == len(first.json["steps"])
    assert (again.code, again.json["probes"], again.json["first_bad"]) == (0, 0, "1.6")


def test_the_command_to_type_next_asks_under_the_same_settings(harness, write_repro, tmp_path):
    """What it installs beside the subject, such as a folder, would else be lost."""
    write_repro("brittle")
    folder = tmp_path / "my steady"
    folder.mkdir()
    (folder / "steady.py").write_text("", encoding="utf-8")
    words = ["--with", f"steady @ {folder}", "--hold", "none", "--device", "cpu", "--param", "a=1"]
    ended = harness("bisect", "brittle", "--good", "1.5", "--bad", "1.6", *words, "--depth", "release", "--json")
    typed = shlex.split(ended.json["advice"].partition(": ")[2])
    assert typed[:3] == ["harness", "bisect", "brittle"]
    given = list(itertools.pairwise(typed))
    assert all(pair in given for pair in zip(words[::2], words[1::2], strict=True))
