"""A report too long for an issue loses details, the longest first, and names them."""

from __future__ import annotations

from answers import KEPT
from attrs import evolve

from harness.report import make_content, render_issue
from harness.report.answer.shortening import ISSUE_LIMIT, shortened

CONTENT = make_content(KEPT)


def test_a_short_report_stays_as_it_is():
    assert "Left out for their length" not in render_issue(CONTENT)


def test_the_longest_details_go_first_and_are_named():
    long = evolve(CONTENT, sides=tuple(evolve(side, lock="x" * 60_000) for side in CONTENT.sides))
    text = render_issue(long)
    assert len(text) <= ISSUE_LIMIT
    assert "Left out for their length: the full locks; the HTML and JSON reports have them." in text
    assert "### Traceback" in text


def test_answer_proofs_and_repro_are_never_dropped():
    """Whatever the limit."""
    text = shortened(CONTENT, render_issue, limit=10)
    assert CONTENT.sentence in text
    assert CONTENT.repro_source in text
    assert all(proof.sentence in text for proof in CONTENT.proofs)
    assert "### Traceback" not in text
