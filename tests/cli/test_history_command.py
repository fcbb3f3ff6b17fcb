"""`harness history` on tiny releases: every window, exit codes, stored results, interruption and resuming."""

from __future__ import annotations

import json
import re
import signal
import time

import pytest
from support import SIGNED, processes_below

KEYS = {"schema", "subject", "status", "windows", "unseen", "signature", "steps", "releases", "stride", "tried"} | {
    "probes", "known", "wall_s", "sentence", "notes", "advice", "repro", "device", "python", "as_of", "drift"
}  # fmt: skip
WAIT_S = 60


@pytest.fixture
def wavering(harness, write_repro):
    write_repro("wavering")
    return ["wavering", "--from", "1.0", "--to", "1.6", "--max-gap", "3"]


def test_json_is_complete_and_alone_on_stdout(harness, wavering):
    ended = harness("history", *wavering, "--json")
    found = ended.json
    assert (ended.code, ended.stderr, found["schema"], found["status"]) == (0, "", 1, "broken")
    assert found.keys() >= KEYS
    (window,) = found["windows"]
    assert [window[key] for key in ("last_good", "first_bad", "last_bad", "fixed_in")] == ["1.1", "1.2", "1.4", "1.5"]
    assert window["certain"] is True
    assert [row["release"] for row in found["releases"]] == [f"1.{i}" for i in range(7)]
    again = harness("history", *wavering, "--json").json
    assert again["windows"] == found["windows"]
    assert again["probes"] <= 1 < again["known"]  # two lanes may end in another order: another side is repeated then


def test_the_screen_shows_the_windows_and_the_choices(harness, wavering):
    ended = harness("history", *wavering[:-2], "--lanes", "3")
    assert ended.code == 0
    assert "looking for every window in which wavering_step was broken: wavering 1.0 to 1.6, 7 releases" in ended.stderr
    assert "(--device changes it)" in ended.stderr
    assert "runs left" in ended.stderr
    assert "broken 1.2 to 1.4, good from 1.5." in ended.stdout
    assert "recognised by: RuntimeError" in ended.stdout
    assert "harness bisect wavering --good 1.1 --bad 1.2" in ended.stdout
    assert re.search(r"\[G\wBbBG\w\]  1\.0 to 1\.6|\[G\wBBBG\w\]  1\.0 to 1\.6", ended.stdout)


def test_pages_and_a_record_are_written(harness, wavering):
    ended = harness("history", *wavering)
    paths = [harness.folder / path for path in re.findall(r"report: (\S+)", ended.stdout)]
    assert [path.suffix for path in paths] == [".md", ".html"]
    page = paths[1].read_text(encoding="utf-8")
    assert "broken 1.2 to 1.4, good from 1.5." in page
    assert "the step is broken" in page
    (record,) = (harness.folder / "results" / "histories").iterdir()
    kept = json.loads(record.read_text(encoding="utf-8"))
    assert (kept["schema"], kept["id"], kept["status"]) == (1, record.stem, "broken")
    assert record.stem in paths[1].name
    for text in (page, paths[0].read_text(encoding="utf-8"), record.read_text(encoding="utf-8")):
        assert str(harness.folder) not in text


@pytest.mark.parametrize(
    ("arguments", "code", "status"),
    [
        (["brittle", "--to", "1.2"], 1, "never-broken"),
        (["edgy", "--from", "1.1", "--to", "1.3"], 3, "unsure"),
        (["edgy", "--from", "1.2", "--to", "1.2"], 3, "unsure"),
    ],
)
def test_the_exit_code_tells_the_outcome(harness, write_repro, arguments, code, status):
    write_repro(arguments[0])
    ended = harness("history", *arguments, "--max-gap", "1", "--json")
    assert (ended.code, ended.json["status"]) == (code, status)


def test_the_value_of_a_passed_variable_is_stored_nowhere(harness, write_repro):
    write_repro(
        "brittle", body="import os, brittle\nprint(os.environ['PLACE'])\nraise ValueError(os.environ['PLACE'])\n"
    )
    harness("history", "brittle", "--to", "1.0", "--pass-env", "PLACE", PLACE="an unlucky place")
    kept = [*(harness.folder / "results" / "reports").iterdir(), *(harness.folder / "results" / "histories").iterdir()]
    assert len(kept) == 3
    assert not [path for path in kept if "an unlucky place" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--from", "1.8", "--to", "1.3"], "--from 1.8 is newer than --to 1.3"),
        (["--from", "1.99"], "no such release"),
        (["--to", "newest"], "'newest' is not a version"),
        (["--max-gap", "0"], "--max-gap"),
        (["--as-of", "yesterday"], "--as-of takes era, none or a date"),
        (["--repro", "nothing"], "no repro named 'nothing'"),
    ],
)
def test_a_mistake_gives_one_sentence_and_exit_code_2(harness, write_repro, arguments, words):
    write_repro("brittle")
    ended = harness("history", "brittle", *arguments)
    assert (ended.code, ended.stdout) == (2, "")
    assert words in ended.stderr
    assert "Traceback" not in ended.stderr


def test_ctrl_c_stops_at_once_and_the_same_command_resumes(harness, write_repro, tmp_path):
    body = """
    import os, time, brittle
    from pathlib import Path
    gate = Path(os.environ["GATE"])
    if brittle.NUMBER == 6:
        (gate / "reached").touch()
        while not (gate / "open").exists():
            time.sleep(0.02)
    brittle.step()
    """
    write_repro("brittle", body=body, tool=f"timeout = 300\n{SIGNED}")
    gate = tmp_path / "gate"
    gate.mkdir()
    own = harness.with_environ(GATE=str(gate), HARNESS_CACHE_DIR=str(tmp_path / "cache"))
    command = ["history", "brittle", "--to", "1.8", "--max-gap", "4", "--pass-env", "GATE", "--json"]
    process = own.start(*command)
    _wait_for(lambda: (gate / "reached").exists())
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=WAIT_S)
    assert (process.returncode, stdout) == (130, "")
    assert "run the same command again" in stderr
    _wait_for(lambda: not processes_below(tmp_path / "cache"))
    finished = {path.stem for path in (own.folder / "results" / "observations").glob("*/*.json")}
    assert finished
    (gate / "open").touch()
    found = own(*command).json
    assert {step["observation"] for step in found["steps"] if step["cached"]} == finished
    assert (found["windows"][0]["last_good"], found["windows"][0]["first_bad"]) == ("1.5", "1.6")


def _wait_for(condition):
    until = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.002)
