"""`harness minimize` takes out what a repro does not need to fail as its signature says."""

from __future__ import annotations

import pytest
from attrs import define, field
from support import SIGNED

from harness.drafting.smaller import Smaller, removed
from harness.model import Verdict

LONG = """
import json
import os

import brittle


def unused(number):
    return number + 1


def step(times):
    for _ in range(times):
        print("a line")
        brittle.step()
    return json.dumps(os.environ.get("HOME"))


print("before")
unused(1)
step(2)
"""


@define
class ByText:
    """Judges a source by a word in it, and counts."""

    word: str
    seen: list[str] = field(factory=list)

    def __call__(self, source: str) -> Verdict:
        """Bad if the word is in it."""
        self.seen.append(source)
        return Verdict.BAD if self.word in source else Verdict.GOOD


def test_only_the_statement_that_fails_is_left():
    judge = ByText("fails()")
    source = "def fails():\n    a = 1\n    raise RuntimeError(a)\n\nx = 1\nif x:\n    y = 2\n    fails()\nprint(y)\n"
    search = Smaller(source, judge)
    search.reduce(lambda _: None)
    assert "print" not in search.source
    assert "y = 2" not in search.source
    assert "fails()" in search.source
    compile(search.source, "smaller", "exec")
    assert len(judge.seen) == search.runs
    assert any(line.startswith("-print") for line in removed(source, search.source))


def test_what_cannot_run_is_never_run():
    judge = ByText("last")
    Smaller("first = 1\nsecond = first\nlast = second\n", judge).reduce(lambda _: None)
    for source in judge.seen:
        assert "second = first" not in source or "first = 1" in source


def test_a_repro_gets_smaller_and_still_fails(harness, write_repro):
    path = write_repro("brittle", body=LONG, tool=SIGNED)
    ended = harness("minimize", f"./{path.relative_to(harness.folder)}", "--with", "brittle==1.8")
    assert ended.code == 0, ended.stderr
    small = path.with_name("brittle_step_min.py").read_text("utf-8")
    assert "brittle.step()" in small
    assert "unused" not in small
    assert "a line" not in small
    assert '-print("before")' in ended.stdout
    again = harness("probe", "./repros/brittle_step_min.py", "--with", "brittle==1.8")
    assert again.code == 1


@pytest.mark.parametrize(("tool", "with_", "words"), [("", "1.8", "no signature"), (SIGNED, "1.0", "does not show")])
def test_a_repro_without_its_bug_is_refused(harness, write_repro, tool, with_, words):
    path = write_repro("brittle", tool=tool)
    ended = harness("minimize", str(path), "--with", f"brittle=={with_}")
    assert ended.code == 2
    assert words in ended.stderr
