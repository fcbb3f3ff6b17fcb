"""What is told about commits: those that changed some lines, their web pages, and a log for `git bisect replay`."""

from __future__ import annotations

import email.parser
import re
from collections import Counter
from typing import TYPE_CHECKING

from attrs import frozen

from harness.errors import BadRepository
from harness.model import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.model.culprit import Commit
    from harness.repository.git import Repository

_HEADER = re.compile(r"^([0-9a-f]{40,64}) \d+ \d+")
_LINES_SEARCHED = 3
_SHORTEST = 8  # characters of a removed line that is searched for
_HOSTS = ("github.com", "gitlab.com", "codeberg.org", "bitbucket.org")
_REPOSITORY = re.compile(
    rf"^https?://(?:www\.)?({'|'.join(map(re.escape, _HOSTS))})/([\w.-]+)/([\w.-]+?)"
    r"(?:\.git)?(?:/(?:-/)?tree/[^/]+|/)?$"
)
# Labels of a project's source (packaging specifications, "Well-known project URLs").
_SOURCE_LABELS = ("source", "repository", "sourcecode", "github", "code", "homepage")
_WORD = {Verdict.GOOD: "good", Verdict.BAD: "bad", Verdict.SKIP: "skip"}
_FIX_WORD = {Verdict.GOOD: "fixed", Verdict.BAD: "unfixed", Verdict.SKIP: "skip"}


@frozen
class ChangedLines:
    """Lines of one file that a change added (`after`, first and last line at the newer end) or removed (`removed`).

    `path` is the file's path in the repository; `after` is None if nothing was added.
    """

    path: str
    after: tuple[int, int] | None = None
    removed: tuple[str, ...] = ()


def commits_behind(repository: Repository, older: str, newer: str, changes: Iterable[ChangedLines]) -> tuple[str, ...]:
    """Return the commits (hashes) after `older` up to `newer` that made these changes, those with most of them first.

    Renames are followed. Raises `BadRepository`.
    """
    votes: Counter[str] = Counter()
    for change in changes:
        if change.after is not None:
            votes.update(_blamed(repository, older, newer, change.path, change.after))
        for line in _telling(change.removed):
            votes.update(_touching(repository, older, newer, change.path, line))
    position = {sha: i for i, sha in enumerate(repository.lines("rev-list", "--topo-order", newer, f"^{older}"))}
    inside = [sha for sha in votes if sha in position]
    return tuple(sorted(inside, key=lambda sha: (-votes[sha], position[sha])))


def _blamed(repository: Repository, older: str, newer: str, path: str, lines: tuple[int, int]) -> Counter[str]:
    """How many of these lines come from each commit (git blame)."""
    first, last = lines
    search = ("blame", "--porcelain", "--no-textconv", "-w", "-M", "-L", f"{first},{last}")
    try:
        answer = repository.lines(*search, f"{older}..{newer}", "--", path)
    except BadRepository:  # the tag lacks the file or has fewer lines, because the wheel differs from it
        return Counter()
    return Counter(match.group(1) for line in answer if (match := _HEADER.match(line)))


def _touching(repository: Repository, older: str, newer: str, path: str, line: str) -> list[str]:
    """The commits that changed how often a line occurs in a file, or else in any file (git log -S)."""
    search = ("log", "--format=%H", "--no-textconv", "--no-ext-diff", f"-S{line}", newer, f"^{older}")
    return repository.lines(*search, "--", path) or repository.lines(*search)


def _telling(removed: tuple[str, ...]) -> list[str]:
    """The longest removed lines, because they occur least often elsewhere."""
    stripped = dict.fromkeys(line.strip() for line in removed)
    long = [line for line in stripped if len(line) >= _SHORTEST]
    return sorted(long, key=len, reverse=True)[:_LINES_SEARCHED]


def repository_url(metadata: str) -> str | None:
    """Return the repository's URL in the text of a METADATA file, or None if it has none on a known host."""
    headers = email.parser.HeaderParser().parsestr(metadata)
    told = {}
    for value in headers.get_all("Project-URL", []):
        label, _, url = str(value).partition(",")
        told[re.sub(r"[\W_]", "", label.lower())] = url.strip()
    if home_page := headers.get("Home-page"):
        told.setdefault("homepage", str(home_page).strip())
    for label in _SOURCE_LABELS:
        if match := _REPOSITORY.match(told.get(label, "")):
            return f"https://{match[1]}/{match[2]}/{match[3]}"
    return None


def known_address(url: str) -> str:
    """Return the web page of a repository from its clone URL, "" if the host is not known."""
    match = _REPOSITORY.match(url.removeprefix("git+"))
    return f"https://{match[1]}/{match[2]}/{match[3]}" if match else ""


def pull_request_url(repository: str, number: int | None) -> str:
    """The URL of a pull request, "" if the repository or the number is not known."""
    if not repository or number is None:
        return ""
    host = repository.split("/")[2]
    middle = {"gitlab.com": "/-/merge_requests/", "bitbucket.org": "/pull-requests/", "codeberg.org": "/pulls/"}
    return f"{repository}{middle.get(host, '/pull/')}{number}"


def commit_url(repository: str, sha: str) -> str:
    """The URL of a commit, "" if the repository is not known."""
    if not repository:
        return ""
    middle = {"gitlab.com": "/-/commit/", "bitbucket.org": "/commits/"}.get(repository.split("/")[2], "/commit/")
    return f"{repository}{middle}{sha}"


def bisect_log(runs: Iterable[tuple[Commit, Verdict]], *, find_fix: bool = False) -> str:
    """Return the log of a bisection.

    A search for a fix uses the terms `fixed` and `unfixed`, because git expects bad commits to be newer.
    """
    words = _FIX_WORD if find_fix else _WORD
    lines = ["git bisect start --term-new=fixed --term-old=unfixed" if find_fix else "git bisect start"]
    for commit, verdict in runs:
        word = words[verdict]
        lines += [f"# {word}: [{commit.sha}] {commit.subject}", f"git bisect {word} {commit.sha}"]
    return "\n".join(lines) + "\n"
