"""`--json-lines`: a client that knows only the schema follows questions; and what a coding agent gets."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from support import SIGNED
from test_interruption import GATED, wait_for

from harness.terminal import stream

SCHEMA = Draft202012Validator(json.loads(Path(stream.__file__).with_name("stream.schema.json").read_text("utf-8")))
ASKED = ("bisect", "counter", "--repro", "counter_step", "--lanes", "1")


@pytest.fixture
def counter(house, write_repro):
    """Four releases; from 1.2 on it counts wrong."""
    for number in range(4):
        files = {"counter.py": f"def count():\n    return {1 if number < 2 else 2}\n"}
        house.add("counter", f"1.{number}", files=files, uploaded=f"2024-0{number + 1}-01T12:00:00Z")
    write_repro("counter", body="import counter\nassert counter.count() == 1\n", tool="")


def lines_of(ended):
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    for line in lines:
        SCHEMA.validate(line)
    return lines


SHORT = ("--depth", "release", "--confirm", "1", "--lanes", "1")
TESTS = "import brittle, unittest\n\nclass T(unittest.TestCase):\n    def test_step(self):\n        brittle.step()\n"
MATRIX = """
[axes]
repro = "brittle_step"
[axes.packages]
brittle = ["1.4", "1.6"]
"""
QUESTIONS = [
    ("bisect", "brittle", "--good", "1.4", "--bad", "1.7", *SHORT),
    ("bisect", "brittle", "--find-fix", "--good", "1.11", "--bad", "1.8", *SHORT),
    ("bisect", "--run", "python -m unittest -q test_it", "--good", "old.txt", "--bad", "new.txt", *SHORT),
    ("history", "brittle", "--from", "1.4", "--to", "1.11", "--lanes", "1"),
    ("matrix", "tiny.toml", "--lanes", "1"),
    ("pin", "brittle_step", "--good", "2023-05-15", "--bad", "2023-07-15", "--lanes", "1"),
]


@pytest.fixture
def asked(harness, write_repro):
    """The command in a folder with what the questions name."""
    write_repro("brittle")
    files = {"test_it.py": TESTS, "requirements.txt": "brittle\n", "tiny.toml": MATRIX}
    files |= {"old.txt": "brittle==1.4\n", "new.txt": "brittle==1.7\n"}
    for name, text in files.items():
        (harness.folder / name).write_text(text, encoding="utf-8")
    return harness


@pytest.mark.parametrize("words", QUESTIONS, ids=lambda words: " ".join(words[:3]))
def test_a_client_that_knows_only_the_schema_draws_what_the_terminal_shows(asked, words):
    ended = asked(*words, "--json-lines")
    *steps, last = lines_of(ended)
    assert (last["event"], last["exit_code"]) == ("answer", ended.code), last
    assert not ended.stderr
    drawn = [f"{line['word']:<7}  {line['label']}" for line in steps if line["event"] == "judged"]
    shown = asked(*words, "--results", "other")
    assert shown.code == ended.code
    rows = [row for row in shown.stderr.splitlines() if row.startswith(("good ", "bad ", "skipped "))]
    assert len(rows) > 1
    waiting = iter(drawn)  # in the same order; repetitions are one row
    assert all(any(row.startswith(text) for text in waiting) for row in rows if " runs" not in row), (rows, drawn)
    for label, text in last["answer"].get("head", ()):
        assert any(
            row.split()[: len(label.split())] == label.split() and text in row for row in shown.stdout.splitlines()
        )


def test_a_client_stops_a_question_and_goes_on_where_it_stopped(asked, write_repro, tmp_path):
    write_repro("brittle", body=GATED, tool=f"timeout = 300\n{SIGNED}")
    asked = asked.with_environ(GATE=str(tmp_path))
    words = (*QUESTIONS[0], "--no-fork", "--pass-env", "GATE", "--json-lines")
    process = asked.start(*words)
    lines = []
    for line in process.stdout:
        lines.append(json.loads(line))
        if sum(line["event"] == "judged" for line in lines) == 2:
            wait_for((tmp_path / "reached").exists)
            process.send_signal(signal.SIGINT)
            break
    lines += [json.loads(line) for line in process.communicate()[0].splitlines()]
    for line in lines:
        SCHEMA.validate(line)
    stopped = lines[-1]
    assert (process.returncode, stopped["event"], stopped["exit_code"], stopped["retry"]) == (130, "error", 130, True)
    finished = {line["observation"] for line in lines if line["event"] == "judged"}
    (tmp_path / "open").touch()
    *steps, last = lines_of(asked(*words))
    again = {line["observation"]: line["known"] for line in steps if line["event"] == "judged"}
    assert finished
    assert all(again[key] for key in finished)
    assert not all(again.values())
    assert last["answer"]["first_bad"] == "1.6"


def test_the_stream_has_what_the_terminal_shows_and_the_answer_last(harness, counter):
    ended = harness(*ASKED, "--json-lines")
    *steps, last = lines_of(ended)
    assert (last["event"], last["exit_code"], ended.code) == ("answer", 0, 0), last
    assert not ended.stderr
    assert [line["at"] for line in steps] == sorted(line["at"] for line in steps)
    assert {line["event"] for line in steps} >= {"search", "signature", "level", "preparing", "started", "judged"}
    answer = harness(*ASKED, "--json").json
    same = ("status", "sentence", "head", "first_bad", "failures", "constraints", "verified_by", "repro")
    assert {key: last["answer"][key] for key in same} == {key: answer[key] for key in same}
    assert last["answer"].keys() == answer.keys()
    stored = json.loads((harness.folder / last["files"]["answer"]).read_text("utf-8"))
    assert stored["answer"]["sentence"] == answer["sentence"]


@pytest.mark.parametrize(
    ("words", "exit_code", "error"),
    [
        (("--good", "9"), 2, "counter 9: no such release"),
        (("--godo", "1.0"), 2, "--godo"),
        (("--json",), 2, "--json and --json-lines"),
        (("--ask",), 2, "--ask needs a terminal"),
    ],
)
def test_an_error_is_the_last_line_of_the_stream(harness, counter, words, exit_code, error):
    ended = harness(*ASKED, "--json-lines", *words)
    last = lines_of(ended)[-1]
    assert (last["event"], last["exit_code"], ended.code) == ("error", exit_code, exit_code), ended.stderr
    assert error in last["error"]
    assert last["retry"] is False


def test_an_agent_gets_a_last_line_that_says_what_was_found(harness, counter):
    ended = harness(*ASKED, CLAUDECODE="1")
    what, _, record = ended.stdout.splitlines()[-1].rpartition(" answer=")
    assert what == "harness: found counter 1.2 exit=0"
    assert (harness.folder / record).is_file()
    assert not harness(*ASKED).stdout.splitlines()[-1].startswith("harness:")
    assert harness(*ASKED, "--good", "9", CLAUDECODE="1").stderr.splitlines()[-1] == "harness: error exit=2"
