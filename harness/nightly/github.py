"""The own repository and its issues, through git and gh; no other repository's tracker is ever touched."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from typing import TYPE_CHECKING

from attrs import frozen

from harness.errors import NoNetwork, UserMistake
from harness.nightly.tracker import LABEL, Action, Deed, Issue

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_REMOTE = re.compile(r"(?:^|[/@:])(?P<owner>[\w.-]+)/(?P<name>[\w.-]+?)(?:\.git)?/?$")
_MOST = 1000


def own_repository(asked: str | None, environ: Mapping[str, str], folder: Path) -> str:
    """The repository whose tracker may be written to, as "owner/name".

    It is the one of the workflow (GITHUB_REPOSITORY), else that of the git remote. Raises `UserMistake` where neither
    is there, and where `asked` names another.
    """
    own = [name for name in (environ.get("GITHUB_REPOSITORY", ""), _of_remote(folder)) if name]
    if not own:
        raise UserMistake(
            "can't tell which repository is the own one: there is neither GITHUB_REPOSITORY nor a git remote",
            hint="run this in a checkout of the repository whose issues are to be kept",
        )
    if asked is None:
        return own[0]
    if asked.lower() not in map(str.lower, own):
        raise UserMistake(
            f"{asked} is not the own repository, which is {own[0]}; nothing is posted to someone else's tracker",
            hint="harness upstream prints an issue for a person to send",
        )
    return asked


def _of_remote(folder: Path) -> str:
    try:
        told = subprocess.run(
            ["git", "remote", "get-url", "origin"], cwd=folder, capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    match = _REMOTE.search(told.stdout.strip()) if told.returncode == 0 else None
    return f"{match['owner']}/{match['name']}" if match else ""


@frozen
class Gh:
    """The `gh` executable, for one repository; `label` marks the issues that are ours."""

    repository: str
    label: str = LABEL

    def issues(self) -> tuple[Issue, ...]:
        """Every issue with our label, closed ones too. Raises `UserMistake` and `NoNetwork`."""
        words = ["issue", "list", "--label", self.label, "--state", "all", "--limit", str(_MOST)]
        rows = json.loads(self._call([*words, "--json", "number,title,body,state"]) or "[]")
        return tuple(Issue(row["number"], row["title"], row["body"], row["state"].upper() == "OPEN") for row in rows)

    def command(self, action: Action) -> list[str]:
        """The words after `gh` that do it; a body is read from standard input."""
        number = str(action.number)
        match action.deed:
            case Deed.OPEN:
                words = ["issue", "create", "--title", action.title, "--label", self.label, "--body-file", "-"]
            case Deed.UPDATE:
                words = ["issue", "edit", number, "--title", action.title, "--body-file", "-"]
            case Deed.CLOSE:
                words = ["issue", "close", number]
            case Deed.REOPEN:
                words = ["issue", "reopen", number]
        return [*words, "--repo", self.repository]

    def line(self, action: Action) -> str:
        """The command as a person would type it."""
        return shlex.join(["gh", *self.command(action)])

    def do(self, action: Action) -> None:
        """Do it. Raises `UserMistake` and `NoNetwork`."""
        if action.deed is Deed.OPEN:
            # --force: no error where the label is there already.
            self._call(
                ["label", "create", self.label, "--force", "--description", "found by regression-harness"], own=True
            )
        self._call(self.command(action), text=action.body, own=False)

    def _call(self, words: list[str], *, text: str = "", own: bool = True) -> str:
        """Output of one call; with `own` the repository is added to the words."""
        told = ["gh", *words, *(["--repo", self.repository] if own else [])]
        try:
            ended = subprocess.run(told, input=text, capture_output=True, text=True, check=False)
        except OSError as error:
            raise UserMistake("there is no gh on this machine", hint="install GitHub's command line tool") from error
        if ended.returncode != 0:
            why = next(iter(ended.stderr.strip().splitlines()), f"exit status {ended.returncode}")
            raise NoNetwork(f"gh {words[0]} {words[1]} did not work: {why}", hint="gh auth status tells more")
        return ended.stdout
