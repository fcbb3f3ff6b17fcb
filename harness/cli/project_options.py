"""The options for the project to run in, and for the file of constraints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.options import grouped
from harness.request.commands import ChosenProject

if TYPE_CHECKING:
    from collections.abc import Callable

_OPTIONS = [
    click.option(
        "--project",
        "folder",
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="Run the command in fresh copies of this project [default: the nearest one above].",
    ),
    click.option("--extra", "extras", multiple=True, metavar="NAME", help="An extra of the project to install."),
    click.option(
        "--group", "groups", multiple=True, metavar="NAME", help="A dependency group of the project to install."
    ),
    click.option("--unpin", is_flag=True, help="Ignore the versions of the project's exact pins."),
    click.option(
        "--constraints",
        metavar="PATH",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Write the constraints that make it pass to PATH [default: below the results folder].",
    ),
]


def project_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a project to a command, which gets `project` (a `ChosenProject`) and `constraints`."""
    command = grouped("project", ChosenProject)(command)
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
