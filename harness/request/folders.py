"""Folders named by `--with` in place of releases: `.`, `peft @ ./clone`, or a commit `peft @ ./clone@1a2b3c4`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve

from harness.errors import UserMistake
from harness.model import normalized_name
from harness.repository.clones import archive_of
from harness.repository.git import Repository
from harness.repository.project_folder import project_folder

if TYPE_CHECKING:
    from harness.request.project import Project, Projects

_NAMED_FOLDER = re.compile(r"^(?P<name>[A-Za-z0-9][\w.-]*)\s*(\[[^]]*\])?\s*@\s*(?P<path>[.~/].*|file://.*)$")


def folder_of(text: str) -> tuple[str, str] | None:
    """Return the folder that a `--with` value names, with `@REVISION` if it has one, and the project name or "".

    None for a requirement.
    """
    if (named := _NAMED_FOLDER.match(text)) is not None:
        return named.group("path").removeprefix("file://"), named.group("name")
    return (text, "") if text.startswith((".", "/", "~")) else None


def read_folder(text: str, projects: Projects, name: str = "") -> Project:
    """Read the project in a folder, or in a commit of its repository, with its requirements.

    Raises `UserMistake` and `BadRepository`.
    """
    path = Path(text).expanduser()
    folder, at, revision = text.rpartition("@")
    if path.is_dir():
        project = projects.read(path, for_tests=False)
    elif not at or not folder:
        raise UserMistake(f"--with {text}: there is no such folder")
    else:
        repository = Repository.open(Path(folder))
        commit = repository.commit(revision)
        files = archive_of(repository, commit, projects.workspace.clones / "commits")
        inside = project_folder(repository, commit.sha, name)
        project = projects.read(files / inside, for_tests=False, as_of=commit.date)
        project = evolve(project, told=(f"commit {commit.described}", *project.told))
    if name and project.name and normalized_name(name) != normalized_name(project.name):
        raise UserMistake(
            f"--with {name} @ {text}: the project in that folder is {project.name}",
            hint="name the folder of the project itself, the one with its pyproject.toml",
        )
    return project
