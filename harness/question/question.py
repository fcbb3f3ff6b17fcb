"""A question: a request with what it names looked up, such as its repro and both ends; and what all probes share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve, field, frozen
from packaging.requirements import Requirement

from harness.model import Combination, Device, Lock, Repro, is_prerelease, name_of
from harness.model.culprit import Level
from harness.model.lock import ANY_SOURCE, NO_SOURCE
from harness.question.request import End, Policy, release_end

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime
    from pathlib import Path

    Versions = Mapping[str, str | None]


def _read_end(end: End | str | None) -> End | None:
    return release_end(end) if isinstance(end, str) else end


@frozen
class Question:
    """A request with what it names looked up: which change broke (or fixed) `repro`, between `good` and `bad`?

    `subject` is the package to look at, "" to find it. An end is a release, a day, a lock file, an environment, a
    commit or a Python; None for one that the repro's bounds give or the search has to find. A text is a release.
    `depth` is how deep to go. `with_` and `hold` are requirements; `as_of` is "era",
    "none" or an ISO date. `from_source` names projects that may be built from source. `typed` are the words that name
    the repro and the settings, quoted for a shell; `notes` are sentences about choices already made for the user.
    `root` is the project in whose copies it runs.
    """

    subject: str
    repro: Repro
    good: End | None = field(default=None, converter=_read_end)
    bad: End | None = field(default=None, converter=_read_end)
    depth: Level = Level.REGION
    policy: Policy = Policy()
    with_: tuple[str, ...] = ()
    hold: tuple[str, ...] = ()
    as_of: str | None = None
    from_source: tuple[str, ...] = ()
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


@frozen
class Scope:
    """What all probes of a question share: what runs, where, and with which requirements.

    `python` is a full version. `requirements` are without the subject if releases of it are tried. `from_source` names
    projects that may be built.
    """

    repro: Repro
    python: str
    requirements: tuple[str, ...]
    holds: tuple[str, ...] = ()
    device: Device = Device.CPU
    from_source: tuple[str, ...] = ()
    subject: str = ""
    policy: Policy = Policy()

    @property
    def any_source(self) -> tuple[str, ...]:
        """What may be built for an end that names it by itself: everything without a wheel."""
        return self.from_source if NO_SOURCE in self.from_source else (ANY_SOURCE,)

    def combination(self, requirements: Iterable[str], as_of: datetime | None, near: Lock | None = None) -> Combination:
        """Return the combination of these requirements at a time, on the device of the question."""
        return Combination(
            python=self.python,
            requirements=tuple(requirements),
            holds=self.holds,
            as_of=as_of,
            near=near.id if near is not None else None,
            device=self.device,
            from_source=self.from_source,
        )

    def at(
        self, versions: Versions, requirements: Iterable[str], as_of: datetime | None, near: Lock | None = None
    ) -> Combination:
        """Return the combination of these requirements with some packages at other versions; None leaves one out.

        What is required of such a package keeps its place and its extras. Packages that conflict with these versions
        change too; all others keep those of `near`, if possible.
        """
        pinned = {name: version for name, version in versions.items() if version is not None}
        named = [text for text in requirements if name_of(text) not in versions or name_of(text) in pinned]
        required = set(map(name_of, named))
        texts = [f"{unbounded(text)}=={pinned[name_of(text)]}" if name_of(text) in pinned else text for text in named]
        texts += [f"{name}=={version}" for name, version in pinned.items() if name not in required]
        prereleases = tuple(name for name, version in pinned.items() if is_prerelease(version))
        return evolve(self.combination(texts, as_of, near), prereleases=prereleases)


def unbounded(text: str) -> str:
    """Return a requirement with its extras and without its versions."""
    requirement = Requirement(text)
    return requirement.name + (f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else "")
