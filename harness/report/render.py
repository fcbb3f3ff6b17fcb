"""Renders a report as Markdown, HTML or JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from attrs import evolve

from harness.model.text import finite
from harness.report.answer.shortening import shortened
from harness.report.templating import filled

if TYPE_CHECKING:
    from harness.report.answer.content import ReportContent

# GitHub's limit is 65,536 characters; the difference is for text that a person adds.
_ISSUE_LIMIT = 60_000


def render_markdown(content: ReportContent) -> str:
    """Render Markdown for an upstream issue.

    If it is too long for an issue, the locks are left out; if that is not enough, also the repro, the drift and the
    ends of long reasons.
    """
    text = _markdown(content)
    if len(text) > _ISSUE_LIMIT:
        told = "The full locks are left out for their length; the HTML and JSON reports have them."
        sides = tuple(evolve(side, lock="") for side in content.sides)
        content = evolve(content, sides=sides, how_to=(*content.how_to, told))
        text = _markdown(content)
    if len(text) > _ISSUE_LIMIT:
        told = "The repro is left out for its length; the HTML report has it."
        steps = tuple(evolve(step, reason=_cut(step.reason)) for step in content.steps)
        how_to = (*content.how_to, told) if content.repro_source else content.how_to
        text = _markdown(evolve(content, steps=steps, drift=(), repro_source="", how_to=how_to))
    return text


def render_issue(content: ReportContent) -> str:
    """Render Markdown that fits into an issue: drops details, but never the answer, its proofs or the repro."""
    return shortened(content, _markdown)


def render_html(content: ReportContent) -> str:
    """Render one HTML file without external resources."""
    return filled("report.html.j2", r=content)


def render_json(content: ReportContent) -> str:
    """Render JSON (schema 1): the answer with both sides' versions and traceback; NaN and infinities are null."""
    return render_record(content.record)


def render_record(record: dict[str, Any]) -> str:
    """Render a record as JSON; NaN and infinities are null."""
    return json.dumps(finite(record), indent=1, ensure_ascii=False) + "\n"


RENDERERS = {"markdown": render_markdown, "html": render_html, "json": render_json}


def _markdown(content: ReportContent) -> str:
    return filled("report.md.j2", r=content).strip("\n") + "\n"


def _cut(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:119]}…"
