"""Ask a question between two worlds in a session: make the worlds of its ends, and search between them."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from attrs import evolve, frozen
from packaging.requirements import Requirement

from harness.bisect.deeper import answers_of, deepened
from harness.bisect.evidence import with_evidence
from harness.bisect.held_back import Means
from harness.bisect.upgrade import Upgrade
from harness.errors import UserMistake
from harness.events import SearchBegan
from harness.model import Repro, normalized_name
from harness.model.culprit import Level
from harness.planning.plan import merged_requirements
from harness.planning.world import Asked, World, day_world, pinned_world, release_world
from harness.request.ends import End, EndKind, Ends
from harness.request.installed import installed_pins
from harness.request.lockfiles import read_pins
from harness.run.commands import only

if TYPE_CHECKING:
    from harness.bisect.upgrade_answer import UpgradeAnswer
    from harness.environment import Index, Interpreter
    from harness.scheduling.probers import Probing
    from harness.session import Session


@frozen
class UpgradeQuestion:
    """What broke `repro` between two ends? `subject` is the one package that is looked at, "" for whatever it was.

    `requirements` are asked for besides the repro's own; `told` are sentences on what was chosen for the user.
    """

    ends: Ends
    repro: Repro
    requirements: tuple[str, ...] = ()
    subject: str = ""
    told: tuple[str, ...] = ()


@frozen
class Worlds:
    """Makes worlds of ends."""

    asked: Asked
    prober: Probing
    index: Index
    interpreter: Interpreter
    subject: str = ""

    def of(self, end: End) -> World:
        """The world of a day, a file or a Python. Raises `UserMistake`."""
        if end.kind is EndKind.DAY:
            return day_world(end, self.asked, self.prober, self.index)
        if end.path is None:
            raise UserMistake(f"{end.text} is no world by itself")
        is_python = end.kind is EndKind.PYTHON
        pins = installed_pins(end.path) if is_python else read_pins(end.path, self.asked.python)
        world = pinned_world(end, pins, self.asked, self.prober, self.index, self.interpreter)
        ours = self.interpreter.minor
        if pins.python and not pins.python.startswith(ours):
            told = f"{end.text} has Python {pins.python}; it runs with {self.interpreter.version} (--python changes it)"
            world = evolve(world, told=(*world.told, told))
        return world

    def both(self, ends: Ends) -> tuple[World | None, World]:
        """The worlds of both ends; a release stands for the other end with the subject at it."""
        good, bad = ends.good, ends.bad
        if bad.kind is EndKind.RELEASE and good is not None:
            other = self.of(good)
            return other, release_world(bad, other, self.subject, self.prober)
        world = self.of(bad)
        if good is not None and good.kind is EndKind.RELEASE:
            return release_world(good, world, self.subject, self.prober), world
        return (self.of(good) if good is not None else None), world


def ask_upgrade(session: Session, question: UpgradeQuestion, until: Level = Level.RELEASE) -> UpgradeAnswer:
    """Answer a question between worlds, each culprit down to `until`.

    Raises `UserMistake`, `NoWorkers`, `Interrupted`, `NoNetwork`, `NoSpace`."""
    device, why = session.device_for(question.repro)
    requirements = merged_requirements(question.repro.dependencies, question.requirements)
    if question.subject and question.subject not in {normalized_name(Requirement(text).name) for text in requirements}:
        requirements = (*requirements, question.subject)
    if not requirements and question.ends.bad.kind is EndKind.DAY:
        raise UserMistake(
            "nothing is asked for, so that nothing can change",
            hint="--with REQ or --with '-r FILE' names what the command needs, --project its project",
        )
    settings, interpreter = session.settings, session.interpreter
    asked = Asked(question.repro, interpreter.version, requirements, settings.hold, device, settings.from_source)
    worlds = Worlds(asked, session.prober, session.index, interpreter, question.subject)
    good, bad = question.ends.good, question.ends.bad
    headline = f"looking for what broke {question.repro.name}: {good.text if good else 'weeks before'} to {bad.text}"
    session.reporter.report(SearchBegan(headline, (*question.told, why)))
    good_world, bad_world = worlds.both(question.ends)
    with session.lanes(device) as lanes:
        means = Means(session.prober, lanes, session.index, interpreter, session.reporter)
        upgrade = Upgrade(means, question.repro, bad_world, good_world, worlds.of, only_tests, question.subject)
        answer = upgrade.run()
        tests = tuple(test for group in answer.groups for test in group.tests)
        repro = only_tests(question.repro, tests)
        if until is not Level.RELEASE and answer.groups:
            answer = deepened(answer, means, bad_world, repro, until)
        answer = with_evidence(answer, session.local.builder, session.store.log)
        return evolve(answer, answers=tuple(answers_of(answer, means, bad_world, repro)), probes=means.count.ran_now)


def only_tests(repro: Repro, tests: tuple[str, ...]) -> Repro:
    """The repro with its command restricted to some tests; as it is where that names none."""
    if not tests:
        return repro
    argv = only(repro.argv, tests)
    digest = hashlib.sha256("\0".join([repro.digest, *argv]).encode()).hexdigest()[:16]
    return evolve(repro, argv=argv, digest=digest)
