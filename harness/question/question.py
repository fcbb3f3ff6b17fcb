"""A question: a request with what it names looked up, such as its repro, both ends, and what all probes share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import field, frozen

from harness.model.culprit import Level
from harness.question.ends import End, release_end
from harness.question.request import Policy

if TYPE_CHECKING:
    from pathlib import Path

    from harness.model import Combination, Repro


def _read_end(end: End | str | None) -> End | None:
    return release_end(end) if isinstance(end, str) else end


@frozen
class Question:
    """A request with what it names looked up: which change broke (or fixed) `repro`, between `good` and `bad`?

    `subject` is the package to look at (normalised), "" to find it. `combination` is what all probes share: the Python,
    the requirements, without the subject if its releases are tried, and what is held. An end is a release, a day, a
    lock file, an environment, a commit or a Python; None for one that the repro's bounds give or the search has to
    find. A text is a release. `depth` is how deep to go; `as_of` is "era", "none" or an ISO date. `typed` are the words
    that name the repro and the settings, quoted for a shell; `notes` are sentences about choices already made for the
    user. `root` is the project in whose copies it runs.
    """

    subject: str
    repro: Repro
    combination: Combination
    good: End | None = field(default=None, converter=_read_end)
    bad: End | None = field(default=None, converter=_read_end)
    depth: Level = Level.REGION
    policy: Policy = Policy()
    as_of: str | None = None
    typed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    root: Path | None = None

    @property
    def command(self) -> str:
        """The command that asks it, without its ends; with the depth unless that is the usual one."""
        usual = usual_depth(self.subject, self.policy)
        depth = () if self.depth is usual else ("--depth", self.depth.value)
        subject = (self.subject,) if self.subject else ()
        return " ".join(("harness bisect", *subject, *self.typed, *self.policy.typed, *depth))


def usual_depth(subject: str, policy: Policy) -> Level:
    """Return how deep a question goes: to the commit with a repository, to the lines for a named package."""
    if policy.ask:
        return Level.RELEASE
    if policy.git:
        return Level.COMMIT
    return Level.REGION if subject else Level.RELEASE
