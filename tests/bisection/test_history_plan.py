"""Where a history begins and ends, with which other packages, and what it reports of its choices."""

from __future__ import annotations

import pytest
from support import repro_text

from harness.bisection.history_scan import HistoryRange, history_line
from harness.model import Combination
from harness.model.repro import parse_repro
from harness.question.question import Question


@pytest.fixture
def planned(parts, interpreter):
    """Plan a history of brittle; `bounds` are those of the repro."""

    def plan(since=None, until=None, max_gap=None, bounds="", subject="brittle", **more):
        tool = f"[tool.harness.subjects.{subject}]\n{bounds}\n"
        repro = parse_repro(repro_text(subject, tool=tool), name="step")
        question = Question(subject, repro, Combination(interpreter.version, ()), **more)
        wanted = HistoryRange(since, until, max_gap)
        return history_line(question, wanted, index=parts.index, interpreter=interpreter)

    return plan


def ends(made):
    return made[0].names[0], made[0].names[-1]


def test_without_bounds_every_release_is_covered(planned):
    made = planned()
    assert ends(made) == ("1.0", "1.12")
    told = "\n".join(made[0].question.notes)
    assert "--from changes it" in told
    assert "--to changes it" in told
    assert "other packages: as close as possible to those of the newest release (--as-of changes it)" in told


@pytest.mark.parametrize("bounds", ['good = "1.4"\nbad = "1.7"', 'good = "1.11"\nbad = "1.4"'])
def test_it_begins_with_the_older_bound_of_the_repro(planned, bounds):
    made = planned(bounds=bounds)
    assert ends(made) == ("1.4", "1.12")
    assert "from 1.4 (from the repro; --from changes it)" in made[0].question.notes


def test_a_bound_newer_than_the_requested_end_is_ignored(planned):
    assert ends(planned(until="1.3", bounds='good = "1.4"\nbad = "1.7"')) == ("1.0", "1.3")


def test_other_packages_are_those_of_the_bad_bound(planned):
    made = planned(bounds='good = "1.4"\nbad = "1.7"')
    assert made[0].question.bad.text == "1.7"
    assert "other packages: as close as possible to those of 1.7 (--as-of changes it)" in made[0].question.notes


def test_without_a_bad_bound_other_packages_are_those_of_the_newest_release(planned):
    assert (
        "other packages: as close as possible to those of 1.6 (--as-of changes it)"
        in planned(until="1.6")[0].question.notes
    )


@pytest.mark.parametrize("bounds", ['bad = "1.7"', 'bad = "7.7"', ""])
def test_a_bad_bound_out_of_range_fixes_no_other_packages(planned, bounds):
    assert planned("1.8", bounds=bounds)[0].bad is None


def test_an_uninstallable_bad_bound_fixes_no_other_packages(planned):
    assert planned("1.0", "1.6", subject="mixed", bounds='bad = "1.1"')[0].bad is None


def test_the_stride_is_shown_unless_requested(planned):
    """With so few releases all of them run, and there is nothing to report."""
    chosen, asked = planned(), planned(max_gap=2)
    assert (chosen[1], asked[1]) == (1, 2)
    assert not any("--max-gap" in choice for choice in chosen[0].question.notes)
    assert not any("--max-gap" in choice for choice in asked[0].question.notes)
