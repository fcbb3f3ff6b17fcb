"""The three formats of a report; each is the content written down by a template, or as JSON."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import jinja2
from attrs import evolve

from harness.report import markdown_text
from harness.report.shortening import shortened

if TYPE_CHECKING:
    from harness.report.content import ReportContent

# GitHub takes 65,536 characters in an issue; the rest is for what a person adds.
_ISSUE_LIMIT = 60_000


def render_markdown(content: ReportContent) -> str:
    """Markdown for an upstream issue. Where it would be too long for one, first the locks go, then the
    repro and the ends of long reasons.
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
    """Markdown that fits into one issue; what is too long for it is left out, but for answer, proofs and repro."""
    return shortened(content, _markdown)


def render_html(content: ReportContent) -> str:
    """One HTML file without outside resources."""
    return render_page("report.html.j2", content)


def render_page(template: str, content: Any) -> str:
    """A page of this package's templates, which know their content as `r`; every text in it is escaped."""
    return _HTML.get_template(template).render(r=content)


def render_json(content: ReportContent) -> str:
    """The answer as JSON (schema 1) with both sides' versions and traceback; NaN and infinities are null."""
    return render_record(content.record)


def render_record(record: dict[str, Any]) -> str:
    """A record as JSON; NaN and infinities are null."""
    return json.dumps(_finite(record), indent=1, ensure_ascii=False) + "\n"


RENDERERS = {"markdown": render_markdown, "html": render_html, "json": render_json}


def _markdown(content: ReportContent) -> str:
    text = _MARKDOWN.get_template("report.md.j2").render(r=content)
    return text.strip("\n") + "\n"


def _cut(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:119]}…"


def _finite(value: Any) -> Any:
    """JSON has no NaN."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def _diff_lines(diff: str) -> list[tuple[str, str]]:
    """Each line of a unified diff with the name of its kind."""
    kinds = {"+": "added", "-": "removed", "@": "place"}
    return [(kinds.get(line[:1], "same"), line) for line in diff.split("\n")]


def _environment(*, autoescape: bool) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("harness.report"),
        autoescape=autoescape,  # noqa: S701 - off for Markdown alone, which has its own filters
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        paragraph=markdown_text.paragraph,
        span=markdown_text.span,
        fence=markdown_text.fence,
        diff_lines=_diff_lines,
    )
    return environment


_MARKDOWN = _environment(autoescape=False)
_HTML = _environment(autoescape=True)
