"""The options that say in which project a command runs, and what `--run`, `--repro` and `--with` come to with them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from attrs import frozen

from harness.cli.repro_options import chosen_repro, digest_of, parameters
from harness.errors import UserMistake
from harness.request.commands import read_beside, read_command, with_folders

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.model import Repro
    from harness.request.project import Projects

_OPTIONS = [
    click.option(
        "--project",
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="Run the command in fresh copies of this project [default: the nearest one above].",
    ),
    click.option("--extra", "extras", multiple=True, metavar="NAME", help="An extra of the project to install."),
    click.option(
        "--group", "groups", multiple=True, metavar="NAME", help="A dependency group of the project to install."
    ),
    click.option("--unpin", is_flag=True, help="Of the project's exact pins keep only the names."),
    click.option(
        "--constraints",
        metavar="PATH",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Write the constraints that make it pass there [default: below the results folder].",
    ),
]


def project_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a project."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@frozen
class ChosenProject:
    """What the options say of the project."""

    folder: Path | None = None
    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    unpin: bool = False


@frozen
class ChosenCommand:
    """The repro that the options name, what `--with` asks of an index, and what was chosen for the user."""

    repro: Repro
    with_: tuple[str, ...]
    told: tuple[str, ...] = ()


def chosen_command(
    repro: str | None,
    run: str | None,
    subject: str | None,
    params: tuple[str, ...],
    with_: tuple[str, ...],
    project: ChosenProject,
    projects: Projects,
) -> ChosenCommand:
    """The repro of a question, in the copy of a project where it is a command. Raises `UserMistake` and `BadRepro`."""
    beside = read_beside(with_, projects)
    if not run:
        if project.folder is not None:
            raise UserMistake("--project goes with --run", hint='for instance --project . --run "pytest"')
        found = chosen_repro(repro, run, subject, params)
        return ChosenCommand(with_folders(found, beside.folders), beside.requirements, beside.told)
    if repro:
        raise UserMistake("--repro and --run exclude each other; give one")
    command = read_command(
        run,
        beside,
        projects,
        folder=project.folder,
        start=Path.cwd(),
        extras=project.extras,
        groups=project.groups,
        unpin=project.unpin,
        content_digest=digest_of(run),
    )
    return ChosenCommand(command.repro.with_params(parameters(params)), beside.requirements, command.told)
