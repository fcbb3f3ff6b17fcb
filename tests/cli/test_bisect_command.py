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


def test_the_bounds_of_the_repro_are_used_and_shown(harness, write_repro):
    tool = '[tool.harness.subjects.brittle]\ngood = "1.4"\nbad = "1.7"\n'
    write_repro("brittle", tool=tool)
    ended = bisect_once(harness, "brittle")
    assert ended.code == 0
    assert "good end: 1.4 (from the repro; --good changes it)" in ended.stderr
    assert "bad end: 1.7 (from the repro; --bad changes it)" in ended.stderr
    lines = ended.stdout.splitlines()
    assert {"Last good   brittle 1.5", "First bad   brittle 1.6"} <= set(lines)
    assert "harness probe --again" in ended.stdout
    assert "installed differently" not in ended.stdout  # nothing but what the head names


def test_without_a_good_end_the_search_steps_back(harness, write_repro):
    write_repro("brittle")
    answer = bisect_once(harness, "brittle", "--bad", "1.9", "--json").json
    assert (answer["status"], answer["last_good"], answer["first_bad"]) == ("found", "1.5", "1.6")
    assert answer["steps"][0]["release"] == "1.9"


def test_a_fix_is_found(harness, write_repro):
    write_repro("brittle")
    ended = bisect_once(harness, "brittle", "--find-fix", "--bad", "1.7", "--json")
    answer = ended.json
    assert ended.code == 0
    assert (answer["status"], answer["last_bad"], answer["first_good"]) == ("fixed", "1.9", "1.10")
    assert answer["suspects"] == ["1.10"]
    assert "first_bad" not in answer


def test_a_bug_without_a_fix_is_reported_as_unfixed(harness, write_repro):
    write_repro("stale")
    ended = bisect(harness, "stale", "--find-fix", "--json")
    assert (ended.code, ended.json["status"]) == (1, "not-fixed")
    assert {"last_bad", "first_good"} <= ended.json.keys()


def test_a_bug_in_every_release_is_not_a_regression(harness, write_repro):
    write_repro("stale")
    ended = bisect(harness, "stale", "--json")
    answer = ended.json
    assert (ended.code, answer["status"], answer["suspects"]) == (1, "not-a-regression", [])
    assert answer["first_bad"] is None
    assert "1.0" in answer["sentence"]


def test_it_says_what_to_try_if_nothing_fails(harness, write_repro):
    write_repro("brittle")
    ended = bisect(harness, "brittle", "--good", "1.0", "--bad", "1.3", "--json")
    answer = ended.json
    assert (ended.code, answer["status"]) == (1, "no-failure")
    assert "passes with brittle 1.3" in answer["sentence"]
    assert "--find-fix" in answer["advice"]
    assert "older" in answer["advice"]
    assert 0.5 ** answer["probes"] < 0.01  # a bug that fails half the time passes more than once, too


# -- how the bug is recognised


def test_without_a_signature_the_bad_end_gives_one(harness, write_repro):
    write_repro("brittle", tool="")
    answer = bisect_once(harness, "brittle", "--good", "1.3", "--bad", "1.8", "--json").json
    assert (answer["status"], answer["first_bad"]) == ("found", "1.6")
    assert answer["signature"] == {"exception": "RuntimeError", "message": MESSAGE, "captured": True}


def test_a_metric_out_of_bounds_is_the_bug(harness, write_repro):
    body = """
    import json, os, brittle
    with open(os.environ["HARNESS_METRICS"], "w") as file:
        json.dump({"loss": brittle.LOSS}, file)
    """
    write_repro("brittle", body=body, tool='[tool.harness.signature]\nmetric = "loss"\nabove = 2.0\n')
    answer = bisect(harness, "brittle", "--good", "1.3", "--bad", "1.8", "--json").json
    assert (answer["status"], answer["first_bad"]) == ("found", "1.6")
    assert reason(answer, "1.6") == "loss = 2.5, above 2"
    assert reason(answer, "1.5") == "loss = 1"


def test_a_command_is_judged_by_its_exit_code(harness):
    (harness.folder / "check.py").write_text(
        "import brittle, sys\nsys.exit(125 if brittle.NUMBER == 4 else 0 if brittle.NUMBER < 6 else 7)\n"
    )
    command = ["brittle", "--run", "python check.py", "--good", "1.0", "--bad", "1.8", "--json"]
    answer = bisect_once(harness, *command).json
    assert (answer["status"], answer["first_bad"]) == ("found", "1.6")
    assert answer["signature"] == {"exit_code": 7, "captured": True}
    assert verdicts(answer)["1.4"] == "skip"
    (harness.folder / "check.py").write_text("import brittle, sys\nsys.exit(brittle.NUMBER >= 8)\n")
    changed = bisect_once(harness, *command).json
    assert changed["first_bad"] == "1.8"
    assert changed["probes"] == len(changed["steps"])


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


def test_a_lower_confidence_takes_fewer_runs_and_says_so(harness, write_repro):
    write_repro("brittle")
    ends = ["brittle", "--good", "1.0", "--bad", "1.9", "--depth", "release", "--json"]
    sure = bisect(harness, *ends).json
    less = bisect(harness, *ends, "--confidence", "0.8").json
    trusting = bisect(harness, *ends, "--flaky", "--trust-ends", "--confidence", "0.9").json
    assert {answer["first_bad"] for answer in (sure, less, trusting)} == {"1.6"}
    assert less["probes"] < sure["probes"]
    assert 0.8 <= less["confidence"] < 0.99 <= sure["confidence"]
    assert " sure, from " in less["sentence"]
    assert trusting["confidence"] >= 0.9


def test_a_bad_end_that_passes_once_is_run_again(harness, write_repro):
    """The first run of each release passes; that is no reason to report "no failure"."""
    body = """
    import os, brittle
    from pathlib import Path
    seen = Path(os.environ["SEEN"]) / str(brittle.NUMBER)
    if brittle.NUMBER >= 6 and seen.exists():
        brittle.step()
    seen.touch()
    """
    write_repro("brittle", body=body)
    seen = harness.folder / "seen"
    seen.mkdir()
    command = ["brittle", "--good", "1.4", "--bad", "1.7", "--pass-env", "SEEN", "--json"]
    ended = bisect(harness, *command, SEEN=str(seen))
    assert (ended.code, ended.json["status"], ended.json["first_bad"]) == (0, "found", "1.6")
    assert ended.json["rates"]["bad"]["failed"] < ended.json["rates"]["bad"]["runs"]
    assert ended.json["rates"]["good"]["failed"] == 0


def test_a_proof_shared_by_two_levels_is_shown_once(harness, write_repro):
    write_repro("brittle")
    ended = harness("bisect", "brittle", "--good", "1.5", "--bad", "1.6")
    proofs = [line for line in ended.stdout.splitlines() if line.startswith("  proved")]
    assert proofs
    assert len(set(proofs)) == len(proofs)


def test_pre_releases_are_tried_on_request(harness, write_repro):
    write_repro("early")
    without = bisect_once(harness, "early", "--good", "1.0", "--json").json
    assert (without["first_bad"], without["last_good"]) == ("1.2", "1.1")
    assert without["left_out"] == {"1.2rc1": "pre-release (--pre includes it)"}
    including = bisect_once(harness, "early", "--good", "1.0", "--pre", "--json").json
    assert (including["first_bad"], including["last_good"]) == ("1.2rc1", "1.1")
    assert including["left_out"] == {}


def test_a_pre_release_that_is_named_as_an_end_is_tried(harness, write_repro):
    write_repro("early")
    answer = bisect_once(harness, "early", "--good", "1.0", "--bad", "1.2rc1", "--json").json
    assert (answer["first_bad"], answer["last_good"]) == ("1.2rc1", "1.1")


def test_an_end_can_be_spelled_differently(harness, write_repro):
    write_repro("brittle")
    answer = bisect_once(harness, "brittle", "--good", "1.5.0", "--bad", "v1.6+cpu", "--json").json
    assert (answer["first_bad"], answer["last_good"]) == ("1.6", "1.5")


def test_every_excluded_release_has_a_reason(harness, write_repro, interpreter):
    write_repro("mixed")
    answer = bisect_once(harness, "mixed", "--good", "1.0", "--json").json
    assert (answer["first_bad"], answer["last_good"]) == ("1.6", "1.0")
    assert answer["left_out"] == {
        "1.1": "yanked: it deletes files",
        "1.2": f"requires Python >=3.99, this is {interpreter.version}",
        "1.3": f"no wheel for Python {interpreter.version} on this platform",
        "1.4": "no wheel, source only (--build allows building it)",
        "1.5rc1": "pre-release (--pre includes it)",
    }
    plain = bisect_once(harness, "mixed", "--good", "1.0")
    assert "left out: 1.1 (yanked: it deletes files)" in plain.stderr


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


@pytest.mark.parametrize("fault", ["odderror", "damaged", "unmet"])
def test_all_suspects_are_named_if_a_skip_hides_the_change(harness, write_repro, fault):
    name = f"{fault}_hiding"
    write_repro(name, tool=small())
    ended = bisect_once(harness, name, "--good", "1.0", "--bad", "1.4", "--json")
    answer = ended.json
    assert (ended.code, answer["status"]) == (3, "inconclusive")
    assert answer["suspects"] == ["1.2", "1.3"]
    assert (answer["last_good"], answer["first_bad"]) == ("1.1", "1.3")
    assert all(release in answer["sentence"] for release in answer["suspects"])


def test_what_to_do_about_skips_that_hide_the_change(harness, write_repro):
    write_repro("noimport_hiding", tool=small())
    ended = bisect_once(harness, "noimport_hiding", "--good", "1.0", "--bad", "1.4")
    assert "Not installed: a_module_that_is_missing. --with a_module_that_is_missing" in ended.stdout
    assert "Run only the suspects again" not in ended.stdout


def test_a_good_end_that_was_named_and_fails_is_not_called_the_oldest(harness, write_repro):
    write_repro("stale")
    ended = bisect(harness, "stale", "--good", "1.1", "--bad", "1.3")
    assert "Not a regression in stale: 1.1, your good end, fails in the same way." in ended.stdout
    assert "looks further back than 1.1" in ended.stdout


# -- asking again


def test_asking_again_runs_nothing(harness, write_repro):
    write_repro("brittle")
    command = ["brittle", "--good", "1.3", "--bad", "1.8", "--json"]
    first, second = bisect(harness, *command).json, bisect(harness, *command).json
    assert (second["probes"], second["first_bad"]) == (0, "1.6")
    assert all(step["cached"] and step["seconds"] == 0 for step in second["steps"])
    known = {step["observation"] for step in first["steps"]}
    assert known.issuperset(step["observation"] for step in second["steps"])


def test_a_narrower_question_uses_stored_runs(harness, write_repro):
    write_repro("brittle")
    wide = bisect(harness, "brittle", "--good", "1.0", "--bad", "1.9", "--json").json
    narrow = bisect(harness, "brittle", "--good", "1.5", "--bad", "1.6", "--json").json
    assert wide["first_bad"] == narrow["first_bad"] == "1.6"
    assert narrow["probes"] == 0


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
