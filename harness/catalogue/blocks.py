"""Gets the text of a report: a file, standard input, GitHub's JSON, or an issue that `gh` can reach.

`blocks_of` splits it into its code, fenced or indented, and the prose around it.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from attrs import frozen

from harness.errors import NoNetwork, UserMistake
from harness.model.text import plain

_MOST_BYTES = 20 * 2**20
_NUMBER = re.compile(r"(?P<owner>[\w.-]+)/(?P<name>[\w.-]+)#(?P<number>\d+)")
_URL = re.compile(
    r"https?://(?:www\.)?github\.com/(?P<owner>[\w.-]+)/(?P<name>[\w.-]+)/(?:issues|pull|discussions)/(?P<number>\d+)"
)
_SAVE_IT = "save its text to a file, and give that: harness new FILE"


@frozen
class Report:
    """A report as its author wrote it, without comments: `repository` is "owner/name" of its tracker, `number` its
    number; "" and 0 if they are not known.
    """

    text: str
    title: str = ""
    repository: str = ""
    number: int = 0

    @property
    def link(self) -> str:
        """The address of the report, "" if it is not known."""
        return f"https://github.com/{self.repository}/issues/{self.number}" if self.repository and self.number else ""


def read_report(issue: str) -> Report:
    """Read a report: a path, "-" for standard input, "owner/name#12" or the URL of an issue.

    Raises `UserMistake` if it can't be read or is empty, and `NoNetwork` if `gh` can't reach it.
    """
    named = _URL.match(issue) or _NUMBER.fullmatch(issue)
    if named is not None and not Path(issue).exists():
        report = _from_gh(f"{named['owner']}/{named['name']}", int(named["number"]))
    elif issue.startswith(("http://", "https://")):
        raise UserMistake(f"{issue} is not an issue on GitHub", hint=_SAVE_IT)
    else:
        report = parse_report(_text_of(issue))
    if not report.text.strip() and not report.title.strip():
        raise UserMistake(f"{'standard input' if issue == '-' else issue} is empty", hint="give the text of an issue")
    return report


def parse_report(text: str) -> Report:
    """Return the report in a text: Markdown, plain text, or the JSON of `gh issue view --json`.

    Raises `UserMistake` for JSON that is no issue.
    """
    text = plain(text)
    if text.lstrip()[:1] == "{":
        try:
            return _from_json(json.loads(text))
        except (ValueError, RecursionError):
            pass
    return Report(text, title=_heading(text))


def _heading(text: str) -> str:
    """The first line if it is a title: a heading, or short and followed by an empty line."""
    first, second, *_ = (*text.strip().splitlines(), "", "")
    is_title = first.startswith("# ") or (len(first) < 150 and not second.strip())
    return first.lstrip("# ") if is_title and not first.startswith(("```", "##", ">>>", "import ", "from ")) else ""


def _text_of(issue: str) -> str:
    try:
        if issue == "-":
            data = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with Path(issue).expanduser().open("rb") as file:
                data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UserMistake(
            f"can't read {issue}: {error.strerror}", hint="give a file, -, owner/name#12 or the URL of an issue"
        ) from error
    if len(data) > _MOST_BYTES:
        raise UserMistake(f"{issue} is larger than 20 MiB", hint="keep the report and the last traceback")
    if b"\0" in data:
        raise UserMistake(f"{issue} is not a text file", hint=_SAVE_IT)
    return data.decode("utf-8-sig", errors="replace")


def _from_json(value: Any) -> Report:
    """Read GitHub's JSON."""
    if not isinstance(value, dict) or not any(isinstance(value.get(key), str) for key in ("body", "title")):
        raise UserMistake(
            "this JSON is not an issue of GitHub: it has neither a title nor a body",
            hint="gh issue view NUMBER --repo OWNER/NAME --json title,body,url",
        )
    place = _URL.match(str(value.get("url")))
    return Report(
        plain(value.get("body") or ""),
        title=plain(str(value.get("title") or "")),
        repository=f"{place['owner']}/{place['name']}" if place else "",
        number=int(place["number"]) if place else number if isinstance(number := value.get("number"), int) else 0,
    )


def _from_gh(repository: str, number: int) -> Report:
    command = ["gh", "issue", "view", str(number), "--repo", repository, "--json", "title,body,number,url"]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False, timeout=60)
    except OSError as error:
        raise UserMistake(
            f"gh is not installed, so {repository}#{number} can't be fetched",
            hint=f"install the GitHub CLI (https://cli.github.com), or {_SAVE_IT}",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise NoNetwork(f"gh did not fetch {repository}#{number} within 60 s", hint=_SAVE_IT) from error
    if ended.returncode != 0:
        why = next(iter(ended.stderr.strip().splitlines()), f"exit status {ended.returncode}")
        raise NoNetwork(f"gh can't fetch {repository}#{number}: {why}", hint=f"gh auth status says more; or {_SAVE_IT}")
    return _from_json(json.loads(ended.stdout))


_TAG = re.compile(r"</?(?:details|summary|b|p|br|div|span|strong|em|i)\b[^>]*>", re.I)
_PRE = re.compile(r"<pre[^>]*>|</pre>", re.I)


@frozen
class Block:
    """A part of a report: prose, or what is set as code.

    `language` is that of a fence; `before` is the last line above a code block.
    """

    text: str
    is_code: bool = False
    language: str = ""
    before: str = ""


def blocks_of(text: str) -> tuple[Block, ...]:
    """Split a text into prose and code, in order."""
    # rich needs it, too, but most commands never read Markdown.
    from markdown_it import MarkdownIt

    text = _PRE.sub("\n```\n", text) if "<pre" in text.lower() else text
    lines = text.splitlines()
    blocks: list[Block] = []
    end = 0
    for token in MarkdownIt("commonmark", {"html": False}).parse("\n".join(lines)):
        if token.type not in ("fence", "code_block") or token.map is None or token.map[0] < end:
            continue
        first, last = token.map
        before = next((line for line in reversed(lines[end:first]) if line.strip()), "")
        code = textwrap.dedent(token.content).strip("\n")
        language = token.info.strip().partition(" ")[0].lower()
        blocks += [_prose(lines[end:first]), Block(code, True, language, before)]
        end = last
    return tuple(block for block in (*blocks, _prose(lines[end:])) if block.text.strip())


def _prose(lines: Iterable[str]) -> Block:
    return Block(_TAG.sub(" ", "\n".join(lines)))


def parsed(code: str) -> ast.Module | int:
    """Return the syntax tree of Python code, else the number of the first line that is not Python. It is not run."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(code)
    except SyntaxError as error:
        return error.lineno or 1
    except (ValueError, RecursionError, MemoryError):
        return 1
