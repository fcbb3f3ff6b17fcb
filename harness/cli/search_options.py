"""The options of `harness bisect`: how it searches, and the project whose command it runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from harness.cli.options import Choice, grouped, option
from harness.model.culprit import Level
from harness.request.commands import ChosenProject
from harness.request.parsing import read_duration
from harness.request.question import Policy

made_option = option(
    "Question",
    "--made",
    is_flag=True,
    help="Search the releases of SUBJECT that write the files of the repro's first step, not those that read them.",
)
_OPTIONS = [
    made_option,
    option("Question", "--find-fix", is_flag=True, help="Find the release that fixed it: good is newer than bad."),
    option("Search", "--pre", "prereleases", is_flag=True, help="Try pre-releases of the subject too."),
    option(
        "Search",
        "--confirm",
        type=click.IntRange(0, 20),
        default=None,
        help="Run both sides of the change this often again [default: as often as it takes to be sure].",
    ),
    option(
        "Search", "--ask", is_flag=True, help="Judge each run yourself: good, bad or skip; for what only eyes can see."
    ),
    option("Search", "--flaky", is_flag=True, help="One run does not tell good from bad: repeat runs from the start."),
    option(
        "Search",
        "--confidence",
        type=click.FloatRange(0.5, 1.0, max_open=True),
        default=0.99,
        show_default=True,
        help="How sure a release has to be before it is named.",
    ),
    option(
        "Search",
        "--trust-ends",
        is_flag=True,
        help="With --flaky: you are certain that the bug never shows at the good end. Saves runs.",
    ),
    option(
        "Search",
        "--fork/--no-fork",
        default=True,
        help="Fork runs that search for lines: faster. Proofs are fresh processes.",
    ),
    option(
        "Ends", "--git", default="", metavar="PATH|URL|auto", help="Repository of SUBJECT, to go down to the commit."
    ),
    option(
        "Search",
        "--depth",
        type=Choice([level.value for level in Level]),
        default=None,
        show_default="region; release if no package is named; commit with --git",
        help="How deep to go: " + ", ".join(level.value for level in Level) + ".",
    ),
    option(
        "Search",
        "--time",
        "time_s",
        metavar="TIME",
        default="10m",
        show_default=True,
        callback=lambda _context, _option, text: read_duration(text, "--time"),
        help="How long to search below the release: 90s, 10m, 1h.",
    ),
]

_PROJECT_OPTIONS = [
    option(
        "Project",
        "--project",
        "folder",
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="Run the command in fresh copies of this project [default: the nearest one above].",
    ),
    option("Project", "--extra", "extras", multiple=True, metavar="NAME", help="An extra of the project to install."),
    option(
        "Project",
        "--group",
        "groups",
        multiple=True,
        metavar="NAME",
        help="A dependency group of the project to install.",
    ),
    option("Project", "--unpin", is_flag=True, help="Ignore the versions of the project's exact pins."),
    option(
        "Project",
        "--constraints",
        metavar="PATH",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Write the constraints that make it pass to PATH [default: below the results folder].",
    ),
]


def search_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for the search, which the command gets as `policy` and `depth`."""
    command = grouped("policy", Policy)(command)
    for add in reversed(_OPTIONS):
        command = add(command)
    return command


def project_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a project to a command, which gets `project` (a `ChosenProject`) and `constraints`."""
    command = grouped("project", ChosenProject)(command)
    for add in reversed(_PROJECT_OPTIONS):
        command = add(command)
    return command
