"""The issues of this repository: which to open, update, close or reopen, and `gh`, which does it.

It never writes to the tracker of another repository: a report for a culprit's maintainers is text that a person sends.
"""

from __future__ import annotations

import enum
import json
import re
import shlex
import subprocess
from collections import Counter
from typing import TYPE_CHECKING

from attrs import frozen

from harness.errors import NoNetwork, UserMistake
from harness.model.text import one_line
from harness.report.page import Page
from harness.repository.git import git_output

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from harness.watch.state import Cause, Past

LABEL = "harness-nightly"
MOST = 60_000  # GitHub's limit for an issue is 65,536 characters
UNJUDGED = "<!-- harness-unjudged: "  # begins the issues on nights that judge nothing
_LISTED = 1000
_REASONS = 10
_REMOTE = re.compile(r"(?:^|[/@:])(?P<owner>[\w.-]+)/(?P<name>[\w.-]+?)(?:\.git)?/?$")


@frozen
class Issue:
    """An issue in the tracker."""

    number: int
    title: str
    body: str
    is_open: bool


@frozen
class DesiredIssue:
    """An issue as it should be; its body begins with `marker`, by which it is found again."""

    marker: str
    title: str
    body: str
    is_open: bool


class ActionKind(enum.StrEnum):
    """The kind of an action."""

    OPEN = "open"
    UPDATE = "update"
    CLOSE = "close"
    REOPEN = "reopen"


@frozen
class Action:
    """One change to the tracker; `number` is 0 for an issue that does not exist yet."""

    kind: ActionKind
    title: str
    number: int = 0
    body: str = ""


def actions(wanted: Iterable[DesiredIssue], issues: Iterable[Issue], watch: str = "") -> tuple[Action, ...]:
    """Return the actions that make the tracker match; none if it already does.

    Of several issues with one marker the first is kept. An issue that was never open is not opened to be closed. Issues
    whose body begins with `watch` are closed if they are not wanted.
    """
    by_number = sorted(issues, key=lambda issue: issue.number)
    needed: list[Action] = []
    unwanted = [issue for issue in by_number if watch and issue.body.startswith(watch)]
    for desired in wanted:
        mine = [issue for issue in by_number if issue.body.startswith(desired.marker)]
        unwanted = [issue for issue in unwanted if issue not in mine]
        if not mine:
            needed += [Action(ActionKind.OPEN, desired.title, body=desired.body)] if desired.is_open else []
            continue
        first, *others = mine
        if desired.is_open and not first.is_open:
            needed.append(Action(ActionKind.REOPEN, desired.title, first.number))
        is_same = first.title == desired.title and first.body.replace("\r\n", "\n").strip() == desired.body.strip()
        if not is_same:
            needed.append(Action(ActionKind.UPDATE, desired.title, first.number, desired.body))
        closed = others if desired.is_open else mine
        needed += [Action(ActionKind.CLOSE, issue.title, issue.number) for issue in closed if issue.is_open]
    needed += [Action(ActionKind.CLOSE, issue.title, issue.number) for issue in unwanted if issue.is_open]
    return tuple(needed)


def issues_of(causes: Iterable[Cause], reports: Mapping[str, str]) -> tuple[DesiredIssue, ...]:
    """Return one issue per cause, the oldest first; `reports` maps their ids to reports in Markdown."""
    return tuple(
        DesiredIssue(marker_of(cause.id), cause.title, body_of(cause, reports.get(cause.id, "")), cause.is_open)
        for cause in sorted(causes, key=lambda cause: (cause.first_seen, cause.id))
    )


def issues_on_unjudged(past: Past, nights: int) -> tuple[DesiredIssue, ...]:
    """Return one issue per matrix of which so many `nights` in a row judged nothing."""
    return tuple(
        issue_on_unjudged(
            f"{UNJUDGED}{matrix} -->",
            f"{matrix}: nothing was judged since {starts[0][:10]}",
            [cell.reason or cell.standing.value for cell in past.last[matrix].cells],
        )
        for matrix, starts in sorted(past.unjudged.items())
        if len(starts) >= nights
    )


def issue_on_unjudged(marker: str, title: str, reasons: Sequence[str]) -> DesiredIssue:
    """Return the issue that nights judge nothing, with the reasons of the last one."""
    counts = Counter(reasons).most_common(_REASONS)
    rows = [f"- {one_line(why, 300)}" + (f" ({count} times)" if count > 1 else "") for why, count in counts]
    last = "\n".join(["The last one:", "", *rows]) if rows else "The last one ended before it ran anything."
    text = f"The nights end without a verdict, so nobody would hear of a regression. {last}"
    return DesiredIssue(marker, title, f"{marker}\n\n{text}\n", is_open=True)


def body_of(cause: Cause, report: str) -> str:
    """Return the text of an issue: marker, sentence, cells, fixes, and the report if it fits."""
    head = Page("break", {"marker": marker_of(cause.id), "known": cause}).markdown().rstrip("\n")
    if report and len(head) + len(report) <= MOST:
        return f"{head}\n\n---\n\n{report.rstrip()}\n"
    return f"{head}\n\nThe report is `reports/{cause.id}.md` in the results folder.\n"


def marker_of(cause: str) -> str:
    """Return the marker by which the issue of a cause is found again."""
    return f"<!-- harness-break: {cause} -->"


def this_repository(environ: Mapping[str, str], folder: Path) -> str:
    """Return the only repository whose tracker may be written to, as "owner/name".

    It is GITHUB_REPOSITORY in a workflow, else the git remote. Raises `UserMistake` if there is neither.
    """
    if named := environ.get("GITHUB_REPOSITORY"):
        return named
    match = _REMOTE.search(git_output(folder, "remote", "get-url", "origin"))
    if match is None:
        raise UserMistake(
            "can't tell which repository this is: GITHUB_REPOSITORY is not set and there is no git remote",
            hint="run this in a checkout of the repository that gets the issues",
        )
    return f"{match['owner']}/{match['name']}"


@frozen
class Gh:
    """The `gh` program for one repository; `label` marks the issues of the harness."""

    repository: str
    label: str = LABEL

    def issues(self) -> tuple[Issue, ...]:
        """Return every issue with the label, open and closed. Raises `UserMistake` and `NoNetwork`."""
        words = ["issue", "list", "--label", self.label, "--state", "all", "--limit", str(_LISTED)]
        rows = json.loads(self._call([*words, "--json", "number,title,body,state"]) or "[]")
        return tuple(Issue(row["number"], row["title"], row["body"], row["state"].upper() == "OPEN") for row in rows)

    def line(self, action: Action) -> str:
        """Return the command line of an action, quoted for a shell; it reads the body from standard input."""
        return shlex.join(["gh", *self._words(action), "--repo", self.repository])

    def do(self, action: Action) -> None:
        """Carry out an action. Raises `UserMistake` and `NoNetwork`."""
        if action.kind is ActionKind.OPEN:
            # --force: no error if the label exists.
            self._call(["label", "create", self.label, "--force", "--description", "found by regression-harness"])
        self._call(self._words(action), text=action.body)

    def _words(self, action: Action) -> list[str]:
        number = str(action.number)
        match action.kind:
            case ActionKind.OPEN:
                return ["issue", "create", "--title", action.title, "--label", self.label, "--body-file", "-"]
            case ActionKind.UPDATE:
                return ["issue", "edit", number, "--title", action.title, "--body-file", "-"]
            case ActionKind.CLOSE | ActionKind.REOPEN:
                return ["issue", action.kind.value, number]

    def _call(self, words: list[str], *, text: str = "") -> str:
        """Run `gh` for this repository and return its output."""
        command = ["gh", *words, "--repo", self.repository]
        try:
            ended = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        except OSError as error:
            raise UserMistake("gh is not installed", hint="install the GitHub CLI: https://cli.github.com") from error
        if ended.returncode != 0:
            why = next(iter(ended.stderr.strip().splitlines()), f"exit status {ended.returncode}")
            raise NoNetwork(f"gh {words[0]} {words[1]} failed: {why}", hint="gh auth status says more")
        return ended.stdout
