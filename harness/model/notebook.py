"""Shows answers in a notebook: one sentence and a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def sentence_and_table(sentence: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """HTML for `_repr_html_`; everything in it is escaped."""
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<p><b>{escape(sentence)}</b></p><table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"
