"""A page: a template filled with one value, as Markdown, HTML or JSON, and kept in a results folder.

Reports, histories, matrices and the nights differ in their content and their template alone. No control or bidi
character of a commit's subject, a log or an index reaches a page: HTML and Markdown drop them, JSON escapes them.
"""

from __future__ import annotations

import html
import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from attrs import field, frozen
from markupsafe import Markup

from harness.model.text import finite, plain
from harness.model.verdict import in_words
from harness.report.charts import metric_charts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import jinja2

    from harness.bisection.history import RowState
    from harness.search import PositionState
    from harness.store import Store


_CUT = Markup("\x1e")  # no text has it: `plain` removes control characters
_WITH_ROOM = 60_000  # characters; an issue on GitHub has at most 65,536, and a person adds some


@frozen
class Page:
    """The `content` of a template, without private data, and the `record` of the page as JSON."""

    template: str
    content: Any
    record: dict[str, Any] = field(factory=dict, repr=False)

    def markdown(self, limit: int = _WITH_ROOM) -> str:
        """Render Markdown for GitHub; if it is longer than `limit`, it leaves out details, the longest first.

        Details are what a template puts between two of `cut`.
        """
        parts = filled(f"{self.template}.md.j2", r=self.content).split(_CUT)
        note = ""
        while sum(map(len, parts)) > limit and any(parts[1::2]):
            parts[parts.index(max(parts[1::2], key=len))] = ""
            note = "\nLeft out for length: details, which the HTML report has.\n"
        return "".join([*parts, note]).strip("\n") + "\n"

    def html(self) -> str:
        """Render one HTML file without external resources."""
        return filled(f"{self.template}.html.j2", r=self.content)

    def json(self) -> str:
        """Render the record as JSON; NaN and infinities are null."""
        return _UNSAFE_IN_JSON.sub(
            lambda match: f"\\u{ord(match[0]):04x}",
            json.dumps(finite(self.record), indent=1, ensure_ascii=False) + "\n",
        )

    def write(self, store: Store, name: str, *suffixes: str) -> tuple[Path, ...]:
        """Write `name` with each suffix (md, html, json) to the results folder; returns the paths. Raises `NoSpace`."""
        texts = {"md": self.markdown, "html": self.html, "json": self.json}
        return tuple(store.write(f"{name}.{suffix}", texts[suffix]()) for suffix in suffixes)


_UNSAFE_IN_JSON = re.compile(r"[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")


def filled(name: str, **values: Any) -> str:
    """Render a template (`NAME.html.j2` or `NAME.md.j2`) with these values."""
    return _environment(autoescape=".html." in name).get_template(name).render(**values)


def paragraph(text: str) -> str:
    """Return text on one line of GitHub's Markdown, without markup or mentions."""
    line = html.escape(_on_one_line(text), quote=False)
    line = _SPECIAL.sub(r"\\\1", line)
    # "@name" would notify a stranger, and "#12" would link an unrelated issue.
    return _MENTION.sub(r"\1<!-- -->", line)


def span(text: str) -> str:
    """Return a code span on one line, delimited by more backticks than the text has; safe in a table cell."""
    line = _on_one_line(text)
    if not line:
        return ""
    ticks = "`" * (_longest_run(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    # In a table, "|" ends the cell even inside a code span.
    escaped = line.replace("|", "\\|")
    return f"{ticks}{pad}{escaped}{pad}{ticks}"


def fence(text: str, language: str = "") -> str:
    """Return a fenced block, with a longer fence than any in the text."""
    text = plain(text)
    ticks = "`" * max(3, _longest_run(text) + 1)
    return f"{ticks}{language}\n{text.rstrip(chr(10))}\n{ticks}"


# Between letters "_" is only itself.
_SPECIAL = re.compile(r"([\\`*\[\]|~#]|(?<!\w)_|_(?!\w))")
_MENTION = re.compile(r"([@#])(?=\w)")


def _on_one_line(text: str) -> str:
    return " ".join(plain(text).split())


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


def code(text: str) -> Markup:
    """Return HTML in which words between single backticks are code; everything else is escaped."""
    parts = _TICKED.split(plain(text))
    return Markup("").join(Markup("<code>{}</code>").format(part) if n % 2 else part for n, part in enumerate(parts))


_TICKED = re.compile(r"`([^`]+)`")


def diff_lines(diff: str) -> list[tuple[str, str]]:
    """The kind and text of each line of a unified diff."""
    kinds = {"+": "added", "-": "removed", "@": "place"}
    return [(kinds.get(line[:1], "same"), line) for line in diff.split("\n")]


@cache
def _environment(*, autoescape: bool) -> jinja2.Environment:
    import jinja2  # late: a question that was answered before renders nothing

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("harness.report"),
        autoescape=autoescape,  # noqa: S701 - off only for Markdown, which has its own filters
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: plain(value) if type(value) is str else value,
    )
    filters = (code, paragraph, span, fence, diff_lines, in_words, metric_charts)
    environment.globals["cut"] = _CUT
    environment.filters.update({function.__name__: function for function in filters})
    return environment


def range_cell(release: str, day: str, state: PositionState | RowState, text: str, href: str = "") -> dict[str, str]:
    """Return a release in the picture of the range, uploaded on a `day` ("" if unknown), with a `text` about it.

    `href` links to the log in the page.
    """
    title = f"{release}{f', {day}' if day else ''}: {text}"
    return {"release": release, "letter": state.symbol, "state": state.value, "title": title, "href": href}


RENDERERS: dict[str, Callable[[Page], str]] = {"markdown": Page.markdown, "html": Page.html, "json": Page.json}
