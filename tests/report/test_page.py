"""Text is escaped for GitHub's Markdown, whatever it contains."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from harness.report.page import fence, paragraph, span

READER = MarkdownIt("commonmark", {"html": True}).enable("table")
TEXTS = st.text(st.sampled_from(list("ab `|\\*_<>&#~[]()!@1\n+-.")), max_size=40)


def seen(rendered: str) -> str:
    """The visible text of a piece of HTML."""
    return html.unescape(re.sub(r"<[^>]*>", "", re.sub(r"<!--.*?-->", "", rendered))).strip()


@given(TEXTS)
def test_a_fence_holds_any_content(text):
    tokens = READER.parse(f"before\n\n{fence(text, 'text')}\n\nafter\n")
    blocks = [token for token in tokens if token.type == "fence"]
    assert [block.content.rstrip("\n") for block in blocks] == [text.rstrip("\n")]
    assert tokens[-2].content == "after"


@given(TEXTS)
def test_a_code_span_in_a_table_stays_in_its_cell(text):
    tokens = READER.parse(f"| a | b |\n|---|---|\n| {span(text)} | end |\n")
    cells = [token.content for token in tokens if token.type == "inline"]
    assert len(cells) == 4
    assert cells[3] == "end"


@given(TEXTS)
def test_a_paragraph_shows_its_text_and_no_markup(text):
    rendered = READER.render(f"| {paragraph(text)} x |\n|---|\n")
    assert " ".join(seen(rendered).split()) == " ".join(f"{text} x".split())


@pytest.mark.parametrize("text", ["@someone", "see #123", "owner/name#5"])
def test_nobody_is_mentioned_and_nothing_is_linked(text):
    assert re.search(r"[@#]\w", paragraph(text)) is None
