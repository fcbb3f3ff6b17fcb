"""Answers a question between two worlds: builds the worlds of its ends and searches between them."""

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
from harness.planning.world import WorldRequest
from harness.planning.worlds import Worlds
from harness.request.ends import EndKind, Ends, newest_end
from harness.request.question import Question
from harness.run.commands import only

if TYPE_CHECKING:
    from harness.bisect.upgrade_answer import UpgradeAnswer
    from harness.session import Session


@frozen
class Below:
    """The search below a release: its time limit in seconds, and whether its runs may be forked.

    `git` is the culprit's repository for the commit level: a clone, a URL, "auto", or "" for none.
    """

    time_s: float = 600.0
    fork: bool = True
    git: str = ""


@frozen
class UpgradeQuestion:
    """A question between two ends: which package upgrade broke `repro`?

    `subject` is the only package to look at, "" for all. `requirements` are added to the repro's own; `told` are
    sentences about the choices made for the user.
    """

    ends: Ends
    repro: Repro
    requirements: tuple[str, ...] = ()
    subject: str = ""
    told: tuple[str, ...] = ()
    below: Below = Below()


def ask_upgrade(session: Session, question: UpgradeQuestion, until: Level = Level.RELEASE) -> UpgradeAnswer:
    """Answer a question between worlds, with the search for each culprit down to `until`.

    Raises `UserMistake`, `NoWorkers`, `Interrupted`, `NoNetwork` and `NoSpace`.
    """
    device, why = session.device_for(question.repro)
    requirements = merged_requirements(question.repro.dependencies, question.requirements)
    if question.subject and question.subject not in {normalized_name(Requirement(text).name) for text in requirements}:
        requirements = (*requirements, question.subject)
    if not requirements and question.ends.bad.kind is EndKind.DAY:
        raise UserMistake(
            "nothing is required, so nothing can have changed",
            hint="--with REQ or --with '-r FILE' names what the command needs, --project its project",
        )
    settings, interpreter = session.settings, session.interpreter
    request = WorldRequest(
        question.repro, interpreter.version, requirements, settings.held, device, settings.from_source
    )
    newest = newest_end(settings.as_of)
    worlds = Worlds(request, session.prober, session.index, interpreter, question.subject, newest)
    good, bad = question.ends.good, question.ends.bad
    headline = f"looking for what broke {question.repro.name}: {f'{good.text} to' if good else 'back from'} {bad.text}"
    session.reporter.report(SearchBegan(headline, (*question.told, why)))
    good_world, bad_world = worlds.both(question.ends)
    with session.lanes(device, question.repro) as lanes:
        means = Means(session.prober, lanes, session.index, interpreter, session.reporter)
        upgrade = Upgrade(means, question.repro, bad_world, good_world, worlds.before, only_tests, question.subject)
        answer = upgrade.run()
        tests = tuple(test for group in answer.groups for test in group.tests)
        each = Question(
            question.subject,
            only_tests(question.repro, tests),
            from_source=settings.from_source,
            time_s=question.below.time_s,
            fork=question.below.fork,
            git=question.below.git,
        )
        if until is not Level.RELEASE and answer.groups:
            answer = deepened(answer, means, bad_world, each, until)
        answer = with_evidence(answer, session.local.builder, session.store.log)
        return evolve(answer, answers=tuple(answers_of(answer, means, bad_world, each)), probes=means.count.ran_now)


def only_tests(repro: Repro, tests: tuple[str, ...]) -> Repro:
    """Return the repro with its command restricted to these tests; unchanged without tests."""
    if not tests:
        return repro
    argv = only(repro.argv, tests)
    digest = hashlib.sha256("\0".join([repro.digest, *argv]).encode()).hexdigest()[:16]
    return evolve(repro, argv=argv, digest=digest)
