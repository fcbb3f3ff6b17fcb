"""The options of a request: how it searches, and the project whose command it runs."""

from __future__ import annotations

import click

from harness.arguments import Option, OptionGroup, Trait
from harness.cli.options import FILE, Decorator, grouped, made_of, option, options_of, settings_options
from harness.model.culprit import Level
from harness.question.commands import ChosenProject
from harness.question.request import Policy, Request

_USUAL = "region; release if no package is named; commit with --git"
CONSTRAINTS = Option(
    "--constraints",
    OptionGroup.PROJECT,
    "Write the constraints that make it pass to PATH [default: below the results folder].",
    metavar="PATH",
    not_for=(Trait.PYTHONS, Trait.COMMITS),
)


def _depth_option(default: str) -> Decorator:
    """Add `--depth` to a command; `default` says what it is without one."""
    levels = [level.value for level in Level]
    words = f"How deep to go: {', '.join(levels)}."
    return option("Search", "--depth", type=click.Choice(levels), default=None, show_default=default, help=words)


_CONSTRAINTS = option("Project", CONSTRAINTS.flag, metavar=CONSTRAINTS.metavar, type=FILE, help=CONSTRAINTS.help)

# The command gets them as `policy` and `depth`.
search_options = grouped("policy", Policy, made_of(Policy), [*options_of(Policy), _depth_option(_USUAL)])
# The command gets them as `policy`, those of a history.
scan_options = grouped("policy", Policy, ("made", "prereleases"), options_of(Policy, "made", "prereleases"))
# The command gets them as `policy` and `depth`, and those of the project as `project`.
_GATE = ("confirm", "flaky", "confidence", "fork", "time_s")
gate_options = grouped("policy", Policy, _GATE, [*options_of(Policy, *_GATE), _depth_option("release")])
folder_options = grouped("project", ChosenProject, made_of(ChosenProject), options_of(ChosenProject))
# The command gets them as `project` and `constraints`.
project_options = grouped("project", ChosenProject, made_of(ChosenProject), [*options_of(ChosenProject), _CONSTRAINTS])

# The command gets what was typed as `request`, its other arguments beside it.
_REQUEST = ("subject", "repro", "run", "good", "bad", "depth", "policy", "project")
as_request = grouped("request", Request, _REQUEST, [])

# The command gets what else a question has as `settings`.
question_settings = settings_options(OptionGroup.LANES, OptionGroup.QUESTION, OptionGroup.RUNS, OptionGroup.LIMITS)
