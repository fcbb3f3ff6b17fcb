"""What the terminal shows of an answer."""

from __future__ import annotations

import io
import re

import pytest
from answers import ANSWER, BAD_RUN, COMMIT, GOOD_RUN, HOSTILE_MARKS, down_to_commit
from attrs import evolve
from support import changed, make_answer

from harness.bisection.answer import Comparison, Status
from harness.model import Signature
from harness.model.boundary import Counts
from harness.model.culprit import Evidence, Region
from harness.terminal.answer import print_answer
from harness.terminal.console import Console, print_head, print_text


def printed(answer, **options) -> str:
    out = io.StringIO()
    print_answer(Console(file=out, **options), answer, "results")
    return out.getvalue()


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
        findings=down_to_commit(hostile),
        left_out={"1.3": f"yanked: {HOSTILE_MARKS}"},
        evidence=(Evidence("removed-name", HOSTILE_MARKS, HOSTILE_MARKS),),
        advice=HOSTILE_MARKS,
        steps=(*ANSWER.steps, evolve(ANSWER.steps[-1], drift=(HOSTILE_MARKS,))),
    )
    text = printed(answer, width=80, force_terminal=True)
    kept = re.sub(r"\x1b\[[\d;]*m", "", text)
    assert [mark for mark in "\x1b\x07\x9b\u202e\u2066\u200f" if mark in kept] == []
    assert "evil" in kept


def test_two_failures_with_one_culprit_name_it_once():
    failures = [evolve(ANSWER.failures[0], tests=(f"t::{n}",)) for n in range(2)]
    answer = evolve(ANSWER, failures=tuple(failures), comparison=Comparison((GOOD_RUN, BAD_RUN), flaky=("t::d",)))
    lines = [line.strip() for line in printed(answer, width=200).splitlines()]
    assert [line for line in lines if line.startswith(("Culprit", "tests", "flaky"))] == [
        "Culprit     shop 1.2 changed sell (shop/money.py, lines 10-11)",
        "tests     t::0",
        "tests     t::1",
        "flaky     t::d",
    ]


def test_proofs_of_a_release_that_breaks_tests_in_several_ways_are_shown_once():
    sides = {"sides": (GOOD_RUN, BAD_RUN), "good_side": Counts(0, 6), "bad_side": Counts(9, 9)}
    answer = make_answer("shop", before="1.1", after="1.2", suspects=("1.2",), **sides)
    failures = [evolve(answer.failures[0], tests=(f"t::{n}",), signature=Signature("ValueError")) for n in range(3)]
    text = printed(evolve(answer, failures=tuple(failures)), width=200)
    assert [text.count(f"tests     t::{n}") for n in range(3)] == [1, 1, 1]
    assert text.count("error     ValueError") == 3
    assert (text.count("good in 6 of 6 runs"), text.count("bad in 9 of 9 runs")) == (1, 1)


def test_what_the_answer_says_is_not_said_again_below_it():
    answer = changed(make_answer("shop"), status=Status.INCONCLUSIVE, note="older packages fail with another error")
    answer = evolve(answer, sentence="Not sure: older packages fail with another error.")
    assert printed(answer, width=200).count("older packages fail") == 1


def test_many_changed_lines_are_not_shown():
    *above, lines = ANSWER.findings
    long = evolve(lines.regions[0], diff="@@ -1 +1,41 @@\n" + "+    return price()\n" * 40)
    answer = changed(ANSWER, findings=(*above, evolve(lines, regions=(long,))))
    assert "+    return price()" not in printed(answer)


def test_the_culprit_is_one_sentence_of_cause_with_the_advice_of_the_release():
    evidence = Evidence(
        "removed-name", "shop.sell", "shop.sell was in 1.1 and was removed in 1.2", advice="Use `shop.trade` instead."
    )
    failure = evolve(ANSWER.failures[0].culprits[0], findings=(), evidence=(evidence,))
    answer = evolve(ANSWER, failures=(evolve(ANSWER.failures[0], culprits=(failure,)),))
    lines = printed(answer, width=200).splitlines()
    assert lines[5] == "Culprit     shop 1.2 removed shop.sell"
    assert "Advice      Use `shop.trade` instead." in lines[6:8]


def test_each_culprit_of_one_package_has_its_own_advice():
    guilty = [
        evolve(
            ANSWER.failures[0].culprits[0],
            findings=(),
            evidence=(Evidence("removed-name", f"shop.{name}", "", advice=f"Use `{name}_` instead."),),
            boundary=evolve(ANSWER.boundary, change=evolve(ANSWER.boundary.change, after=release), suspects=(release,)),
        )
        for name, release in (("sell", "1.2"), ("buy", "1.4"))
    ]
    failures = tuple(evolve(ANSWER.failures[0], culprits=(one,)) for one in guilty)
    lines = printed(evolve(ANSWER, failures=failures), width=200).splitlines()
    told = [line for line in lines if line.startswith("Advice")]
    assert told == ["Advice      shop 1.2: Use `sell_` instead.", "Advice      shop 1.4: Use `buy_` instead."]


def test_removed_lines_are_numbered_as_in_the_release_that_has_them():
    gone = Region("shop/money.py", (10, 11), (10, 9), "sell", "-    a\n-    b\n")
    finding = evolve(ANSWER.findings[-1], regions=(gone,))
    answer = changed(ANSWER, findings=(finding,))
    assert "Culprit     shop 1.2 changed sell (shop/money.py, lines 10-11 of 1.1)" in printed(answer, width=200)


def test_the_change_is_not_told_where_the_api_says_it():
    cause = "the default of the parameter `rate` of `sell` was changed from `1` to `2`"
    *above, lines = ANSWER.findings
    answer = changed(ANSWER, findings=(*above, evolve(lines, causes=(cause,))))
    assert cause in printed(answer, width=200)
    removed = Evidence("removed-name", "shop.sell", "shop.sell was in 1.1 (shop/till.py:7) and was removed in 1.2")
    assert cause not in printed(changed(answer, evidence=(removed,)), width=200)


def test_a_long_command_stays_one_line_that_can_be_copied():
    command = f"harness bisect shop {'--with long==1.0 ' * 9}--bad 1.2"
    answer = evolve(ANSWER, advice=f"If a later release fixed it: {command}")
    lines = printed(answer, width=80, force_terminal=True, color_system=None).splitlines()
    assert f"    {command}" in lines


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_of_an_answer_is_longer_than_the_terminal(width):
    lines = printed(ANSWER, width=width, force_terminal=True, color_system=None).splitlines()
    assert [line for line in lines if len(line) > width] == []
