"""Answers a question about Python itself: since which Python it fails, and whether that is Python or its packages.

Each Python resolves the requirements for itself, so two Pythons may have other packages. The packages of the older one
are put into the newer one: if it still fails there, Python made the difference, else the packages did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from attrs import evolve, frozen
from packaging.version import InvalidVersion, Version

from harness.asking.answer import Answer, Asked
from harness.asking.boundaries import boundary_of, certainty_of, search_line
from harness.culprit.axis import Axis, AxisSearch, Searched, left_out_words
from harness.culprit.descent import find_culprit
from harness.culprit.sides import Side, Sides
from harness.culprit.trials import Trials
from harness.environment.interpreter import meets
from harness.errors import UserMistake
from harness.model import Change, Lock
from harness.model.culprit import Culprit, Finding, Level
from harness.model.lock import AsOf
from harness.planning.inquiry import Inquiry, Scope
from harness.planning.releases import check_order, scope_of
from harness.probing import Judge, Probe
from harness.probing.probe import Probers
from harness.request.parsing import as_of
from harness.session import Session, at_python

if TYPE_CHECKING:
    from harness.request.question import Question

SUBJECT = "python"
_MINORS = tuple(f"3.{minor}" for minor in range(9, 15))


@frozen
class _Python:
    """One Python: the session that runs with it, and the question as it is there."""

    minor: str
    session: Session
    inquiry: Inquiry

    @property
    def version(self) -> str:
        """The full version."""
        return self.session.interpreter.version

    @property
    def scope(self) -> Scope:
        """What all probes with this Python share."""
        device, _ = self.session.device_for(self.inquiry.repro)
        return scope_of(self.inquiry, self.version, device, SUBJECT)

    def probe(self, attempt: int = 0) -> Probe:
        """Return the probe with this Python, with the packages that the requirements resolve to."""
        day = AsOf.read(str(as_of(self.inquiry.as_of))).of(None)
        return Probe(self.inquiry.repro, self.scope.combination(self.scope.requirements, day), attempt=attempt)

    def with_packages(self, lock: Lock) -> Probe:
        """Return the probe with this Python and the versions of another Python's packages, as far as they fit."""
        scope, named = self.scope, {pin.name: pin.version.partition("+")[0] for pin in lock.pins}
        pins = tuple(f"{name}=={version}" for name, version in named.items())
        held = evolve(scope, holds=(*scope.holds, *pins))
        prereleases = tuple(name for name, version in named.items() if Version(version).is_prerelease)
        combination = evolve(held.combination(scope.requirements, None), prereleases=prereleases)
        return Probe(self.inquiry.repro, combination)


def ask_pythons(session: Session, question: Question, inquire: Callable[[Session], Inquiry]) -> Answer:
    """Search the Pythons of this machine; `inquire` looks up what the question names for one Python.

    Raises `UserMistake`, `Interrupted`, `NoNetwork` and `NoSpace`.
    """
    named = {option: _minor(text, option) for option, text in _named(question)}
    check_order(
        question.good,
        question.bad,
        find_fix=question.policy.find_fix,
        key=lambda text: Version(_minor(text, "--good")),
        what="the Python that",
    )
    pythons, left_out = _pythons(session, list(named.values()), inquire)
    good, bad = (_position(named.get(option), option, pythons) for option in ("--good", "--bad"))
    by_version = {python.version: python.session.prober for python in pythons}
    newest = pythons[-1]
    axis = Axis(
        SUBJECT,
        tuple(python.minor for python in pythons),
        lambda trial: pythons[trial.position].probe(trial.attempt),
        good,
        bad,
        find_fix=question.policy.find_fix,
        unit="Python",
        label=lambda position: f"Python {pythons[position].version}",
    )
    judge = Judge(newest.inquiry.repro.signature, session.store)
    verb = "fixed" if axis.find_fix else "broke"
    headline = (
        f"looking for the Python that {verb} {newest.inquiry.repro.name}: {axis.names[0]} to {axis.names[-1]}, "
        f"{newest.scope.device.value}"
    )

    def find(trials: Trials, sides: Sides, searched: Searched) -> Culprit | None:
        older, newer = (pythons[position] for position in searched.search.result.boundary or ())
        until = question.depth or Level.PACKAGE
        return _package_or_python(evolve(trials, scope=newer.scope), older, newer, sides, until)

    with session.lanes(newest.scope.device, newest.inquiry.repro) as lanes:
        line = AxisSearch(axis, judge, Probers(by_version), lanes, session.reporter, certainty_of(question.policy))
        announced = headline, (*newest.inquiry.told, *left_out_words(left_out))
        below = find if question.depth is not Level.RELEASE else None
        found = search_line(line, newest.scope, session.index, announced, below)
    ends = {
        end: {"kind": "python", "text": text} if text else None
        for end, text in (("good", question.good), ("bad", question.bad))
    }
    depth = (question.depth or Level.PACKAGE).value
    asked = Asked.of(newest.scope, ends=ends, depth=depth, typed=newest.inquiry.typed)
    answer = found.answer(asked, boundary_of(found.searched, left_out=left_out))
    sentence = answer.sentence.replace(f"{SUBJECT} 3.", "Python 3.")
    sentence = f"{sentence} {_words(found.culprit, newest)}".strip()
    return evolve(answer, sentence=sentence, told=newest.inquiry.told)


def _pythons(
    session: Session, named: list[str], inquire: Callable[[Session], Inquiry]
) -> tuple[tuple[_Python, ...], dict[str, str]]:
    """Return the Pythons between the ends that this machine has, the oldest first, and why others are left out."""
    given = sorted(named, key=Version)
    first, last = (given[0], given[-1]) if len(given) == 2 else (_MINORS[0], _MINORS[-1])
    wanted = sorted({*_MINORS, *given}, key=Version)
    found: list[_Python] = []
    left_out: dict[str, str] = {}
    for minor in wanted:
        if not Version(first) <= Version(minor) <= Version(last):
            continue
        try:
            one = at_python(session, minor)
        except UserMistake:
            if minor in given:
                raise
            left_out[minor] = f"not on this machine; uv python install {minor} installs it"
            continue
        inquiry = inquire(one)
        if not meets(inquiry.repro.requires_python, one.interpreter.version):
            left_out[minor] = f"the repro requires Python {inquiry.repro.requires_python}"
            continue
        found.append(_Python(minor, one, inquiry))
    if len(found) < 2:
        raise UserMistake(
            f"only {len(found)} Python of {first} to {last} can be used here",
            hint="install one, for example with uv python install 3.12",
        )
    return tuple(found), left_out


def _named(question: Question) -> Iterator[tuple[str, str]]:
    """Yield the option and the text of each end that was named."""
    for option, text in (("--good", question.good), ("--bad", question.bad)):
        if text is not None:
            yield option, text


def _minor(text: str, option: str) -> str:
    try:
        version = Version(text)
    except InvalidVersion as error:
        raise UserMistake(f"{option} {text} is not a Python", hint="for example 3.12") from error
    return f"{version.major}.{version.minor}"


def _position(minor: str | None, option: str, pythons: tuple[_Python, ...]) -> int | None:
    if minor is None:
        return None
    minors = [python.minor for python in pythons]
    if minor not in minors:
        raise UserMistake(f"{option} {minor} can't be used", hint=f"the Pythons that can: {', '.join(minors)}")
    return minors.index(minor)


def _package_or_python(trials: Trials, older: _Python, newer: _Python, sides: Sides, until: Level) -> Culprit:
    """Tell Python itself from the packages that it resolves to, by running each Python with the other's packages."""
    before, after = sides.before, sides.after
    with_older = newer.with_packages(before.lock)
    swapped = trials.proof(f"Python {newer.version} with the packages of {older.version}", with_older, after.verdict)
    seen = swapped.observation
    if swapped.verdict is before.verdict and seen is not None and seen.lock is not None:
        own = evolve(trials, scope=newer.scope, prober=newer.session.local)
        inside = Sides(Side(seen.lock, before.verdict, seen), after)
        found = find_culprit(own, inside, until)
        if found is not None:
            return found
    back = trials.proof(
        f"Python {older.version} with the packages of {newer.version}", older.with_packages(after.lock), before.verdict
    )
    finding = Finding(Level.PACKAGE, (Change(SUBJECT, older.version, newer.version),), proofs=(back, swapped), runs=2)
    differ = [
        str(change)
        for proof, lock in ((swapped, before.lock), (back, after.lock))
        if proof.observation is not None and proof.observation.lock is not None
        for change in lock.diff(proof.observation.lock)
    ]
    if differ:
        notes = (f"not every package could be the same with both Pythons: {', '.join(sorted(set(differ)))}",)
        finding = evolve(finding, notes=notes)
    return Culprit((finding,))


def _words(culprit: Culprit | None, newest: _Python) -> str:
    """Say whether Python or a package made the difference."""
    if culprit is None:
        return ""
    finest = culprit.finest
    if any(change.name == SUBJECT for change in finest.packages):
        shown = "with the same packages" if not finest.notes else "with packages as similar as both can install"
        return (
            f"It is Python itself: it fails {shown}."
            if finest.is_proved
            else "Whether it is Python itself is not proved."
        )
    packages = ", ".join(f"{change.name} {change.after or '(removed)'}" for change in finest.packages)
    return f"It is not Python itself but {packages}, which Python {newest.minor} installs."
