"""The one way to an answer: looks up what a question names, chooses the kind of search, and keeps the answer.

The same question again is answered at once by the answer that was kept, and nothing runs.

Mistakes of the user are refused: a repro that fails wherever it runs, as no bug does, and a misspelled package.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
import shlex
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from attrs import asdict, evolve

from harness import __version__
from harness.asking.answer import SCHEMA, Answer, Status
from harness.asking.kinds import QuestionKind, kind_of, refuse_meaningless
from harness.asking.wording import sentence_between
from harness.culprit.axis import left_out_words
from harness.errors import HarnessError, UnknownProject, UserMistake
from harness.events import SILENT, Note, Reporter, SearchBegan
from harness.model import Observation, RaisedException, normalized_name
from harness.model.culprit import Level
from harness.model.signature import last_exception
from harness.model.text import listed
from harness.model.verdict import Step
from harness.planning.given import other_step, sentence_about, with_files
from harness.planning.inquiry import Inquiry
from harness.planning.worlds import unbounded
from harness.probing.judge import BY_HAND, Person
from harness.redact import everywhere
from harness.request.commands import ChosenCommand, chosen_command
from harness.request.project import Projects
from harness.request.question import End, EndKind, Ends, Question
from harness.request.repros import required_python, similar_package, typed_words
from harness.session import Session, at_python, open_session
from harness.store import as_record, read_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harness.settings import Settings
    from harness.store import Store


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
    subject = None if kind is QuestionKind.PYTHONS else question.subject
    required = required_python(question.repro, question.run, subject) if kind is not QuestionKind.PYTHONS else None
    with open_session(settings, reporter, requires_python=required) as session:
        return ask_in(evolve(session, person=person) if question.policy.ask else session, question)


def ask_in(session: Session, question: Question) -> Answer:
    """Answer a question with an open session. Raises as `ask` does."""
    kind, ends = kind_of(question, session.settings)
    if kind is QuestionKind.PYTHONS:
        from harness.asking.pythons import ask_pythons

        return ask_pythons(session, question, lambda one: asked_in(one, question, kind)[1])
    session, inquiry = asked_in(session, question, kind, ends)
    answer = ask_inquiry(session, inquiry, kind)
    if answer.limits:
        return _without_limits(session, inquiry, answer)
    if answer.way_on is None or answer.failures or session.settings.python or session.remote is not None:
        return answer
    return _with_another_python(session, question, answer, *answer.way_on)


def _with_another_python(session: Session, question: Question, answer: Answer, day: str, python: str) -> Answer:
    """Ask again with an older Python of this machine, for which packages of an earlier day can be installed."""
    why = f"Python {session.interpreter.minor} can't go back to {day}, Python {python} can"
    session.reporter.report(Note(f"{why}: asked again with it"))

    def again() -> Answer:
        other = at_python(session, python)
        kind, ends = kind_of(question, other.settings)
        return ask_inquiry(other, inquiry_of(other, question, kind, ends), kind)

    found = _asked_again(again, answer, f"with Python {python}", advice="")
    told = (f"{why}: this is the answer for Python {python}",) if found.failures else ()
    return evolve(found, told=(*found.told, *told))


def _without_limits(session: Session, inquiry: Inquiry, answer: Answer) -> Answer:
    """Ask again without the project's own bounds where nothing fails with them; they may only hide the change."""
    limits = listed(answer.limits)
    session.reporter.report(Note(f"nothing fails, but the project's own {limits} may hide it: asked again without"))
    names = tuple(unbounded(text) for text in answer.limits)
    typed = (*inquiry.typed, *(word for name in names for word in ("--with", shlex.quote(name))))
    free = evolve(inquiry, with_=(*inquiry.with_, *names), typed=typed)

    def again() -> Answer:
        return ask_inquiry(session, free, QuestionKind.WORLDS)

    found = _asked_again(again, answer, f"without {limits}", advice=answer.advice)
    found = evolve(found, lifted=answer.limits if found.failures else ())
    return evolve(found, sentence=sentence_between(found))


def _asked_again(again: Callable[[], Answer], answer: Answer, how: str, *, advice: str) -> Answer:
    """Return another answer if it has failures, else the first one with what came of it, and `advice`."""
    try:
        found = again()
    except UserMistake as error:
        return evolve(answer, told=(*answer.told, f"{how} it can't be run: {error}"))
    if found.failures:
        return evolve(found, probes=answer.probes + found.probes, wall_s=answer.wall_s + found.wall_s)
    outcome = "nothing fails" if found.status is Status.NO_FAILURE else "no regression was found"
    return evolve(answer, advice=advice, told=(*answer.told, f"{how}: {outcome} either"))


def ask_inquiry(session: Session, inquiry: Inquiry, kind: QuestionKind, *, refuse: bool = True) -> Answer:
    """Answer a question with what it names looked up, of any kind except Pythons. Raises as `ask` does.

    Without `refuse` there is an answer also where every run fails by a mistake of the user's own.
    """
    store, place = session.store, _place_of(session, inquiry, kind)
    if (answer := _known(store, place)) is not None:
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
    if refuse:
        refuse_own_mistake(answer, store)
    if kind is QuestionKind.WORLDS:
        answer = evolve(answer, sentence=sentence_between(answer))
    if files := other_step(session, inquiry):
        sentence = f"{answer.sentence} {sentence_about(files)}"
        answer = evolve(answer, sentence=sentence, asked=evolve(answer.asked, files=files))
    if place and answer.status.is_change:  # others are searched again, which may find more
        store.write(place, store.without_secrets(json.dumps(as_record(answer.lean(), SCHEMA))))
    return answer


def _search_of(kind: QuestionKind) -> Callable[[Session, Inquiry], Answer]:
    """Return the search for a kind of question. It is imported only now: an answer that is known needs none."""
    match kind:
        case QuestionKind.COMMITS:
            from harness.asking.commits import ask_commits

            return ask_commits
        case QuestionKind.WORLDS:
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
    session: Session, question: Question, kind: QuestionKind = QuestionKind.RELEASES, ends: Ends | None = None
) -> tuple[Session, Inquiry]:
    """Look up what a question names, and make or fetch the files that its runs read.

    Raises `UserMistake` and `BadRepro`.
    """
    return with_files(session, inquiry_of(session, question, kind, ends))


def inquiry_of(session: Session, question: Question, kind: QuestionKind, ends: Ends | None) -> Inquiry:
    """Look up what a question names. Raises `UserMistake` and `BadRepro`."""
    chosen = command_of(session, question, ends)
    settings = session.settings
    good, bad = (ends.good, ends.bad) if ends is not None else (question.good, question.bad)
    repro, policy = chosen.repro, question.policy
    if policy.ask:  # nobody judges a release several times to be surer, unless that is asked for
        repro = evolve(repro, signature=BY_HAND)
        policy = evolve(policy, confirm=policy.confirm or 0)
    return Inquiry(
        question.subject or "",
        repro,
        good=good,
        bad=bad,
        depth=_depth(question, kind),
        policy=policy,
        with_=chosen.with_,
        hold=settings.hold,
        as_of=settings.as_of,
        from_source=settings.buildable,
        typed=(*typed_words(question.repro, question.run, settings.params), *settings.typed),
        told=chosen.told,
    )


def _depth(question: Question, kind: QuestionKind) -> Level:
    """Return how deep to go: as asked; else to the commit with a repository, to the lines for a named package."""
    if question.depth is not None:
        return question.depth
    if kind is QuestionKind.PYTHONS:
        return Level.PACKAGE
    if question.policy.ask:
        return Level.RELEASE
    if question.policy.git:
        return Level.COMMIT
    return Level.REGION if question.subject is not None else Level.RELEASE


def _place_of(session: Session, inquiry: Inquiry, kind: QuestionKind) -> str:
    """Return the file of the answer to a question, relative to the results folder; "" if it can't be kept."""
    told = _identity(session, inquiry, kind)
    text = json.dumps(told, sort_keys=True, default=str)
    return f"answers/known/{hashlib.sha256(text.encode()).hexdigest()[:20]}.json" if told is not None else ""


def _known(store: Store, place: str) -> Answer | None:
    """Return the answer that is kept at a place, None if there is none or one of its runs is gone."""
    answer = read_record(store.root / place, Answer, SCHEMA) if place else None
    if answer is None or any(store.get(run.key) is None for one in answer.culprits for run in one.boundary.sides):
        return None
    told = (*answer.told, "answered from the results of an earlier search; nothing was run")
    known: Answer = everywhere(answer, Step, lambda step: evolve(step, cached=True, seconds=0.0))
    return evolve(known, probes=0, culprit_probes=0, wall_s=0.0, told=told, is_known=True)


def _identity(session: Session, inquiry: Inquiry, kind: QuestionKind) -> dict[str, Any] | None:
    """Return all that the answer depends on; None if that can't be told at once, as for an environment's folder."""
    ends = [_end(end) for end in (inquiry.good, inquiry.bad)]
    if None in ends or kind is QuestionKind.PYTHONS or session.remote is not None:
        return None
    repro, interpreter = inquiry.repro, session.interpreter
    told: dict[str, Any] = {
        "harness": __version__,
        "kind": kind.value,
        "subject": inquiry.subject,
        "ends": ends,
        "repro": (repro.digest, repro.params, repro.dependencies, str(repro.signature), str(repro.subjects)),
        "asked": (inquiry.with_, inquiry.hold, inquiry.as_of, inquiry.depth, inquiry.from_source),
        "policy": asdict(inquiry.policy),
        "python": (interpreter.version, str(interpreter.path)),
        "settings": session.settings.typed,
        "reader": (session.reader.lock.id, session.reader.repro.digest)
        if session.reader and session.reader.lock
        else "",
        "gpus": [str(gpu) for gpu in session.gpus],
    }
    if inquiry.subject:
        try:
            releases = session.index.releases(normalized_name(inquiry.subject))
        except HarnessError:
            return None  # the search says what is wrong
        told["releases"] = [(str(release.version), release.yanked) for release in releases]
    return told


def _end(end: End | None) -> tuple[str, ...] | None:
    """Return what an end is; None for one that may change without its name changing."""
    if end is None:
        return ("",)
    if end.kind in (EndKind.PYTHON, EndKind.COMMIT):
        return None
    content = hashlib.sha256(end.path.read_bytes()).hexdigest() if end.path is not None else ""
    return (end.kind.value, end.text, end.moment.isoformat() if end.moment is not None else "", content)


_MODULE = re.compile(r"No module named '(?P<name>\w+)'")
_NAME = re.compile(r"cannot import name '(?P<name>\w+)' from '(?P<module>[\w.]+)'")
_FIXTURE = re.compile(r"fixture '(?P<name>\w+)' not found")


@contextmanager
def names_meant(inquiry: Inquiry) -> Iterator[None]:
    """Say which package was probably meant where the index has no project of a name.

    Raises `UnknownProject` again, with a name that is required or is the subject of some repro.
    """
    try:
        yield
    except UnknownProject as error:
        close = similar_package(error.project, (*inquiry.repro.dependencies, *inquiry.with_))
        if close in (None, normalized_name(error.project)):
            raise
        raise UnknownProject(error.project, hint=f"did you mean {close}?") from error


def refuse_own_mistake(answer: Answer, store: Store) -> None:
    """Raise `UserMistake` if all runs of an answer failed by the same misspelled import, or a fixture that is missing.

    One run does not show that: a release may have removed the module or the plugin.
    """
    if answer.status not in (Status.NOT_A_REGRESSION, Status.NOT_FIXED, Status.INCONCLUSIVE):
        return
    keys = dict.fromkeys(step.observation for step in answer.steps)
    runs = answer.ends or [run for key in keys if (run := store.get(key)) is not None]
    reasons = [_reasons(run, store.log(run)) for run in runs]
    if len(runs) < 2 or not all(reasons) or len(set().union(*reasons)) != 1:
        return
    (reason,) = reasons[0]
    installed = [pin.name for run in runs if run.lock is not None for pin in run.lock.pins]
    what = "no upgrade broke these tests" if runs[-1].tests else "this is a mistake in the repro, not a bug"
    raise UserMistake(
        f"{what}: {reason}, in each of {len(runs)} runs",
        hint=_hint(reason, installed, answer.advice),
    )


def _reasons(run: Observation, log: str) -> set[str]:
    """The mistakes by which a run failed; empty if some failure has another reason."""
    if run.mistake:
        return {run.mistake}
    failed = [test.exception for test in run.tests if test.outcome.is_failure]
    raised = failed or [run.exception or last_exception(log)]
    found = [next(_mistakes(one), "") if one is not None else "" for one in raised]
    return set(found) if all(found) else set()


def _mistakes(raised: RaisedException) -> Iterator[str]:
    for one in raised.chain():
        for pattern in (_MODULE, _NAME, _FIXTURE):
            if match := pattern.search(one.message):
                yield match[0]


def _hint(reason: str, installed: Sequence[str], advice: str) -> str:
    """What to do: the name that is probably meant, or the package to add, which the `advice` may name."""
    if match := _FIXTURE.search(reason):
        return f"define the fixture {match['name']}, or add the plugin that has it: --with PLUGIN"
    if match := _NAME.search(reason):
        return f"check the spelling: {match['module']} has no {match['name']} in any release that was tried"
    name = _MODULE.search(reason)
    if name is None:
        return ""
    close = difflib.get_close_matches(name["name"], sorted(set(installed)), n=1, cutoff=0.75)
    if not close and advice:
        return advice
    meant = f"did you mean {close[0]}? " if close else ""
    return f"{meant}--with PACKAGE adds a package that is missing"
