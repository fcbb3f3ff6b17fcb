"""Reads and writes the issues of this repository with git and gh. Never uses the tracker of another repository."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from typing import TYPE_CHECKING

from attrs import frozen

from harness.errors import NoNetwork, UserMistake
from harness.nightly.tracker import LABEL, Action, ActionKind, Issue
from harness.repository.git import git_output

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_REMOTE = re.compile(r"(?:^|[/@:])(?P<owner>[\w.-]+)/(?P<name>[\w.-]+?)(?:\.git)?/?$")
_MOST = 1000


def this_repository(asked: str | None, environ: Mapping[str, str], folder: Path) -> str:
    """Return the only repository whose tracker may be written to, as "owner/name".

    It is GITHUB_REPOSITORY in a workflow, else the git remote. Raises `UserMistake` if there is neither, or if
    `asked` names another repository.
    """
    own = [name for name in (environ.get("GITHUB_REPOSITORY", ""), _of_remote(folder)) if name]
    if not own:
        raise UserMistake(
            "can't tell which repository this is: GITHUB_REPOSITORY is not set and there is no git remote",
            hint="run this in a checkout of the repository that gets the issues",
        )
    if asked is None:
        return own[0]
    if asked.lower() not in map(str.lower, own):
        raise UserMistake(
            f"{asked} is not this repository, {own[0]}; the harness posts nothing to other trackers",
            hint="harness upstream prints an issue that you can send yourself",
        )
    return asked


def _of_remote(folder: Path) -> str:
    match = _REMOTE.search(git_output(folder, "remote", "get-url", "origin"))
    return f"{match['owner']}/{match['name']}" if match else ""


@frozen
class Gh:
    """The `gh` program for one repository; `label` marks the issues of the harness."""

    repository: str
    label: str = LABEL

    def issues(self) -> tuple[Issue, ...]:
        """Return every issue with the label, open and closed. Raises `UserMistake` and `NoNetwork`."""
        words = ["issue", "list", "--label", self.label, "--state", "all", "--limit", str(_MOST)]
        rows = json.loads(self._call([*words, "--json", "number,title,body,state"]) or "[]")
        return tuple(Issue(row["number"], row["title"], row["body"], row["state"].upper() == "OPEN") for row in rows)

    def command(self, action: Action) -> list[str]:
        """Return the arguments of `gh` for an action; it reads the body from standard input."""
        number = str(action.number)
        match action.kind:
            case ActionKind.OPEN:
                words = ["issue", "create", "--title", action.title, "--label", self.label, "--body-file", "-"]
            case ActionKind.UPDATE:
                words = ["issue", "edit", number, "--title", action.title, "--body-file", "-"]
            case ActionKind.CLOSE:
                words = ["issue", "close", number]
            case ActionKind.REOPEN:
                words = ["issue", "reopen", number]
        return [*words, "--repo", self.repository]

    def line(self, action: Action) -> str:
        """Return the command line, quoted for a shell."""
        return shlex.join(["gh", *self.command(action)])

    def do(self, action: Action) -> None:
        """Carry out an action. Raises `UserMistake` and `NoNetwork`."""
        if action.kind is ActionKind.OPEN:
            # --force: no error if the label exists.
            self._call(
                ["label", "create", self.label, "--force", "--description", "found by regression-harness"], own=True
            )
        self._call(self.command(action), text=action.body, own=False)

    def _call(self, words: list[str], *, text: str = "", own: bool = True) -> str:
        """Run `gh` and return its output; `own` adds the repository to the arguments."""
        command = ["gh", *words, *(["--repo", self.repository] if own else [])]
        try:
            ended = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        except OSError as error:
            raise UserMistake("gh is not installed", hint="install the GitHub CLI: https://cli.github.com") from error
        if ended.returncode != 0:
            why = next(iter(ended.stderr.strip().splitlines()), f"exit status {ended.returncode}")
            raise NoNetwork(f"gh {words[0]} {words[1]} failed: {why}", hint="gh auth status says more")
        return ended.stdout
