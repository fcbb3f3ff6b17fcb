"""Gets the text of a report: a file, standard input, GitHub's JSON, or an issue that `gh` can reach."""

from __future__ import annotations

import json
import re
import subprocess
import sys
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
_PAGE = re.compile(r"^\s*(?:#\s+)?(?P<title>\S.{5,200}?)\s+#(?P<number>\d{1,7})\s*$", re.M)
_SAVE_IT = "save its text to a file, and give that: harness new FILE"


@frozen
class Report:
    """A report as its author wrote it: `repository` is "owner/name" of its tracker, `number` its number; "" and 0 if
    they are not known. `comments` are the texts below the report, by anybody.
    """

    text: str
    title: str = ""
    repository: str = ""
    number: int = 0
    comments: tuple[str, ...] = ()

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
    """Return the report in a text: Markdown, plain text, or the JSON of `gh issue view --json` or GitHub's API.

    Raises `UserMistake` for JSON that is no issue.
    """
    text = plain(text)
    if text.lstrip()[:1] in ("{", "["):
        try:
            return _from_json(json.loads(text))
        except (ValueError, RecursionError):
            pass
    page = _PAGE.search(text[:2000])
    return Report(
        text, title=page["title"].strip() if page else _heading(text), number=int(page["number"]) if page else 0
    )


def _heading(text: str) -> str:
    """The first line if it is a title: a heading, or short and followed by an empty line."""
    lines = text.strip().splitlines()
    if not lines:
        return ""
    first = lines[0].strip()
    is_title = first.startswith("# ") or (len(first) < 150 and (len(lines) == 1 or not lines[1].strip()))
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
    if b"\0" in data and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UserMistake(f"{issue} is not a text file", hint=_SAVE_IT)
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    return data.decode(encoding, errors="replace")


def _from_json(value: Any) -> Report:
    """Read GitHub's JSON; a list is an issue and its comments, or one issue."""
    comments: list[Any] = []
    if isinstance(value, list):
        value, *comments = value or [None]
    if not isinstance(value, dict) or not any(isinstance(value.get(key), str) for key in ("body", "title")):
        raise UserMistake(
            "this JSON is not an issue of GitHub: it has neither a title nor a body",
            hint="gh issue view NUMBER --repo OWNER/NAME --json title,body,comments,url",
        )
    if isinstance(value.get("comments"), list):  # the REST form has a count
        comments += value["comments"]
    told = [one.get("body") for one in comments if isinstance(one, dict)]
    link = next((text for key in ("url", "html_url") if isinstance(text := value.get(key), str) and _address(text)), "")
    place = _address(link)
    return Report(
        plain(value.get("body") or ""),
        title=plain(str(value.get("title") or "")),
        repository=f"{place['owner']}/{place['name']}" if place else "",
        number=int(place["number"]) if place else _number(value.get("number")),
        comments=tuple(plain(text) for text in told if isinstance(text, str)),
    )


def _address(link: str) -> re.Match[str] | None:
    return _URL.match(link.replace("api.github.com/repos/", "github.com/"))


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _from_gh(repository: str, number: int) -> Report:
    command = ["gh", "issue", "view", str(number), "--repo", repository, "--json", "title,body,comments,number,url"]
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
