"""A plan: the releases that can be tried, the ends, and the choices made for the user."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from attrs import evolve, frozen
from packaging.requirements import Requirement

from harness.environment.resolve import ERA_MARGIN
from harness.errors import UnknownRelease
from harness.model import Combination, Device, Lock, Release, normalized_name
from harness.model.combination import AsOf
from harness.model.repro import Bounds
from harness.planning.pins import holds_of, told_holds
from harness.planning.release_ends import check_order, ends_of, tells_of_a_fix
from harness.probe import Probe
from harness.request.parsing import as_of, required_name, version_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from collections.abc import Set as AbstractSet
    from datetime import datetime

    from packaging.tags import Tag
    from packaging.version import Version

    from harness.environment import Index, Interpreter
    from harness.model import Repro
    from harness.request.question import Question


@frozen
class LeftOut:
    """A release inside the range that is not tried, and why."""

    release: str
    reason: str


@frozen
class Plan:
    """Everything that a search needs before its first probe.

    `releases` are those that can be tried, in version order; `good` and `bad` are positions in it, or None if the
    search has to find that end; `choices` are sentences about defaults, with the option that changes each; `anchor`
    is a lock near which every release is resolved, instead of the bad end's.
    """

    question: Question
    repro: Repro
    interpreter: Interpreter
    device: Device
    releases: tuple[Release, ...]
    good: int | None
    bad: int | None
    left_out: tuple[LeftOut, ...]
    as_of: str
    requirements: tuple[str, ...]
    holds: tuple[str, ...]
    choices: tuple[str, ...] = ()
    anchor: Lock | None = None

    @property
    def subject(self) -> str:
        """The project that is bisected over, normalised."""
        return normalized_name(self.question.subject)

    def combination(self, position: int, near: Lock | None) -> Combination:
        """Return the combination for one release, resolved near a lock."""
        release = self.releases[position]
        return Combination(
            python=self.interpreter.version,
            requirements=(*self.requirements, f"{self.subject}=={release.version}"),
            holds=self.holds,
            as_of=self._date_for(release),
            near=near.id if near is not None else None,
            device=self.device,
            prereleases=(self.subject,) if release.version.is_prerelease else (),
            from_source=self.from_source_for(release),
        )

    def from_source_for(self, *releases: Release) -> tuple[str, ...]:
        """Return the projects that may be built; without the subject, if each of these releases of it has a wheel."""
        allowed = self.question.from_source
        tags = frozenset(self.interpreter.wheel_tags()) if allowed else frozenset()
        python = self.interpreter.version
        need = [one.left_out_because(python=python, tags=tags, prereleases=True) is not None for one in releases]
        if any(need) or not need:
            return allowed
        return tuple(name for name in allowed if normalized_name(name) != self.subject)

    def probe(self, position: int, near: Lock | None, attempt: int = 0) -> Probe:
        """Return the probe of one release."""
        return Probe(self.repro, self.combination(position, near), near, attempt)

    def _date_for(self, release: Release) -> datetime | None:
        return AsOf.read(self.as_of).of(release.uploaded + ERA_MARGIN if release.uploaded else None)


def make_plan(question: Question, *, index: Index, interpreter: Interpreter, device: Device) -> Plan:
    """Plan a question: fill in what it leaves open from the repro's metadata and the index.

    Raises `UnknownProject`, `UnknownRelease`, `UserMistake` and `NoNetwork`.
    """
    bounds = question.repro.subjects.get(normalized_name(question.subject), Bounds())
    choices: list[str] = []
    if tells_of_a_fix(question, bounds):
        question = evolve(question, find_fix=True)
        choices.append("looking for the fix: the repro's bad release is older than its good one")
    good, bad = ends_of(question, bounds, choices)
    check_ends(index, question.subject, (good, bad))
    check_order(question, good, bad)
    return fill_plan(question, good, bad, choices, index=index, interpreter=interpreter, device=device)


def fill_plan(
    question: Question,
    good: str | None,
    bad: str | None,
    choices: Iterable[str] = (),
    *,
    index: Index,
    interpreter: Interpreter,
    device: Device,
    near: str = "the bad end",
) -> Plan:
    """Make a plan between two ends that are known to exist; without an end (None) the range is open there.

    `choices` say how the ends were chosen; `near` says which other packages are kept. Raises the same errors as
    `make_plan`.
    """
    subject = normalized_name(question.subject)
    repro = question.repro
    bounds = repro.subjects.get(subject, Bounds())
    chosen = list(choices)
    day = str(as_of(question.as_of or bounds.as_of))
    holds = holds_of(repro, subject, {required_name(text) for text in question.with_}, question.hold)
    if not question.as_of:
        chosen.append(f"other packages: {_other_packages(day, near)} (--as-of changes it)")
    chosen += told_holds(holds, question.hold)
    releases, left_out = _usable(question, index.releases(subject), interpreter, good, bad)
    versions = [release.version for release in releases]
    return Plan(
        question=question,
        repro=repro,
        interpreter=interpreter,
        device=device,
        releases=releases,
        good=_position(good, versions),
        bad=_position(bad, versions),
        left_out=left_out,
        as_of=day,
        requirements=_requirements(question, repro, subject),
        holds=tuple(holds),
        choices=tuple(chosen),
    )


def check_ends(index: Index, subject: str, ends: Iterable[str | None]) -> None:
    """Check that the index has the releases that ends name; None is skipped.

    Raises `UnknownRelease` if it does not have one, and `UserMistake` if an end is not a version.
    """
    for end in ends:
        if end is not None and index.release(subject, str(version_of(end))) is None:
            hint = _near_releases(end, index.releases(subject))
            raise UnknownRelease(normalized_name(subject), end, "no such release", hint=hint)


def why_left_out(release: Release, question: Question, interpreter: Interpreter, tags: AbstractSet[Tag]) -> str | None:
    """Return why a release of the subject can't be tried, or None if it can."""
    return release.left_out_because(
        python=interpreter.version,
        tags=tags,
        prereleases=question.prereleases,
        build_from_source=normalized_name(question.subject) in question.from_source,
    )


def releases_between(index: Index, plan: Plan, project: str, older: str, newer: str) -> tuple[Release, ...]:
    """Return the releases of another project between two versions, both included, that can be tried."""
    question = evolve(plan.question, subject=project, find_fix=False)
    return _usable(question, index.releases(project), plan.interpreter, older, newer)[0]


def _usable(
    question: Question,
    releases: tuple[Release, ...],
    interpreter: Interpreter,
    good: str | None,
    bad: str | None,
) -> tuple[tuple[Release, ...], tuple[LeftOut, ...]]:
    """Return the releases between the ends that can be tried, and the others with their reasons."""
    ends = {version_of(end) for end in (good, bad) if end is not None}
    oldest, newest = (bad, good) if question.find_fix else (good, bad)
    inside = [
        release
        for release in releases
        if (oldest is None or release.version >= version_of(oldest))
        and (newest is None or release.version <= version_of(newest))
    ]
    tags = frozenset(interpreter.wheel_tags())
    usable, left_out = [], []
    for release in inside:
        reason = why_left_out(release, question, interpreter, tags)
        # A user who names a pre-release or a yanked release as an end wants it tried.
        named = release.version in ends and reason is not None and reason.startswith(("pre-release", "yanked"))
        if reason is None or named:
            usable.append(release)
        else:
            left_out.append(LeftOut(str(release.version), reason))
            if release.version in ends:
                raise UnknownRelease(release.project, str(release.version), reason, hint="choose another end")
    if not usable:
        reasons = sorted({row.reason for row in left_out}) or ["no releases"]
        raise UnknownRelease(
            normalized_name(question.subject), "(all)", f"no release can be tried: {'; '.join(reasons)}",
            hint="--python picks another interpreter, --pre includes pre-releases, --build allows source releases",
        )  # fmt: skip
    return tuple(usable), tuple(left_out)


def _requirements(question: Question, repro: Repro, subject: str) -> tuple[str, ...]:
    """Return the repro's dependencies without the subject, with those of `--with` in place of or added to them."""
    return merged_requirements(repro.dependencies, question.with_, {subject})


def merged_requirements(
    own: tuple[str, ...], given: tuple[str, ...], left_out: Collection[str] = frozenset()
) -> tuple[str, ...]:
    """Merge requirements: `own` without those for projects in `left_out`, replaced by `given` for the same project.

    Other given requirements come last. Raises `UserMistake` for an invalid requirement.
    """
    said: dict[str, list[str]] = {}
    for requirement in given:
        said.setdefault(required_name(requirement), []).append(requirement)
    merged: list[str] = []
    replaced = set(said)
    for text in own:
        name = normalized_name(Requirement(text).name)
        if name in said:
            merged += said.pop(name)
        elif name not in left_out and name not in replaced:
            merged.append(text)
    return (*merged, *(requirement for rest in said.values() for requirement in rest))


def _other_packages(as_of: str, near: str) -> str:
    return {
        "era": "as they were on the day of each release",
        "none": f"as close as possible to those of {near}",
    }.get(as_of, f"as they were on {as_of}")


def _position(end: str | None, versions: list[Version]) -> int | None:
    return versions.index(version_of(end)) if end is not None else None


def _near_releases(version: str, releases: tuple[Release, ...]) -> str:
    known = [str(release.version) for release in releases]
    close = difflib.get_close_matches(version, known, n=3, cutoff=0.5) or known[-3:]
    return f"close to it: {', '.join(close)}"
