"""Folders that `--with` names in place of releases: `.`, `peft @ ./clone`, for a commit `peft @ ./clone@1a2b3c4`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import UserMistake
from harness.repository.clones import archive_of
from harness.repository.git import Repository

if TYPE_CHECKING:
    from harness.request.project import Project, Projects

_NAMED_FOLDER = re.compile(r"^(?P<name>[A-Za-z0-9][\w.-]*)\s*(\[[^]]*\])?\s*@\s*(?P<path>[.~/].*|file://.*)$")


def folder_of(text: str) -> str | None:
    """The folder that a `--with` value names, with `@REVISION` where it has one; None where it is a requirement."""
    if (named := _NAMED_FOLDER.match(text)) is not None:
        return named.group("path").removeprefix("file://")
    return text if text.startswith((".", "/", "~")) else None


def read_folder(text: str, projects: Projects) -> Project:
    """The project in a folder as it is, or as in a commit of its repository, with what it needs to be used.

    Raises `UserMistake` and `BadRepository`.
    """
    path = Path(text).expanduser()
    folder, at, revision = text.rpartition("@")
    if path.is_dir() or not at or not folder:
        if not path.is_dir():
            raise UserMistake(f"--with {text}: there is no such folder")
        return projects.read(path, for_tests=False)
    repository = Repository.open(Path(folder))
    commit = repository.commit(revision)
    files = archive_of(repository, commit, projects.workspace.clones / "commits")
    return projects.read(files, for_tests=False, as_of=commit.date)
