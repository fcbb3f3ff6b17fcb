"""The one way to an answer: looks up what a question names, chooses the kind of search, and keeps the answer."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from attrs import evolve

from harness.asking.answer import Status
from harness.asking.kinds import Kind, kind_of, refuse_meaningless
from harness.asking.known import Known
from harness.asking.mistakes import names_meant, refuse_own_mistake
from harness.asking.wording import sentence_between
from harness.culprit.line import left_out_words
from harness.errors import UserMistake
from harness.events import SILENT, Note, Reporter, SearchBegan
from harness.model.culprit import Level
from harness.model.text import listed
from harness.planning.given import other_step, sentence_about, with_files
from harness.planning.inquiry import Inquiry
from harness.planning.world import unbounded
from harness.probing.by_hand import BY_HAND
from harness.request.commands import ChosenCommand, chosen_command
from harness.request.project import Projects
from harness.request.repros import required_python, typed_words
from harness.session import Session, at_python, open_session

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.asking.answer import Answer
    from harness.probing.by_hand import Person
    from harness.request.ends import Ends
    from harness.request.question import Question
    from harness.settings import Settings

_FURTHER = re.compile(r"^To look further back: .* --good (\S+) --python (3\.\d+)$")


def ask(
    question: Question,
    settings: Settings,
    reporter: Reporter = SILENT,
    typed: frozenset[str] = frozenset(),
    person: Person | None = None,
) -> Answer:
    """Answer a question. `typed` are options that a user typed with their default value; `person` judges with `--ask`.

    Raises `UserMistake` and its subclasses, `NoWorkers`, `NoNetwork`, `NoSpace`, and `Interrupted` on Ctrl-C.
    """
    kind, ends = kind_of(question, settings)
    refuse_meaningless(question, settings, kind, ends, typed)
    if question.policy.ask and person is None:
        raise UserMistake("--ask needs a terminal at which you judge each run")
    subject = None if kind is Kind.PYTHONS else question.subject
    required = required_python(question.repro, question.run, subject) if kind is not Kind.PYTHONS else None
    with open_session(settings, reporter, requires_python=required) as session:
        return ask_in(evolve(session, person=person) if question.policy.ask else session, question)


def ask_in(session: Session, question: Question) -> Answer:
    """Answer a question with an open session. Raises as `ask` does."""
    kind, ends = kind_of(question, session.settings)
    if kind is Kind.PYTHONS:
        from harness.asking.pythons import ask_pythons

        return ask_pythons(session, question, lambda one: asked_in(one, question, kind)[1])
    session, inquiry = asked_in(session, question, kind, ends)
    answer = ask_inquiry(session, inquiry, kind)
    if answer.limits:
        return _without_limits(session, inquiry, answer)
    further = _FURTHER.search(answer.advice)
    is_bare = kind is Kind.WORLDS and question.good is None and not answer.failures
    if further is None or not is_bare or session.settings.python or session.remote is not None:
        return answer
    return _with_another_python(session, question, answer, *further.groups())


def _with_another_python(session: Session, question: Question, answer: Answer, day: str, python: str) -> Answer:
    """Ask again with an older Python of this machine, for which packages of an earlier day can be installed."""
    ours = session.interpreter.minor
    why = f"Python {ours} can't go back to {day}, Python {python} can"
    session.reporter.report(Note(f"{why}: asked again with it"))
    try:
        other = at_python(session, python)
        asked = evolve(question, good=day)
        kind, ends = kind_of(asked, other.settings)
        found = ask_inquiry(other, inquiry_of(other, asked, kind, ends), kind)
    except UserMistake as error:
        return evolve(answer, told=(*answer.told, f"with Python {python} it can't be run: {error}"))
    if not found.failures:
        outcome = "nothing fails" if found.status is Status.NO_FAILURE else "no regression was found"
        return evolve(answer, advice="", told=(*answer.told, f"with Python {python}, from {day} on: {outcome} either"))
    told = (*found.told, f"{why}: this is the answer for Python {python}")
    return evolve(found, told=told, probes=answer.probes + found.probes, wall_s=answer.wall_s + found.wall_s)


def _without_limits(session: Session, inquiry: Inquiry, answer: Answer) -> Answer:
    """Ask again without the project's own bounds where nothing fails with them; they may only hide the change."""
    limits = listed(answer.limits)
    session.reporter.report(Note(f"nothing fails, but the project's own {limits} may hide it: asked again without"))
    names = tuple(unbounded(text) for text in answer.limits)
    typed = (*inquiry.typed, *(word for name in names for word in ("--with", shlex.quote(name))))
    try:
        free = ask_inquiry(session, evolve(inquiry, with_=(*inquiry.with_, *names), typed=typed), Kind.WORLDS)
    except UserMistake as error:
        return evolve(answer, told=(*answer.told, f"without {limits} it can't be run: {error}"))
    if not free.failures:
        outcome = "nothing fails" if free.status is Status.NO_FAILURE else "no regression was found"
        return evolve(answer, told=(*answer.told, f"without {limits}: {outcome} either"))
    free = evolve(free, lifted=answer.limits, probes=answer.probes + free.probes, wall_s=answer.wall_s + free.wall_s)
    return evolve(free, sentence=sentence_between(free))


def ask_inquiry(session: Session, inquiry: Inquiry, kind: Kind) -> Answer:
    """Answer a question with what it names looked up, of any kind except Pythons. Raises as `ask` does."""
    known = Known.of(session, inquiry, kind)
    if (answer := known.answer()) is not None:
        left_out = left_out_words(answer.boundary.left_out)
        session.reporter.report(SearchBegan("this question was answered before: nothing is run again", left_out))
        return answer
    with names_meant(inquiry):
        answer = _search_of(kind)(session, inquiry)
    if inquiry.policy.ask:
        answer = evolve(answer, told=(*answer.told, "every run was judged by hand (--ask)"))
    else:
        from harness.asking.evidence import with_evidence

        answer = with_evidence(answer, session.prober)
    refuse_own_mistake(answer, session.store)
    if kind is Kind.WORLDS:
        answer = evolve(answer, sentence=sentence_between(answer))
    if files := other_step(session, inquiry):
        sentence = f"{answer.sentence} {sentence_about(files)}"
        answer = evolve(answer, sentence=sentence, asked=evolve(answer.asked, files=files))
    known.keep(answer)
    return answer


def _search_of(kind: Kind) -> Callable[[Session, Inquiry], Answer]:
    """Return the search for a kind of question. It is imported only now: an answer that is known needs none."""
    match kind:
        case Kind.COMMITS:
            from harness.asking.commits import ask_commits

            return ask_commits
        case Kind.WORLDS:
            from harness.asking.between import ask_between

            return ask_between
    from harness.asking.releases import ask_releases

    return ask_releases


def command_of(session: Session, question: Question, ends: Ends | None = None) -> ChosenCommand:
    """Return what runs: a repro, or a command in a fresh copy of its project. Raises `UserMistake` and `BadRepro`."""
    projects = Projects(session.workspace, session.local.builder.uv, session.interpreter, session.index)
    project = question.project
    if ends is not None and ends.good is not None and ends.good.moment is not None:
        project = evolve(project, good_day=ends.good.moment.isoformat())
    return chosen_command(question.repro, question.run, question.subject, session.settings, project, projects)


def asked_in(
    session: Session, question: Question, kind: Kind = Kind.RELEASES, ends: Ends | None = None
) -> tuple[Session, Inquiry]:
    """Look up what a question names, and make or fetch the files that its runs read.

    Raises `UserMistake`, `BadRepro`, `NotMade` and `NoInput`.
    """
    return with_files(session, inquiry_of(session, question, kind, ends))


def inquiry_of(session: Session, question: Question, kind: Kind, ends: Ends | None) -> Inquiry:
    """Look up what a question names. Raises `UserMistake` and `BadRepro`."""
    chosen = command_of(session, question, ends)
    settings = evolve(session.settings, with_=chosen.with_)
    good, bad = (ends.good, ends.bad) if ends is not None else (question.good, question.bad)
    repro, policy = chosen.repro, question.policy
    if policy.ask:  # nobody judges a release several times to be surer, unless that is asked for
        repro = evolve(repro, signature=BY_HAND)
        policy = evolve(policy, confirm=policy.confirm or 0)
    return Inquiry.under(
        settings,
        question.subject or "",
        repro,
        good=good,
        bad=bad,
        depth=_depth(question, kind),
        policy=policy,
        typed=(*typed_words(question.repro, question.run, session.settings.params), *session.settings.typed),
        told=chosen.told,
    )


def _depth(question: Question, kind: Kind) -> Level:
    """Return how deep to go: as asked; else to the commit with a repository, to the lines for a named package."""
    if question.depth is not None:
        return question.depth
    if question.policy.ask:
        return Level.RELEASE
    if question.policy.git:
        return Level.COMMIT
    return Level.REGION if question.subject is not None and kind is not Kind.PYTHONS else Level.RELEASE
