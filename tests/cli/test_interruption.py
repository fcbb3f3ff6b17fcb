"""A harness stopped by any means loses only the current run, and leaves nothing behind."""

from __future__ import annotations

import signal
import time

import pytest
from support import SIGNED, processes_below
from wheelhouse import Wheelhouse

from harness.cli.main import tell
from harness.errors import Interrupted

GATED = """
import os, time, brittle
from pathlib import Path
gate = Path(os.environ["GATE"])
if brittle.NUMBER == 5:
    (gate / "reached").touch()
    while not (gate / "open").exists():
        time.sleep(0.02)
brittle.step()
"""
COMMAND = ["bisect", "brittle", "--good", "1.1", "--bad", "1.9", "--pass-env", "GATE", "--depth", "release"]
COMMAND += ["--confirm", "1", "--no-fork", "--json"]
WAIT_S = 300  # a machine that runs other tests too is slow


def wait_for(condition):
    until = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.002)


def records(folder):
    """Each record, with its identity and times to show that it was written once."""
    found = (folder / "results" / "observations").glob("*/*.json")
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino) for path in found}


def stopped_in_mid_run(harness, write_repro, tmp_path, number):
    """A separate harness process that gets a signal while the release before the break is running."""
    write_repro("brittle", body=GATED, tool=f"timeout = 300\n{SIGNED}")
    gate = tmp_path / "gate"
    gate.mkdir()
    own = harness.with_environ(GATE=str(gate), HARNESS_CACHE_DIR=str(tmp_path / "cache"))
    process = own.start(*COMMAND)
    wait_for(lambda: (gate / "reached").exists())
    process.send_signal(number)
    _, stderr = process.communicate(timeout=WAIT_S)
    wait_for(lambda: not processes_below(tmp_path / "cache"))
    return own, gate, process.returncode, stderr


def goes_on(own, gate, tmp_path):
    """The same command finds the answer and repeats no finished run."""
    before = records(own.folder)
    assert len(before) >= 2
    (gate / "open").touch()
    answer = own(*COMMAND).json
    assert (answer["status"], answer["last_good"], answer["first_bad"]) == ("found", "1.5", "1.6")
    after = records(own.folder)
    assert {name: after[name] for name in before} == before
    cached = {f"{step['observation']}.json" for step in answer["steps"] if step["cached"]}
    assert cached == set(before)
    assert answer["probes"] == len(answer["steps"]) - len(before)
    assert list((tmp_path / "cache" / "scratch").iterdir()) == []


def test_kill_9_during_a_run_leaves_no_process_and_can_resume(harness, write_repro, tmp_path):
    own, gate, code, _ = stopped_in_mid_run(harness, write_repro, tmp_path, signal.SIGKILL)
    assert code == -signal.SIGKILL
    goes_on(own, gate, tmp_path)


def test_ctrl_c_stops_at_once_and_says_how_to_resume(harness, write_repro, tmp_path):
    own, gate, code, stderr = stopped_in_mid_run(harness, write_repro, tmp_path, signal.SIGINT)
    assert code == 130
    assert "run the same command again" in stderr
    assert "Traceback" not in stderr
    goes_on(own, gate, tmp_path)


MIXED = """
import os, time
from pathlib import Path
from shop import left, right
if left.NEW != right.NEW:
    Path(os.environ["GATE"]).touch()
    time.sleep(300)
if left.NEW:
    raise RuntimeError("the step is broken")
"""


def test_ctrl_c_below_the_package_tells_what_is_proved(harness, write_repro, tmp_path):
    house = Wheelhouse(tmp_path / "planted")
    for day, new in enumerate((False, True), 1):
        files = {f"shop/{name}.py": f"NEW = {new}\n" for name in ("left", "right", "other")}
        house.add("shop", f"1.{day}", files={"shop/__init__.py": "", **files}, uploaded=f"2024-01-0{day}T12:00:00Z")
    write_repro("shop", body=MIXED, tool=f"timeout = 300\n{SIGNED}\n[tool.harness.subjects.shop]\n")
    gate = tmp_path / "reached"
    own = harness.with_environ(**house.environ, GATE=str(gate), HARNESS_CACHE_DIR=str(tmp_path / "cache"))
    process = own.start("bisect", "shop", "--good", "1.1", "--bad", "1.2", "--pass-env", "GATE")
    wait_for(gate.exists)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=WAIT_S)
    assert process.returncode == 130
    assert "the culprit package is proved: shop 1.1 -> 1.2" in " ".join(stderr.split())
    assert "--depth package" in stderr


def test_kill_9_during_a_build_leaves_no_partial_environment_in_use(harness, write_repro, tmp_path):
    write_repro("brittle")
    cache = tmp_path / "cache"
    own = harness.with_environ(HARNESS_CACHE_DIR=str(cache))
    command = ["bisect", "brittle", "--good", "1.4", "--bad", "1.7", "--depth", "release", "--json"]
    building = cache / "building"
    process = own.start(*command)
    wait_for(lambda: building.is_dir() and any(path.is_dir() for path in building.iterdir()))
    process.kill()
    process.communicate(timeout=WAIT_S)
    wait_for(lambda: not processes_below(cache))
    answer = own(*command).json
    assert (answer["status"], answer["first_bad"]) == ("found", "1.6")
    for environment in (cache / "environments").iterdir():
        assert list(environment.glob("lib/python*/site-packages/brittle.py"))
        assert (cache / "records" / f"{environment.name}.json").is_file()


@pytest.mark.parametrize("message", ["stopped", "stopped; finished runs are kept"])
def test_ctrl_c_is_told_in_one_sentence(capsys, message):
    tell(Interrupted(message, hint="run the same command again to continue"))
    told = capsys.readouterr().err
    assert told == "stopped: finished runs are kept\n  run the same command again to continue\n"
