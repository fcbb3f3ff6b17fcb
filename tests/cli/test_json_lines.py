"""`harness bisect --json-lines`: a client that knows only the schema; and what a coding agent gets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

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
    # The rows of the terminal, which leaves out what was shown before.
    drawn = [f"{line['word']:<7}  {line['label']}" for line in steps if line["event"] == "judged"]
    printed = harness(*ASKED, "--results", "other").stderr.splitlines()
    judged = [row for row in printed if row.startswith(("good ", "bad ", "skipped "))]
    assert judged
    assert all(any(row.startswith(text) for text in drawn) for row in judged if " runs" not in row)


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
