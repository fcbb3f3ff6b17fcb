"""Renders templates: HTML escapes every value, Markdown uses its own filters."""

from __future__ import annotations

from typing import Any

import jinja2

from harness.model.verdict import in_words
from harness.report import markdown_text


def filled(name: str, **values: Any) -> str:
    """Render a template (`NAME.html.j2` or `NAME.md.j2`) with these values."""
    return (_HTML if ".html." in name else _MARKDOWN).get_template(name).render(**values)


def _diff_lines(diff: str) -> list[tuple[str, str]]:
    """The kind and text of each line of a unified diff."""
    kinds = {"+": "added", "-": "removed", "@": "place"}
    return [(kinds.get(line[:1], "same"), line) for line in diff.split("\n")]


def _environment(*, autoescape: bool) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("harness.report"),
        autoescape=autoescape,  # noqa: S701 - off only for Markdown, which has its own filters
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        paragraph=markdown_text.paragraph,
        span=markdown_text.span,
        fence=markdown_text.fence,
        diff_lines=_diff_lines,
        in_words=in_words,
    )
    return environment


_MARKDOWN = _environment(autoescape=False)
_HTML = _environment(autoescape=True)
