"""`--timeout`: how long one run may take, told where it was too short."""

from __future__ import annotations

import json

import pytest
from support import SIGNED

from harness.api import probe
from harness.errors import UserMistake
from harness.settings import Settings

SLOW = "import time\ntime.sleep(1.5)\n"


@pytest.fixture
def slow(harness):
    path = harness.folder / "slow.py"
    path.write_text(SLOW, encoding="utf-8")
    return "python slow.py"


def probed(harness, *words):
    return harness("probe", *words, "--json").json


def test_a_command_runs_as_long_as_it_is_given(harness, slow):
    stopped = probed(harness, "--run", slow, "--timeout", "1")
    assert stopped["outcome"] == "timed-out"
    assert stopped["detail"] == "timed out after 1 s (--timeout 2 gives it more)"
    assert probed(harness, "--run", slow, "--timeout", "1")["started"] == stopped["started"]  # from the store
    longer = probed(harness, "--run", slow, "--timeout", "60")
    assert longer["outcome"] == "completed"
    # What ran to its end says the same under any other limit.
    assert probed(harness, "--run", slow)["started"] == longer["started"]


def test_it_takes_the_place_of_a_repros_own_limit(harness, write_repro):
    write_repro("brittle", tool=f"timeout = 1\n{SIGNED}", body=SLOW)
    words = ("brittle_step", "--with", "brittle==1.2")
    assert "(--timeout 2 gives it more)" in probed(harness, *words)["detail"]
    assert probed(harness, *words, "--timeout", "60")["outcome"] == "completed"


def test_a_hang_that_is_the_bug_wants_no_longer_limit(harness, write_repro):
    tool = "timeout = 1\n[tool.harness.signature]\nhang = true\n"
    write_repro("brittle", tool=tool, body=SLOW)
    ended = harness("probe", "brittle_step", "--with", "brittle==1.2")
    assert ended.stdout.startswith("bad timed out after 1 s")
    assert "--timeout" not in ended.stdout


def test_a_search_runs_under_it_and_its_answer_repeats_it(harness, write_repro):
    write_repro("brittle", tool=SIGNED, body="import time, brittle\ntime.sleep(1.5)\nbrittle.step()\n")
    words = ("bisect", "brittle", "--good", "1.5", "--bad", "1.6", "--depth", "release", "--confirm", "0", "--json")
    stopped = harness(*words, "--timeout", "1")
    assert stopped.code != 0
    assert "(--timeout 2 gives it more)" in stopped.stdout + stopped.stderr
    found = harness(*words, "--timeout", "60").json
    assert found["first_bad"]
    assert "--timeout 60" in found["advice"]


def test_cells_of_a_matrix_run_under_it(harness, write_repro):
    write_repro("brittle", tool=SIGNED, body=SLOW)
    path = harness.folder / "matrices" / "one.toml"
    path.parent.mkdir()
    text = '[axes]\nrepro = "brittle_step"\n[axes.packages]\nbrittle = ["1.2"]\n'
    path.write_text(text, encoding="utf-8")
    (row,) = harness("matrix", path, "--json", "--timeout", "1").json["cells"]
    assert "timed out after 1 s (--timeout 2 gives it more)" in json.dumps(row)
    (row,) = harness("matrix", path, "--json", "--timeout", "60").json["cells"]
    assert row["verdict"] == "good"


def test_the_api_takes_it_too(harness, write_repro, monkeypatch):
    for name, value in harness.environ.items():
        monkeypatch.setenv(name, value)
    write_repro("brittle", tool=SIGNED, body=SLOW)
    run = probe("brittle_step", "brittle==1.2", settings=Settings(timeout=1.0))
    assert run.observation.detail == "timed out after 1 s (--timeout 2 gives it more)"


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf"])
def test_a_limit_that_is_none_is_refused(harness, slow, seconds):
    ended = harness("probe", "--run", slow, "--timeout", seconds)
    assert ended.code == 2
    assert "Traceback" not in ended.stderr
    with pytest.raises(UserMistake):
        Settings(timeout=float(seconds))
