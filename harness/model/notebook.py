"""Renders answers for notebooks: one sentence and a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def sentence_and_table(sentence: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return HTML for `_repr_html_`, with every text escaped."""
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<p><b>{escape(sentence)}</b></p><table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"
