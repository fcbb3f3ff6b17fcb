"""The releases of a subject as a line: those that can be tried, its ends, and what is installed beside them."""

from __future__ import annotations

import difflib
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.environment.dates import ERA_MARGIN, as_of
from harness.environment.index import public_version
from harness.environment.interpreter import target_of
from harness.errors import UnknownRelease, UserMistake
from harness.model import Lock, Release, Repro, normalized_name, parsed_version
from harness.model.lock import ERA, NONE, AsOf
from harness.model.repro import Bounds
from harness.model.requirements import required_name, unpinned
from harness.model.text import listed
from harness.probing import Probe
from harness.question.ends import check_order, release_end
from harness.question.package_set import PackageSet, Way
from harness.question.parsing import version_of
from harness.question.question import Question

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Sequence

    from harness.environment import Index, Interpreter
    from harness.probing.probe import Probing
    from harness.question.ends import End
    from harness.search import Trial


NO_HOLDS = "none"  # --hold none
_PYTHONS = tuple(f"3.{minor}" for minor in range(8, 15))


@frozen
class ReleaseLine:
    """The releases of a question's subject that can be tried, in version order.

    The ends of `question` are releases of the line, None for one that the search has to find. `left_out` maps releases
    inside the range that are not tried to the reason.
    """

    question: Question
    releases: tuple[Release, ...]
    left_out: dict[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        """The versions of the releases."""
        return tuple(str(release.version) for release in self.releases)

    @property
    def good(self) -> int | None:
        """The position of the good end."""
        return self._position(self.question.good)

    @property
    def bad(self) -> int | None:
        """The position of the bad end."""
        return self._position(self.question.bad)

    def _position(self, end: End | None) -> int | None:
        if end is None:
            return None
        return [release.version for release in self.releases].index(public_version(version_of(end.text)))

    def beside(self, lock: Lock | None) -> PackageSet:
        """Return what stands beside each release: what was the newest on a day, or else as in a lock if possible."""
        question, when = self.question, AsOf.read(self.question.as_of)
        return PackageSet(
            repro=question.repro,
            combination=evolve(question.combination, as_of=when.moment),
            way=Way.OWN_DAY if when.is_era else Way.DAY if lock is None else Way.NEAR,
            lock=lock,
            days={
                (question.subject, str(release.version)): release.uploaded + ERA_MARGIN
                for release in self.releases
                if release.uploaded is not None
            },
        )

    def probes(self, prober: Probing, lock: Lock | None, anchor: int | None) -> Callable[[Trial], Probe]:
        """Return a function that makes the probe of a trial, near the lock of a release; see `find_anchor`."""
        subject, names = self.question.subject, self.names
        near, alone = self.beside(lock), self.beside(None)

        def probe(trial: Trial) -> Probe:
            beside = alone if trial.position == anchor else near  # the lock was made for that release
            return beside.at(prober, {subject: names[trial.position]}, trial.attempt)

        return probe

    def noting(self, choices: Iterable[str]) -> ReleaseLine:
        """Return the line with sentences about choices in its question, before the others."""
        return evolve(self, question=evolve(self.question, notes=(*choices, *self.question.notes)))


def line_of(question: Question, *, index: Index, interpreter: Interpreter) -> ReleaseLine:
    """Return the line of a question; what that leaves open comes from the repro's metadata and the index.

    Raises `UnknownProject`, `UnknownRelease`, `UserMistake` and `NoNetwork`.
    """
    bounds = question.repro.subjects.get(question.subject, Bounds())
    choices: list[str] = []
    if tells_of_a_fix(question, bounds):
        question = evolve(question, policy=evolve(question.policy, find_fix=True))
        choices.append("looking for the fix: the repro's bad release is older than its good one")
    good, bad = ends_of(question, bounds, choices)
    check_ends(index, question.subject, (good, bad))
    check_order(good, bad, find_fix=question.policy.find_fix)
    line = line_between(question, good, bad, index=index, interpreter=interpreter)
    return line.noting([*choices, *notes_on_packages(question, line, "the bad end")])


def line_between(
    question: Question, good: str | None, bad: str | None, *, index: Index, interpreter: Interpreter
) -> ReleaseLine:
    """Return the line between two ends that are known to exist; without an end (None) it is open there.

    Raises the same errors as `line_of`.
    """
    subject, repro = question.subject, question.repro
    bounds, combination = repro.subjects.get(subject, Bounds()), question.combination
    if question.as_of is None and bounds.as_of == ERA:
        # Exact versions are those of the bad end; another release's own day has others.
        own = set(repro.dependencies)
        free = tuple(unpinned(text) if text in own else text for text in combination.requirements)
        combination = evolve(combination, requirements=free)
    day = str(as_of(question.as_of or bounds.as_of))
    ends = (bad, good) if question.policy.find_fix else (good, bad)
    releases, left_out = releases_on_line(index.releases(subject), question, interpreter, ends)
    for release in releases:
        why = why_left_out(release, question, interpreter)
        # A user who names a pre-release or a yanked release as an end wants it tried.
        if why is not None and not why.startswith(("pre-release", "yanked")):
            raise UnknownRelease(release.project, str(release.version), why, hint="choose another end")
    if not releases:
        reasons = sorted(set(left_out.values())) or ["no releases"]
        raise UnknownRelease(
            subject, "(all)", f"no release can be tried: {'; '.join(reasons)}",
            hint="--python picks another interpreter, --pre includes pre-releases, --build allows source releases",
        )  # fmt: skip
    # A build such as 1.4+cpu is tried as its release.
    good_end, bad_end = (
        release_end(str(public_version(version_of(end)))) if end is not None else None for end in (good, bad)
    )
    question = evolve(question, good=good_end, bad=bad_end, combination=combination, as_of=day)
    return ReleaseLine(question, releases, left_out)


def check_ends(index: Index, subject: str, ends: Iterable[str | None]) -> None:
    """Check that the index has the releases that ends name; None is skipped.

    Raises `UnknownRelease` if it does not have one, and `UserMistake` if an end is not a version, or one of several
    builds of its release.
    """
    for end in ends:
        if end is None:
            continue
        release = index.release(subject, str(version_of(end)))
        if release is None:
            hint = _near_releases(end, index.releases(subject))
            raise UnknownRelease(normalized_name(subject), end, "no such release", hint=hint)
        if "+" in end and len(builds := release.builds) > 1:
            name = f"{release.project} {release.version}"
            raise UserMistake(
                f"{name} has several builds ({listed(builds)}), which are one release here",
                hint=f"to compare two of them, give two files with a line such as {release.project}=={end} as ends",
            )


def why_left_out(release: Release, question: Question, interpreter: Interpreter) -> str | None:
    """Return why a release can't be tried, or None if it can."""
    return release.left_out_because(
        interpreter.target,
        prereleases=question.policy.prereleases,
        build_from_source=normalized_name(release.project) in question.combination.from_source,
    )


def releases_on_line(
    known: Iterable[Release],
    question: Question,
    interpreter: Interpreter,
    ends: tuple[str | None, str | None],
    until: datetime | None = None,
) -> tuple[tuple[Release, ...], dict[str, str]]:
    """Return the known releases from one end to the other, and the reasons why others between them are left out.

    The ends are kept; without one (None) the line is open there. An end that is a pre-release brings in the others of
    its version. Other releases that were uploaded after `until` are left out. Both are empty if an end is no version.
    """
    named = [version for end in ends if end is not None and (version := parsed_version(end)) is not None]
    if len(named) < 2 - ends.count(None):
        return (), {}
    bounds = [public_version(version) for version in named]
    low = min(bounds) if ends[0] is not None else None
    high = max(bounds) if ends[1] is not None else None
    versions = {end.base_version for end in bounds if end.is_prerelease}
    with_prereleases = evolve(question, policy=evolve(question.policy, prereleases=True))
    fitting: list[Release] = []
    left_out: dict[str, str] = {}
    for release in known:
        if (low is not None and release.version < low) or (high is not None and release.version > high):
            continue
        is_later = until is not None and release.uploaded is not None and release.uploaded > until
        wanted = with_prereleases if release.version.base_version in versions else question
        why = why_left_out(release, wanted, interpreter) or (f"uploaded after {_last_day(until)}" if is_later else None)
        if why is None or release.version in bounds:
            fitting.append(release)
        else:
            left_out[str(release.version)] = why
    return tuple(fitting[::-1] if bounds != sorted(bounds) else fitting), left_out


def _last_day(until: datetime | None) -> str:
    """The last day before a moment, which is midnight after a day that a user named."""
    return f"{until - timedelta(microseconds=1):%Y-%m-%d}" if until is not None else ""


def notes_on_packages(question: Question, line: ReleaseLine, near: str) -> tuple[str, ...]:
    """Return sentences about what is held, and about the other packages, kept as in `near` without a date.

    There is none about packages that the user chose.
    """
    chosen = {"era": "as they were on the day of each release", "none": f"as close as possible to those of {near}"}
    day = str(line.question.as_of)
    versions = chosen.get(day, f"as they were on {day}")
    held = notes_on_holds(question.repro, question.subject, question.combination.holds)
    return (*held, *(() if question.as_of else (f"other packages: {versions} (--as-of changes it)",)))


def _near_releases(version: str, releases: tuple[Release, ...]) -> str:
    known = [str(release.version) for release in releases]
    close = difflib.get_close_matches(version, known, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(close)}?" if close else f"the newest releases are {', '.join(known[-3:])}"


def tells_of_a_fix(question: Question, bounds: Bounds) -> bool:
    """Whether the user gives no ends and the repro's bad end is older than its good one."""
    if question.policy.find_fix or question.good is not None or question.bad is not None:
        return False
    good, bad = bounds.good, bounds.bad
    return good is not None and bad is not None and version_of(bad) < version_of(good)


def ends_of(question: Question, bounds: Bounds, choices: list[str]) -> tuple[str | None, str | None]:
    """Return the good and the bad end: those of the user, else the repro's bounds if they are in the right order.

    Adds a sentence to `choices` for each bound used. None for an end that the search must find.
    """
    ends = {"good": question.good, "bad": question.bad}
    texts = {name: end.text if end is not None else None for name, end in ends.items()}
    line = ("bad", "good") if question.policy.find_fix else ("good", "bad")  # the older end first
    for name, other in (line, line[::-1]):
        own = getattr(bounds, name)
        if texts[name] is not None or own is None:
            continue
        older, newer = (texts[side] or own for side in line)
        if texts[other] is None or version_of(older) < version_of(newer):
            texts[name] = own
            choices.append(f"{name} end: {own} (from the repro; --{name} changes it)")
    return texts["good"], texts["bad"]


def subject_of(repro: Repro, named: Iterable[str]) -> str:
    """Return the first of these projects that is a subject of the repro, else its default one; "" if it has none."""
    return next((name for name in named if name in repro.subjects), next(iter(repro.subjects), ""))


def holds_of(repro: Repro, subject: str, named: Container[str], hold: Sequence[str]) -> tuple[str, ...]:
    """Return the holds for a subject: `hold` as given by the user, then the repro's own holds for that subject.

    A user's hold, or a requirement of a project in `named`, replaces a hold of the repro; "none" in `hold` leaves out
    all of the repro's.
    """
    given = tuple(text for text in hold if text != NO_HOLDS)
    if NO_HOLDS in hold:
        return given
    replaced = {required_name(text) for text in given}
    own = repro.subjects.get(subject, Bounds()).hold
    return (*given, *(text for text in own if required_name(text) not in replaced and required_name(text) not in named))


def notes_on_holds(repro: Repro, subject: str, holds: Container[str]) -> tuple[str, ...]:
    """Return a sentence about those of the repro's own holds for a subject that are in `holds`; empty without any."""
    own = [text for text in repro.subjects.get(subject, Bounds()).hold if text in holds]
    return (f"held: {', '.join(own)} (from the repro; --hold and --with change it)",) if own else ()


def find_anchor(line: ReleaseLine, prober: Probing) -> tuple[Lock | None, int | None]:
    """Return the lock near which releases are resolved, and the position of the release that it was made for.

    That is the line's bad end, or the next release that can be resolved; None if other packages come from a date.
    Raises `UnknownRelease` if none can be resolved.
    """
    subject, find_fix = line.question.subject, line.question.policy.find_fix
    if line.question.as_of != NONE:
        return None, None
    last = len(line.releases) - 1
    start = line.bad if line.bad is not None else (0 if find_fix else last)
    older, newer = range(start - 1, -1, -1), range(start + 1, last + 1)
    words = ""
    for position in (start, *((*newer, *older) if find_fix else (*older, *newer))):
        resolution = prober.resolve(line.beside(None).at(prober, {subject: line.names[position]}))
        if resolution.lock is not None:
            return resolution.lock, position
        words = words or resolution.words
    raise UnknownRelease(
        subject, "(all)", f"none can be installed: {words}", hint="--with or --hold may conflict with it"
    )


def pythons_for(releases: Sequence[Release | None]) -> list[str]:
    """Return the Pythons that each of these releases can be installed with; none if there is no release."""
    targets = {python: target_of(f"{python}.0") for python in _PYTHONS if releases}
    return [
        python
        for python, target in targets.items()
        if all(release is not None and release.left_out_because(target) is None for release in releases)
    ]


def newest_with_wheels(project: str, moment: datetime, index: Index) -> Release | None:
    """Return the newest release of a day that has wheels; that any older one has says nothing about a solution."""
    releases = index.known_releases(project)
    then = [
        release
        for release in releases
        if release.uploaded is not None and release.uploaded <= moment and release.wheels
    ]
    return next(
        (release for release in reversed(then) if not release.version.is_prerelease), then[-1] if then else None
    )
