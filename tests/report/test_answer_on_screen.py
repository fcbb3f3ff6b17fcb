"""What the terminal shows of an answer."""

from __future__ import annotations

import io
import re

import pytest
from answers import ANSWER, COMMIT, HOSTILE_MARKS, down_to_commit
from attrs import evolve

from harness.model.evidence import Evidence
from harness.terminal.answer import print_answer
from harness.terminal.console import Console, print_head, print_text


def printed(answer, **options) -> str:
    out = io.StringIO()
    print_answer(Console(file=out, **options), answer, "results")
    return out.getvalue()


def test_evidence_names_the_removed_name_and_its_file():
    evidence = Evidence("removed-name", "shop.sell", "shop.sell was in 1.1 (shop/till.py:7) and was removed in 1.2")
    (line,) = [line for line in printed(evolve(ANSWER, evidence=(evidence,)), width=200).splitlines() if "evid" in line]
    assert "shop.sell" in line
    assert "shop/till.py:7" in line


def test_the_head_says_how_to_work_around_it():
    lines = printed(evolve(ANSWER, constraint="shop<1.2"), width=200).splitlines()
    assert "Workaround  shop<1.2" in lines


@pytest.mark.parametrize("width", [40, 80])
def test_nothing_breaks_inside_a_word(width):
    """A terminal breaks long lines anywhere, so no line may be longer, unless it is one word."""
    words = "shop 1.2 broke it, although nobody would have thought that the price could be negative: " * 3
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None)
    print_head(console, [("Culprit", f"{words} /a/very/long/path{'/below' * 20}.py")])
    print_text(console, f"  {words}")
    lines = out.getvalue().splitlines()
    assert [line for line in lines if len(line) > width and "/below" not in line] == []
    assert " ".join(out.getvalue().split()).count(" ".join(words.split())) == 2
    assert all(line.startswith(" " * 12) for line in lines[1:3])


def test_a_log_has_each_sentence_on_one_line():
    out = io.StringIO()
    print_text(Console(file=out, width=40), "a word " * 30)
    assert len(out.getvalue().splitlines()) == 1


def test_no_escape_of_a_stranger_reaches_the_terminal():
    """From a commit's subject and author, the index's reason, or a message."""
    hostile = evolve(COMMIT, subject=HOSTILE_MARKS, author=HOSTILE_MARKS)
    answer = evolve(
        ANSWER,
        sentence=f"{HOSTILE_MARKS} broke it",
        culprit=down_to_commit(hostile),
        left_out={"1.3": f"yanked: {HOSTILE_MARKS}"},
        evidence=(Evidence("removed-name", HOSTILE_MARKS, HOSTILE_MARKS),),
        advice=HOSTILE_MARKS,
        drift={"1.1": (HOSTILE_MARKS,)},
    )
    text = printed(answer, width=80, force_terminal=True)
    kept = re.sub(r"\x1b\[[\d;]*m", "", text)
    assert [mark for mark in "\x1b\x07\x9b\u202e\u2066\u200f" if mark in kept] == []
    assert "evil" in kept
