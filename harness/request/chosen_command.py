"""Combines `--run`, `--repro`, `--project` and `--with` into a repro and requirements."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from harness.errors import UserMistake
from harness.request.chosen_repro import chosen_repro, digest_of, parameters
from harness.request.commands import read_beside, read_command, with_folders

if TYPE_CHECKING:
    from harness.model import Repro
    from harness.request.commands import ChosenProject
    from harness.request.project import Projects
    from harness.settings import Settings


@frozen
class ChosenCommand:
    """The repro that the options name, the requirements of `--with`, and the choices made for the user."""

    repro: Repro
    with_: tuple[str, ...]
    told: tuple[str, ...] = ()


def chosen_command(
    repro: str | None,
    run: str | None,
    subject: str | None,
    settings: Settings,
    project: ChosenProject,
    projects: Projects,
) -> ChosenCommand:
    """Return the repro of a question; a command runs in a copy of its project. Raises `UserMistake` and `BadRepro`."""
    beside = read_beside(settings.with_, projects)
    if not run:
        if project.folder is not None:
            raise UserMistake("--project goes with --run", hint='for instance --project . --run "pytest"')
        found = chosen_repro(repro, run, subject, settings.params)
        return ChosenCommand(with_folders(found, beside.folders), beside.requirements, beside.told)
    if repro:
        raise UserMistake("give either --repro or --run")
    command = read_command(run, beside, projects, project, start=Path.cwd(), content_digest=digest_of(run))
    return ChosenCommand(command.repro.with_params(parameters(settings.params)), beside.requirements, command.told)
