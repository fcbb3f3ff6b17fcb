"""`harness history` on tiny releases: what it writes, interruption and resuming."""

from __future__ import annotations

import json
import re
import signal
import time

from support import SIGNED, processes_below

WAIT_S = 60
BODY = """
import os, wavering
print(os.environ["PLACE"])
try:
    wavering.step()
except RuntimeError as error:
    raise RuntimeError(f"{error} at {os.environ['PLACE']}")
"""


def test_pages_and_a_record_are_written_without_the_value_of_a_passed_variable(harness, write_repro):
    write_repro("wavering", body=BODY)
    words = ("wavering", "--from", "1.1", "--to", "1.5", "--max-gap", "1", "--pass-env", "PLACE")
    ended = harness("history", *words, PLACE="an unlucky place")
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
        assert "an unlucky place" not in text


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
