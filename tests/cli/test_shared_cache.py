"""Several harnesses on one cache, and repros that write where they should not: the answer stays right."""

from __future__ import annotations

import random
import time

import pytest
from support import SIGNED, processes_below
from test_interruption import COMMAND, GATED, records, wait_for

APPENDS = """
import brittle, helper
if brittle.NUMBER >= 6:
    with open(helper.__file__, "a") as file:
        file.write("BROKEN = True\\n")
with open(helper.__file__) as file:
    if "BROKEN" in file.read():
        raise RuntimeError("the step is broken")
"""
BISECT = ["bisect", "brittle", "--good", "1.4", "--bad", "1.7", "--depth", "release", "--confirm", "1", "--json"]
WAIT_S = 300


@pytest.fixture
def own(harness, tmp_path):
    return harness.with_environ(HARNESS_CACHE_DIR=str(tmp_path / "cache"))


def test_a_release_that_writes_into_another_package_is_found(own, write_repro):
    """Earlier runs see the original `helper`, and later ones are not good merely for running first."""
    write_repro("brittle", body=APPENDS, dependencies='["brittle", "helper==1.0"]')
    answer = own(*BISECT, "--lanes", "2").json
    assert (answer["status"], answer["last_good"], answer["first_bad"]) == ("found", "1.5", "1.6")
    assert "1.6" in answer["altered"]
    assert "1.5" not in answer["altered"]
    told = own("probe", "brittle_step", "--with", "brittle==1.6", "--with", "helper==1.0")
    assert "thrown away: helper.py" in told.stdout


def test_two_staggered_processes_find_the_same_file(own, write_repro, tmp_path):
    """Both build the same environments, and mixtures of them, at the same time."""
    write_repro("brittle")
    command = ["bisect", "brittle", "--good", "1.5", "--bad", "1.6", "--confirm", "1", "--json"]
    both = []
    for i in range(2):
        both.append(own.start(*command, "--results", f"results-{i}", "--lanes", "2"))
        time.sleep(0.5)
    ends = [process.communicate(timeout=WAIT_S) for process in both]
    assert [process.returncode for process in both] == [0, 0], ends
    assert all('"brittle.py"' in stdout and not stderr for stdout, stderr in ends)
    assert list((tmp_path / "cache" / "building").iterdir()) == []
    assert list((tmp_path / "cache" / "scratch").iterdir()) == []


def test_clean_all_does_not_break_a_running_bisection(own, write_repro, tmp_path):
    """Not even in the middle of a run."""
    write_repro("brittle", body=GATED, tool=f"timeout = 300\n{SIGNED}")
    words = [option for option in BISECT if option not in ("--depth", "release")]
    process = own.start(*words, "--no-fork", "--pass-env", "GATE", GATE=str(tmp_path))
    wait_for((tmp_path / "reached").exists)
    while process.poll() is None:
        ended = own("clean")
        assert (ended.code, ended.stderr) == (0, "")
        (tmp_path / "open").touch()
        time.sleep(0.1)
    stdout, stderr = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, stderr
    assert '"first_bad": "1.6"' in stdout


def test_kill_9_at_random_moments_loses_and_leaves_nothing(own, write_repro, tmp_path):
    write_repro("brittle", body="import brittle, helper\nbrittle.step()\n", dependencies='["brittle", "helper"]')
    moments, seen = random.Random(7), {}
    command = [option for option in COMMAND if option not in ("--pass-env", "GATE", "--confirm", "1")]
    for _ in range(3):
        process = own.start(*command)
        time.sleep(moments.uniform(0.2, 3.0))
        process.kill()
        process.communicate(timeout=WAIT_S)
        wait_for(lambda: not processes_below(tmp_path / "cache"))
        now = records(own.folder)
        assert {name: now.get(name) for name in seen} == seen
        seen = now
    answer = own(*command).json
    assert (answer["status"], answer["first_bad"]) == ("found", "1.6")
    after = records(own.folder)
    assert {name: after[name] for name in seen} == seen
    for folder in ("building", "scratch"):
        assert list((tmp_path / "cache" / folder).iterdir()) == []
    assert not list((tmp_path / "cache").rglob("*.part"))
    assert not list((tmp_path / "cache" / "wheels").rglob(".partial-*"))
