"""Splits a report into blocks: its code, fenced, indented or bare, and the lines around it, with their headings."""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from typing import TYPE_CHECKING

from attrs import frozen

from harness.drafting.packages import KNOWN, project_of_module

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(?P<text>.+?)\s*#*\s*$|^\s*\*\*(?P<bold>[^*]{3,80})\*\*:?\s*$")
_TAG = re.compile(r"</?(?:details|summary|b|p|br|div|span|strong|em|i)\b[^>]*>", re.I)
_PRE = re.compile(r"<pre[^>]*>|</pre>", re.I)
_IMPORT = re.compile(r"(?:from\s+[A-Za-z_][\w.]*\s+import\s+\S|import\s+[A-Za-z_][\w.]*(?:\s*,|\s+as\s|\s*$|\s*#))")
_ENDS = re.compile(r"[A-Z][\w /'()-]{2,50}:?|#{2,6} .*")
_OPEN = re.compile(r"\s*[A-Za-z_][\w.]* ?=\s*$")
_INDENT = ("    ", "\t")
_BEFORE = 3  # lines before a block that say what it is


@frozen
class Block:
    """A part of a report: `kind` is "prose" or "code"; `line` is its first line, from 0.

    `language` is that of a fence, `heading` the one above it; `before` is the text just above a code block.
    """

    kind: str
    text: str
    line: int
    language: str = ""
    heading: str = ""
    before: str = ""

    @property
    def is_code(self) -> bool:
        """Whether it is set as code, or was found to be code without being set as such."""
        return self.kind == "code"


def blocks_of(text: str) -> tuple[Block, ...]:
    """Split a text into prose and code, in order."""
    # rich needs it, too, but most commands never read Markdown.
    from markdown_it import MarkdownIt

    text = _PRE.sub("\n```\n", text) if "<pre" in text.lower() else text
    lines = _joined(text.splitlines())
    found: list[Block] = []
    at = 0
    for token in MarkdownIt("commonmark", {"html": False}).parse("\n".join(lines)):
        if token.type != "fence" or token.map is None or token.map[0] < at:
            continue
        first, last = token.map
        found += _prose(lines, at, first)
        language = token.info.strip().split(" ")[0].lower() if token.info else ""
        content = textwrap.dedent(token.content).strip("\n")
        if content.strip():
            found.append(Block("code", content, first, language, before=_before(lines, first)))
        at = last
    found += _prose(lines, at, len(lines))
    return tuple(_with_headings(found))


def _joined(lines: list[str]) -> list[str]:
    """Return the lines with statements that were broken after their equals sign on one line; their number stays."""
    found = list(lines)
    for number, line in enumerate(lines[:-1]):
        whole = f"{line.rstrip()} {lines[number + 1].strip()}"
        if _OPEN.match(line) and lines[number + 1].strip() and parses(whole.strip()) is None:
            found[number : number + 2] = whole, ""
    return found


def parses(code: str) -> int | None:
    """Return None if a text is Python, else the number of the first line that is not, from 1. It is not run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(code)
        except SyntaxError as error:
            return error.lineno or 1
        except (ValueError, RecursionError, MemoryError):
            return 1
    return None


def _prose(lines: list[str], first: int, last: int) -> Iterator[Block]:
    """The lines between two fences, with code that is indented, or not set as code at all, as blocks of its own."""
    at = number = first
    while number < last:
        is_import = _IMPORT.match(lines[number].strip()) is not None
        end = _bare_code(lines, number, last) if is_import else number
        language = "python" if end > number else ""
        if end == number and lines[number].startswith(_INDENT) and (number == first or not lines[number - 1].strip()):
            end = _indented(lines, number, last)
        if end > number:
            if "\n".join(lines[at:number]).strip():
                yield Block("prose", "\n".join(lines[at:number]), at)
            code = textwrap.dedent("\n".join(lines[number:end])).strip("\n")
            yield Block("code", code, number, language, before=_before(lines, number))
            at = number = end
        else:
            number += 1
    if "\n".join(lines[at:last]).strip():
        yield Block("prose", "\n".join(lines[at:last]), at)


def _indented(lines: list[str], first: int, last: int) -> int:
    """Return where an indented block ends."""
    end = first
    while end < last and (lines[end].startswith(_INDENT) or not lines[end].strip()):
        if _IMPORT.match(lines[end].strip()) and end > first:
            break
        end += 1
    while not lines[end - 1].strip():
        end -= 1
    return end


def _bare_code(lines: list[str], first: int, last: int) -> int:
    """Return where code that begins at a line ends; the line itself if it is not code."""
    end = last
    while end > first:
        wrong = parses(textwrap.dedent("\n".join(lines[first:end])))
        if wrong is None:
            break
        # The parser names the line where it gave up, which may be far below the one that is not Python.
        end = min(end - 1, first + max(wrong - 1, 0))
    while end > first and (not lines[end - 1].strip() or _ENDS.fullmatch(lines[end - 1])):
        end -= 1  # "Description" is a name in Python
    is_whole = end - first > 1 or "(" in "".join(lines[first:end])
    return end if is_whole or (end > first and _is_known_import(lines[first])) else first


def _is_known_import(line: str) -> bool:
    """Whether a line imports something of a known package: one that stands alone is code, too."""
    match = re.match(r"\s*from\s+(\w+)[\w.]*\s+import\s+[\w, ]+$", line)
    return match is not None and project_of_module(match[1]) in KNOWN


def _before(lines: list[str], number: int) -> str:
    above = [line for line in lines[max(0, number - 12) : number] if line.strip()]
    return "\n".join(above[-_BEFORE:])


def _with_headings(blocks: list[Block]) -> Iterator[Block]:
    heading = ""
    for block in blocks:
        if block.is_code:
            last = block.before.splitlines()[-1] if block.before else ""
            short = last.strip(" :*#") if len(last) < 60 and not last.rstrip().endswith((".", ",")) else ""
            yield Block("code", block.text, block.line, block.language, heading or short, block.before)
            continue
        for line in block.text.splitlines():
            if match := _HEADING.match(line):
                heading = (match["text"] or match["bold"]).strip(" *:")
        yield Block("prose", _TAG.sub(" ", block.text), block.line, heading=heading)
