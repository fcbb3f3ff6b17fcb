"""The options that say how `harness bisect` searches, as one frozen value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from attrs import field, frozen

from harness.cli.options import grouped
from harness.errors import UserMistake
from harness.model.culprit import Level
from harness.request.parsing import read_duration

if TYPE_CHECKING:
    from collections.abc import Callable


def _time_limit(text: str) -> float:
    return read_duration(text, "--time")


@frozen
class SearchOptions:
    """How a bisection searches. `time_limit` is in seconds and applies to the search for the culprit."""

    find_fix: bool
    prereleases: bool
    confirm: int | None
    flaky: bool
    confidence: float
    trust_ends: bool
    fork: bool
    git: str
    depth: Level = field(converter=Level)
    time_limit: float = field(converter=_time_limit)

    def __attrs_post_init__(self) -> None:
        if self.trust_ends and not self.flaky:
            raise UserMistake("--trust-ends goes with --flaky", hint="add --flaky, or leave out --trust-ends")

    @property
    def is_about_releases(self) -> bool:
        """Whether an option is given that only applies to a search over releases of one package."""
        return self.find_fix or self.flaky or self.trust_ends or self.prereleases or self.confirm is not None

    def as_fields(self) -> dict[str, Any]:
        """The fields of a `Question` that these options set."""
        names = ("find_fix", "prereleases", "confirm", "flaky", "confidence", "trust_ends", "fork", "git")
        return {**{name: getattr(self, name) for name in names}, "time_s": self.time_limit}


_OPTIONS = [
    click.option("--find-fix", is_flag=True, help="Find the release that fixed it: good is newer than bad."),
    click.option("--pre", "prereleases", is_flag=True, help="Try pre-releases of the subject too."),
    click.option(
        "--confirm",
        type=click.IntRange(0, 20),
        default=None,
        help="Run both sides of the change this often again [default: as often as it takes to be sure].",
    ),
    click.option("--flaky", is_flag=True, help="One run does not tell good from bad: repeat runs from the start."),
    click.option(
        "--confidence",
        type=click.FloatRange(0.5, 1.0, max_open=True),
        default=0.99,
        show_default=True,
        help="How sure a release has to be before it is named.",
    ),
    click.option(
        "--trust-ends",
        is_flag=True,
        help="With --flaky: you are certain that the bug never shows at the good end. Saves runs.",
    ),
    click.option("--fork/--no-fork", default=True, help="Fork runs that search for lines; proofs are fresh processes."),
    click.option("--git", default="", metavar="PATH|URL|auto", help="SUBJECT's repository, to go down to the commit."),
    click.option(
        "--depth",
        type=click.Choice([level.value for level in Level]),
        default=Level.REGION.value,
        show_default="region; release if no package is named",
        help="How deep to go: " + ", ".join(level.value for level in Level) + ".",
    ),
    click.option(
        "--time",
        "time_limit",
        metavar="TIME",
        default="10m",
        show_default=True,
        help="How long to search below the release: 90s, 10m, 1h.",
    ),
]


def search_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add these options to a command, which gets them as the argument `search`."""
    command = grouped("search", SearchOptions)(command)
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
