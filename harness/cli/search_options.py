"""The options of `harness bisect`: how it searches, and the project whose command it runs."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click
from attrs import fields

from harness.cli.options import FILE, grouped, option
from harness.model.culprit import Level
from harness.question.commands import ChosenProject
from harness.question.parsing import read_duration
from harness.question.question import Policy

_search = partial(option, "Search")
_project = partial(option, "Project")

made_option = option(
    "Question",
    "--made",
    is_flag=True,
    help="Search the releases of SUBJECT that write the files of the repro's first step, not those that read them.",
)
pre_option = _search("--pre", "prereleases", is_flag=True, help="Try pre-releases of the subject too.")
_OPTIONS = [
    made_option,
    option("Question", "--find-fix", is_flag=True, help="Find the release that fixed it: good is newer than bad."),
    pre_option,
    _search(
        "--confirm",
        type=click.IntRange(0, 20),
        default=None,
        help="Run both sides of the change this often again [default: as often as it takes to be sure].",
    ),
    _search("--ask", is_flag=True, help="Judge each run yourself: good, bad or skip; for what only eyes can see."),
    _search("--flaky", is_flag=True, help="One run does not tell good from bad: repeat runs from the start."),
    _search(
        "--confidence",
        type=click.FloatRange(0.5, 1.0, max_open=True),
        default=0.99,
        show_default=True,
        help="How sure a release has to be before it is named.",
    ),
    _search(
        "--trust-ends",
        is_flag=True,
        help="With --flaky: you are certain that the bug never shows at the good end. Saves runs.",
    ),
    _search(
        "--fork/--no-fork", default=True, help="Fork runs that search for lines: faster. Proofs are fresh processes."
    ),
    option(
        "Ends", "--git", default="", metavar="PATH|URL|auto", help="Repository of SUBJECT, to go down to the commit."
    ),
    _search(
        "--depth",
        type=click.Choice([level.value for level in Level]),
        default=None,
        show_default="region; release if no package is named; commit with --git",
        help="How deep to go: " + ", ".join(level.value for level in Level) + ".",
    ),
    _search(
        "--time",
        "time_s",
        metavar="TIME",
        default=None,
        show_default="2m, or as long as 40 runs take, up to 10m",
        callback=lambda _context, _option, text: read_duration(text, "--time") if text is not None else None,
        help="How long to search below the release: 90s, 10m, 1h.",
    ),
]

_PROJECT_OPTIONS = [
    _project(
        "--project",
        "folder",
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="Run the command in fresh copies of this project [default: the nearest one above].",
    ),
    _project("--extra", "extras", multiple=True, metavar="NAME", help="An extra of the project to install."),
    _project("--group", "groups", multiple=True, metavar="NAME", help="A dependency group of the project to install."),
    _project("--unpin", is_flag=True, help="Ignore the versions of the project's exact pins."),
    _project(
        "--constraints",
        metavar="PATH",
        type=FILE,
        help="Write the constraints that make it pass to PATH [default: below the results folder].",
    ),
]


# The command gets them as `policy` and `depth`.
search_options = grouped("policy", Policy, [field.name for field in fields(Policy)], _OPTIONS)
# The command gets them as `project` and `constraints`.
project_options = grouped("project", ChosenProject, [field.name for field in fields(ChosenProject)], _PROJECT_OPTIONS)
