"""The one way to an answer: looks up what a question names, chooses the kind of search, and keeps the answer.

The same question again is answered at once by the answer that was kept, and nothing runs.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import asdict, evolve, frozen

from harness._version import __version__
from harness.bisection.answer import Answer, Effort, Retry, Status
from harness.bisection.wording import sentence_of
from harness.errors import HarnessError, NoNetwork, UserMistake
from harness.events import SILENT, Note, Reporter, SearchBegan
from harness.model import normalized_name
from harness.model.culprit import Level
from harness.model.lock import AsOf
from harness.model.requirements import merged_requirements, unbounded
from harness.model.text import listed
from harness.model.verdict import Step
from harness.probing.judge import BY_HAND, Person
from harness.probing.line import left_out_words
from harness.probing.trust import ForksDisagree
from harness.question.commands import ChosenCommand, chosen_command
from harness.question.commit_index import at_commits
from harness.question.ends import EndKind, Ends
from harness.question.local_builds import at_local_builds
from harness.question.made import other_step, sentence_about, with_files
from harness.question.project import Projects
from harness.question.question import Question, usual_depth
from harness.question.reference_ends import at_references
from harness.question.repros import names_meant, required_python, typed_words
from harness.question.request import QuestionKind, Request, at_releases, kind_of, refuse_meaningless
from harness.question.single import shared_combination
from harness.records import as_record, read_record
from harness.redact import everywhere
from harness.repository.git import git_output
from harness.session import Session, at_python, open_session, warmed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from harness.arguments import Option
    from harness.settings import Settings

_UV_SETTINGS = ("/etc/uv/uv.toml", os.environ.get("XDG_CONFIG_HOME", "~/.config") + "/uv/uv.toml")

_RECORD = 8  # schema of kept answers


@frozen
class _Known:
    """An answer that was kept, and the `pages` of the index on which it depends, those of `projects` (`Index.state`).

    An answer about packages of days that are over depends on its subject alone.
    """

    answer: Answer
    projects: tuple[str, ...] = ()
    pages: str = ""


def ask(
    request: Request,
    settings: Settings,
    reporter: Reporter = SILENT,
    typed: Collection[Option] = (),
    person: Person | None = None,
) -> Answer:
    """Answer a question. `typed` are options that are no part of it; `person` judges with `--ask`.

    Raises `UserMistake` and its subclasses, `NoWorkers`, `NoNetwork`, `NoSpace`, and `Interrupted` on Ctrl-C.
    """
    request, settings = at_references(request, settings, reporter)
    request, settings = at_commits(request, settings.with_index_of(request.subject), reporter)
    request, settings = at_local_builds(request, settings, reporter)
    if request.repro is None:
        request = evolve(request, run=request.project.command(request.run))
    kind, ends = kind_of(request, settings)
    refuse_meaningless(request, settings, kind, ends, typed)
    if request.policy.ask and person is None:
        raise UserMistake("--ask needs a terminal at which you judge each run")
    subject = None if kind is QuestionKind.PYTHONS else request.subject
    required = required_python(request.repro, request.run, subject) if kind is not QuestionKind.PYTHONS else None
    with open_session(settings, reporter, requires_python=required) as session:
        session = evolve(session, person=person) if request.policy.ask else session
        if kind is QuestionKind.PYTHONS:
            return _answer_pythons(session, request)
        if kind is QuestionKind.RELEASES and normalized_name(request.subject or "") in dict(settings.own_indexes):
            request = at_releases(request, session.index, session.now)
        _, ends = kind_of(request, settings, session.now)
        session, question = looked_up(session, request, kind, ends)

        def with_python(python: str) -> tuple[Session, Question]:
            other = at_python(session, python)
            return other, question_of(other, request, *kind_of(request, other.settings, session.now))

        is_free = settings.python is None and session.remote is None
        return answer_question(session, question, kind, with_python if is_free else None)


def _answer_pythons(session: Session, request: Request) -> Answer:
    """Answer a question about Pythons, which is looked up for each of them."""
    from harness.bisection.pythons import answer_pythons

    begun = time.monotonic()
    answer = answer_pythons(session, request, lambda other: looked_up(other, request, QuestionKind.PYTHONS)[1])
    effort = evolve(answer.effort, wall_s=time.monotonic() - begun)
    return evolve(answer, sentence=sentence_of(answer), effort=effort)


def answer_question(
    session: Session,
    question: Question,
    kind: QuestionKind,
    with_python: Callable[[str], tuple[Session, Question]] | None = None,
    *,
    is_night: bool = False,
) -> Answer:
    """Answer a question with what it names looked up, of any kind except Pythons.

    Where nothing is found it is asked again: without the project's own bounds, or `with_python`, which looks the
    question up with another Python of this machine. In a night, and where the machine may be sick, the last good
    packages run again before anything is called a regression. Raises as `ask` does.
    """
    store, place = session.store, _place_of(session, question, kind)
    if (answer := _known(session, place)) is not None:
        left_out = left_out_words(answer.boundary.left_out)
        session.reporter.report(SearchBegan("this question was answered before: nothing is run again", left_out))
        return answer
    if place and question.subject:
        try:
            session.index.state([question.subject])  # as the search begins
        except HarnessError:
            place = ""  # the search says what is wrong
    answer, retry = _searched(session, question, kind, is_night=is_night)
    if retry.limits:
        answer = _without_limits(session, question, answer, retry.limits, is_night=is_night)
    elif retry.way_on is not None and not answer.culprits and with_python is not None:
        answer = _with_another_python(session, with_python, answer, *retry.way_on)
    if place and answer.exit_code == 0:  # others are searched again, which may find more
        known = _with_pages(session, question, answer.lean())
        store.write(place, store.without_secrets(json.dumps(as_record(known, _RECORD))))
    return answer


def _with_pages(session: Session, question: Question, answer: Answer) -> _Known:
    """Return what to keep of an answer: with what it says about today, until the index says something else."""
    names, when = {question.subject} if question.subject else set(), AsOf.read(answer.question.as_of)
    if not (when.is_era or (when.moment is not None and when.moment < session.now)):
        runs = (*answer.comparison.runs, *(run for culprit in answer.culprits for run in culprit.boundary.sides))
        names |= {pin.name for run in runs if run.lock is not None for pin in run.lock.pins}
    # What the index said when the search began: the packages of an older end may have been asked about later.
    projects = tuple(sorted(name for name in names if session.index.has_state([name])))
    return _Known(answer, projects, session.index.state(projects))


def _searched(
    session: Session, question: Question, kind: QuestionKind, *, is_night: bool = False
) -> tuple[Answer, Retry]:
    """Search once, and word the answer; also returns how to ask again.

    If forks turn out to be wrong, each run of the search is a fresh process; those that were are in the store.
    """
    may_fork = question.policy.fork and not (question.policy.flaky or question.policy.ask)
    if may_fork and kind is not QuestionKind.COMMITS and not question.repro.launch:
        with contextlib.suppress(ForksDisagree), warmed(session) as warm:
            return _answered(warm, question, kind, is_night=is_night)
    return _answered(session, question, kind, is_night=is_night)


def _answered(session: Session, question: Question, kind: QuestionKind, *, is_night: bool) -> tuple[Answer, Retry]:
    begun, retry = time.monotonic(), Retry()
    # A search is imported only when it runs: an answer that is known needs none.
    with names_meant(question.combination.requirements):
        match kind:
            case QuestionKind.COMMITS:
                from harness.bisection.boundaries import answer_line
                from harness.bisection.commits import commit_question

                with session.lanes(question.combination.device, question.repro) as lanes:
                    answer = answer_line(session, commit_question(session, question, lanes), lanes)
            case QuestionKind.PACKAGES:
                from harness.bisection.flow import answer_packages

                answer, retry = answer_packages(session, question, is_night=is_night)
            case _:
                from harness.bisection.boundaries import answer_line
                from harness.bisection.releases import release_question

                with session.lanes(question.combination.device, question.repro) as lanes:
                    answer = answer_line(session, release_question(session, question), lanes)
    if not question.policy.ask:
        from harness.bisection.baseline import with_baseline

        answer = with_baseline(session, question, answer, is_night=is_night)
    if question.policy.ask:
        answer = evolve(answer, notes=(*answer.notes, "every run was judged by hand (--ask)"))
    else:
        from harness.bisection.evidence import with_evidence

        answer = with_evidence(answer, session.prober)
    if question.root is not None and kind is not QuestionKind.COMMITS:
        from harness.bisection.evidence import with_introductions

        answer = with_introductions(answer, question.root)
    answer = evolve(answer, effort=evolve(answer.effort, wall_s=time.monotonic() - begun))
    answer = evolve(answer, sentence=sentence_of(answer))
    if files := other_step(session, question):
        sentence = f"{answer.sentence} {sentence_about(files)}"
        answer = evolve(answer, sentence=sentence, question=evolve(answer.question, files=files))
    return answer, retry


def _with_another_python(
    session: Session, with_python: Callable[[str], tuple[Session, Question]], answer: Answer, day: str, python: str
) -> Answer:
    """Ask again with an older Python of this machine, for which packages of an earlier day can be installed."""
    why = f"Python {session.interpreter.minor} can't go back to {day}, Python {python} can"
    session.reporter.report(Note(f"{why}: asked again with it"))

    def again() -> Answer:
        return _searched(*with_python(python), QuestionKind.PACKAGES)[0]

    retried = _retried(again, answer, f"with Python {python}", advice="")
    notes = (f"{why}: this is the answer for Python {python}",) if retried.culprits else ()
    return evolve(retried, notes=(*retried.notes, *notes))


def _without_limits(
    session: Session, question: Question, answer: Answer, limits: tuple[str, ...], *, is_night: bool
) -> Answer:
    """Ask again without the project's own bounds where nothing fails with them; they may only hide the change."""
    named = listed(limits)
    session.reporter.report(Note(f"nothing fails, but the project's own {named} may hide it: asked again without"))
    names = tuple(unbounded(text) for text in limits)
    typed = (*question.typed, *(word for name in names for word in ("--with", shlex.quote(name))))
    shared = question.combination
    shared = evolve(shared, requirements=merged_requirements(shared.requirements, names))
    free = evolve(question, combination=shared, typed=typed)

    def again() -> Answer:
        return _searched(session, free, QuestionKind.PACKAGES, is_night=is_night)[0]

    retried = _retried(again, answer, f"without {named}", advice=answer.advice)
    lifted = limits if retried.failures else ()
    retried = evolve(retried, comparison=evolve(retried.comparison, lifted=lifted))
    return evolve(retried, sentence=sentence_of(retried))


def _retried(again: Callable[[], Answer], answer: Answer, how: str, *, advice: str) -> Answer:
    """Return another answer if it has failures, else the first one with what came of it, and `advice`."""
    try:
        retried = again()
    except UserMistake as error:
        return evolve(answer, notes=(*answer.notes, f"{how} it can't be run: {error}"))
    if retried.culprits or (retried.failures and not answer.failures):
        probes, wall_s = answer.effort.probes + retried.effort.probes, answer.effort.wall_s + retried.effort.wall_s
        return evolve(retried, effort=evolve(retried.effort, probes=probes, wall_s=wall_s))
    outcome = "nothing fails" if retried.status is Status.NO_FAILURE else "no regression was found"
    return evolve(answer, advice=advice, notes=(*answer.notes, f"{how}: {outcome} either"))


def command_of(session: Session, request: Request, ends: Ends | None = None) -> ChosenCommand:
    """Return what runs: a repro, or a command in a fresh copy of its project. Raises `UserMistake` and `BadRepro`."""
    projects = Projects.of(session)
    project = request.project
    if ends is not None and ends.good is not None and ends.good.moment is not None:
        project = evolve(project, good_day=ends.good.moment.isoformat())
    return chosen_command(request.repro, request.run, request.subject, session.settings, project, projects)


def looked_up(
    session: Session, request: Request, kind: QuestionKind = QuestionKind.RELEASES, ends: Ends | None = None
) -> tuple[Session, Question]:
    """Look up what a question names, and make or fetch the files that its runs read.

    Raises `UserMistake` and `BadRepro`.
    """
    return with_files(session, question_of(session, request, kind, ends))


def question_of(session: Session, request: Request, kind: QuestionKind, ends: Ends | None) -> Question:
    """Look up what a question names. Raises `UserMistake` and `BadRepro`."""
    chosen = command_of(session, request, ends)
    settings, subject = session.settings, normalized_name(request.subject or "")
    good, bad = (ends.good, ends.bad) if ends is not None else (request.good, request.bad)
    repro, policy = chosen.repro, request.policy
    repro = evolve(repro, signature=policy.recognising(repro.signature))
    if policy.ask:  # nobody judges a release several times to be surer, unless that is asked for
        repro = evolve(repro, signature=BY_HAND)
        policy = evolve(policy, confirm=policy.confirm or 0)
    return Question(
        subject,
        repro,
        shared_combination(session, repro, chosen.with_, subject, is_set=kind is QuestionKind.PACKAGES),
        good=good,
        bad=bad,
        depth=_depth(request, kind),
        policy=policy,
        as_of=settings.as_of,
        typed=(
            *typed_words(request.repro, request.run, settings.params),
            *request.project.typed,
            *settings.typed,
        ),
        notes=(*chosen.notes, session.device_for(repro)[1]),
        root=chosen.root,
    )


def _depth(request: Request, kind: QuestionKind) -> Level:
    """Return how deep to go, unless the user says it."""
    if request.depth is not None:
        return request.depth
    return Level.PACKAGE if kind is QuestionKind.PYTHONS else usual_depth(request.subject or "", request.policy)


def _place_of(session: Session, question: Question, kind: QuestionKind) -> str:
    """Return the file of the answer to a question, relative to the results folder.

    Its name is a hash of the whole question, of what its ends say now, and of the settings with which packages are
    found. "" if that can't be told at once, as for an environment's folder.
    """
    ends = [end for end in (question.good, question.bad) if end is not None]
    may_change = any(end.kind in (EndKind.PYTHON, EndKind.IMAGE, EndKind.COMMIT) for end in ends)
    if may_change or kind is QuestionKind.PYTHONS or session.remote is not None:
        return ""
    good, bad = (
        evolve(end, moment=None) if end is not None and end.is_today else end for end in (question.good, question.bad)
    )
    uv = session.local.builder.uv
    reader = session.by_writer.reader if session.by_writer is not None else None
    configured = [Path(text).expanduser() for text in (*_UV_SETTINGS, uv.environment.get("UV_CONFIG_FILE", ""))]
    facts = [
        (__version__, kind.value),
        asdict(evolve(question, notes=(), good=good, bad=bad)),
        [end.path.read_bytes().hex() for end in ends if end.path is not None and end.commit is None],
        asdict(session.settings),
        (session.interpreter.version, session.interpreter.path),
        [(name, value) for name, value in uv.environment.items() if name.upper().startswith(("UV_", "PIP_"))],
        # The commits of the project are what is searched without a good end, and are named beside the culprits.
        git_output(question.root, "rev-parse", "HEAD") if question.root is not None else "",
        (asdict(uv.settings), [path.read_bytes().hex() for path in configured if path.is_file()]),
        (reader.lock.id, reader.repro.digest) if reader is not None and reader.lock is not None else (),
        session.gpus,
        session.local.terms.variables,
        [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in session.index.local_wheels()],
    ]
    text = json.dumps(facts, sort_keys=True, default=str)
    return f"answers/known/{hashlib.sha256(text.encode()).hexdigest()[:20]}.json"


def _known(session: Session, place: str) -> Answer | None:
    """Return the answer that is kept at a place; None if there is none, if one of its runs is gone, or it is dated."""
    known = read_record(session.store.root / place, _Known, _RECORD) if place else None
    if known is None:
        return None
    sides = [run for culprit in known.answer.culprits for run in culprit.boundary.sides]
    if any(session.local.current(run.key) is None for run in sides):
        return None
    try:
        if session.index.state(known.projects) != known.pages:
            return None
    except NoNetwork:
        pass  # nothing newer can be known
    except HarnessError:
        return None
    answer: Answer = known.answer
    notes = (*answer.notes, "answered from the results of an earlier search; nothing was run")
    answer = everywhere(answer, Step, lambda step: evolve(step, cached=True, seconds=0.0))
    return evolve(answer, notes=notes, effort=Effort(is_known=True))
