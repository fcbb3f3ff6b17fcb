"""What the terminal shows of an answer."""

from __future__ import annotations

import io
import re

import pytest
from answers import ANSWER, BAD_RUN, COMMIT, GOOD_RUN, HOSTILE_MARKS, REVERTED, down_to_commit
from attrs import evolve
from support import changed, make_answer

from harness.asking.answer import Status
from harness.model.culprit import Evidence
from harness.terminal.answer import print_answer
from harness.terminal.console import Console, print_head, print_text


def printed(answer, **options) -> str:
    out = io.StringIO()
    print_answer(Console(file=out, **options), answer, "results")
    return out.getvalue()


def test_evidence_names_the_removed_name_and_its_file():
    evidence = Evidence("removed-name", "shop.sell", "shop.sell was in 1.1 (shop/till.py:7) and was removed in 1.2")
    (line,) = [
        line for line in printed(changed(ANSWER, evidence=(evidence,)), width=200).splitlines() if "evid" in line
    ]
    assert "shop.sell" in line
    assert "shop/till.py:7" in line


def test_the_head_says_how_to_work_around_it():
    lines = printed(changed(ANSWER, constraints=("shop<1.2",)), width=200).splitlines()
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
    answer = changed(
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


def test_the_head_and_the_proofs_of_one_culprit_come_once():
    text = printed(ANSWER, width=200)
    lines = [line.strip() for line in text.splitlines()]
    assert lines[1:4] == [
        "Last good   shop 1.1",
        "First bad   shop 1.2",
        "Culprit     shop 1.2, shop/money.py, lines 10-11 of sell",
    ]
    assert "proved    shop: 1.1 is good, 1.2 is bad" in lines
    assert lines.count(f"proved    {REVERTED.sentence}: good") == 1
    assert "recognised by: ValueError" in lines
    assert "4 runs of 4 releases, 1 known already; 0 runs to find the culprit; 0 s on cpu; records in results" in lines


def test_two_culprits_between_two_worlds_are_each_printed_with_their_releases_and_runs():
    """A second failure with the same culprit does not repeat the details."""
    tools = make_answer("tools", last_good=None, first_bad="2.0", suspects=("2.0",), sides=(GOOD_RUN, BAD_RUN))
    (first,), (second,) = ANSWER.failures, tools.failures
    failures = (evolve(first, tests=("t::a",)), evolve(second, tests=("t::b",)), evolve(first, tests=("t::c",)))
    answer = evolve(
        ANSWER,
        asked=evolve(ANSWER.asked, subject=""),
        failures=failures,
        constraints=("shop<1.2", "tools<2"),
        constraints_verified=True,
        flaky=("t::d",),
        ends=(GOOD_RUN, BAD_RUN),
        probes=12,
    )
    lines = [line.strip() for line in printed(answer, width=200).splitlines()]
    assert [line for line in lines if line.startswith("Culprit")] == [
        "Culprit     shop 1.2, shop/money.py, lines 10-11 of sell",
        "Culprit     tools 2.0",
    ]
    assert "Workaround  shop<1.2 tools<2 (a run with them passed)" in lines
    assert not any(line.startswith("Last good") for line in lines)
    assert lines.count("proved    shop: 1.1 is good, 1.2 is bad") == 2
    assert "proved    tools: (absent) is good, 2.0 is bad" in lines
    assert [line for line in lines if line.startswith("t::")] == ["t::a: ValueError", "t::c: ValueError"]
    assert lines.count("see it again:") == 2
    assert "flaky: t::d" in lines
    assert any(line.startswith("12 runs; ") for line in lines)


def test_a_release_that_could_not_be_told_apart_is_among_the_suspects():
    answer = changed(ANSWER, status=Status.INCONCLUSIVE, suspects=("1.2", "1.3"), culprit=None)
    lines = printed(answer, width=200).splitlines()
    assert "Suspects    1.2 and 1.3" in lines
    assert not any(line.startswith("Culprit") for line in lines)


def test_a_fix_is_called_one():
    answer = changed(
        ANSWER, status=Status.FIXED, last_good=None, first_bad=None, last_bad="1.1", first_good="1.2", suspects=("1.2",)
    )
    lines = printed(answer, width=200).splitlines()
    assert lines[1:3] == ["Last bad    shop 1.1", "Fixed in    shop 1.2"]
    assert lines[3].startswith("The fix     shop 1.2, shop/money.py")
    assert "  proved    shop: 1.1 is bad, 1.2 is good" in lines
