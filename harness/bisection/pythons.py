"""Answers a question about Python itself: since which Python it fails, and whether that is Python or its packages.

Each Python resolves the requirements for itself, so two Pythons may have other packages. The packages of the older one
are put into the newer one: if it still fails there, Python made the difference, else the packages did.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from attrs import evolve, frozen
from packaging.version import InvalidVersion, Version

from harness.bisection.advice import NO_MODULE
from harness.bisection.answer import Answer
from harness.bisection.boundaries import LineQuestion, answer_line
from harness.culprit.descent import find_culprit
from harness.culprit.proofs import Trials
from harness.culprit.sides import Side, Sides
from harness.environment.dates import as_of
from harness.environment.interpreter import meets
from harness.errors import UserMistake
from harness.model import Change, Lock, RaisedException, Verdict
from harness.model.culprit import Finding, Level
from harness.probing import Judge, Probe
from harness.probing.line import Line, SearchedLine, left_out_words
from harness.probing.probe import Probers
from harness.question.ends import End, EndKind, check_order
from harness.question.package_set import PackageSet, Way
from harness.question.question import Question
from harness.session import Session, at_python

if TYPE_CHECKING:
    from harness.question.request import Request

SUBJECT = "python"
_MINORS = tuple(f"3.{minor}" for minor in range(9, 15))


@frozen
class _Python:
    """One Python: the session that runs with it, and the question as it is with it."""

    session: Session
    question: Question

    @property
    def version(self) -> str:
        """The full version."""
        return self.question.combination.python

    @property
    def minor(self) -> str:
        """The version that users name, such as 3.12."""
        return self.session.interpreter.minor

    def has_module(self, name: str) -> bool:
        """Whether its standard library has a module in Python with this dotted name."""
        path = self.session.interpreter.stdlib / name.replace(".", "/")
        return path.is_dir() or path.with_name(f"{path.name}.py").is_file()

    def probe(self, attempt: int = 0, lock: Lock | None = None) -> Probe:
        """Return the probe with this Python, with the packages of the question's day.

        With the lock of another Python, they have its versions as far as they fit.
        """
        day = as_of(self.question.as_of).moment if lock is None else None
        way = Way.DAY if lock is None else Way.NEAR
        combination = evolve(self.question.combination, as_of=day)
        beside = PackageSet(repro=self.question.repro, combination=combination, way=way, lock=lock)
        return beside.at(self.session.prober, {}, attempt)


@frozen(kw_only=True)
class PythonQuestion(LineQuestion):
    """Which of these Pythons, the oldest first?"""

    pythons: tuple[_Python, ...]

    def below(self, trials: Trials, sides: Sides, searched: SearchedLine) -> tuple[Finding, ...]:
        """Find whether it is the newer Python, or which of its packages."""
        older, newer = (self.pythons[position] for position in searched.search.result.boundary or ())
        return _package_or_python(evolve(trials, question=newer.question), older, newer, sides, self.depth)


def answer_pythons(session: Session, request: Request, look_up: Callable[[Session], Question]) -> Answer:
    """Search the Pythons of this machine; `look_up` looks up what the request names for one Python.

    Raises `UserMistake`, `Interrupted`, `NoNetwork` and `NoSpace`.
    """
    good, bad = _minor(request.good, "--good"), _minor(request.bad, "--bad")
    find_fix = request.policy.find_fix
    check_order(good, bad, find_fix=find_fix, key=Version)
    pythons, left_out = _pythons(session, sorted(filter(None, (good, bad)), key=Version), look_up)
    minors = tuple(python.minor for python in pythons)
    ends = [End(EndKind.PYTHON, text) if text else None for text in (request.good, request.bad)]
    question = evolve(pythons[-1].question, good=ends[0], bad=ends[1])
    repro, device = question.repro, question.combination.device
    verb = "fixed" if find_fix else "broke"
    headline = f"looking for the Python that {verb} {repro.name}: {minors[0]} to {minors[-1]}, {device.value}"
    line_question = PythonQuestion(
        pythons=pythons,
        reasons=left_out,
        line=Line(
            SUBJECT,
            minors,
            lambda trial: pythons[trial.position].probe(trial.attempt),
            minors.index(good) if good is not None else None,
            minors.index(bad) if bad is not None else None,
            find_fix=find_fix,
            unit="Python",
            label=lambda position: f"Python {pythons[position].version}",
        ),
        question=question,
        prober=Probers({python.version: python.session.prober for python in pythons}),
        judge=Judge(repro.signature, session.store),
        depth=question.depth,
        announced=(headline, (*question.notes, *left_out_words(left_out))),
    )
    with session.lanes(device, repro) as lanes:
        return answer_line(session, line_question, lanes)


def _pythons(
    session: Session, given: Sequence[str], look_up: Callable[[Session], Question]
) -> tuple[tuple[_Python, ...], dict[str, str]]:
    """Return the Pythons between the ends that this machine has, the oldest first, and why others are left out."""
    first, last = given if len(given) == 2 else (_MINORS[0], _MINORS[-1])
    pythons: list[_Python] = []
    left_out: dict[str, str] = {}
    for minor in sorted({*_MINORS, *given}, key=Version):
        if minor not in given and not Version(first) <= Version(minor) <= Version(last):
            continue
        try:
            other = at_python(session, minor)
        except UserMistake:
            if minor in given:
                raise
            left_out[minor] = f"not on this machine; uv python install {minor} installs it"
            continue
        question = look_up(other)
        repro = question.repro
        if meets(repro.requires_python, other.interpreter.version):
            pythons.append(_Python(other, question))
        elif minor in given:
            raise UserMistake(f"Python {minor} can't be used: the repro requires Python {repro.requires_python}")
        else:
            left_out[minor] = f"the repro requires Python {repro.requires_python}"
    if len(pythons) < 2:
        raise UserMistake(
            f"only {len(pythons)} Python of {first} to {last} can be used here",
            hint="install one, for example with uv python install 3.12",
        )
    return tuple(pythons), left_out


def _removed(raised: RaisedException | None, older: _Python, newer: _Python) -> tuple[str, ...]:
    """Return a sentence for each module that a failure misses and only the older Python's standard library has."""
    messages = [exception.message for exception in raised.chain()] if raised is not None else []
    names = [name for message in messages for name in NO_MODULE.findall(message)]
    return tuple(
        f"the module `{name}` was removed" for name in names if older.has_module(name) and not newer.has_module(name)
    )


def _minor(text: str | None, option: str) -> str | None:
    if text is None:
        return None
    try:
        version = Version(text)
    except InvalidVersion as error:
        raise UserMistake(f"{option} {text} is not a Python", hint="for example 3.12") from error
    return f"{version.major}.{version.minor}"


def _package_or_python(
    trials: Trials, older: _Python, newer: _Python, sides: Sides, until: Level
) -> tuple[Finding, ...]:
    """Tell Python itself from the packages that it resolves to, by running each Python with the other's packages."""
    before, after, was, now = sides.before, sides.after, older.version, newer.version
    with_older = newer.probe(lock=before.lock)
    swapped = trials.proof(f"Python {now} with the packages of {was}", with_older, after.verdict)
    run = swapped.observation
    if swapped.verdict is before.verdict and run is not None and run.lock is not None:
        own = evolve(trials, question=newer.question, prober=newer.session.local)
        inside = Sides(Side(run.lock, before.verdict, run), after)
        findings = find_culprit(own, inside, until)
        if findings:
            return findings
    with_newer = older.probe(lock=after.lock)
    back = trials.proof(f"Python {was} with the packages of {now}", with_newer, before.verdict)
    causes = _removed(trials.judge.raised(after.observation), older, newer) if after.verdict is Verdict.BAD else ()
    finding = Finding(Level.PACKAGE, (Change(SUBJECT, was, now),), proofs=(back, swapped), runs=2, causes=causes)
    differ = [
        str(change)
        for proof, lock in ((swapped, before.lock), (back, after.lock))
        if proof.observation is not None and proof.observation.lock is not None
        for change in lock.diff(proof.observation.lock)
    ]
    if differ:
        notes = (f"not every package could be the same with both Pythons: {', '.join(sorted(set(differ)))}",)
        finding = evolve(finding, notes=notes)
    return (finding,)
