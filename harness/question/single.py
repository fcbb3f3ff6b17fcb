"""A single probe: a new one with the settings of a session, or one that repeats an observation."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.environment.dates import era_of, one_date
from harness.errors import BadRepro, UserMistake
from harness.events import Note
from harness.model import Combination, Device, Judgement, Observation, Outcome, Repro, Verdict, name_of
from harness.model.repro import MAKE, USE, Bounds, Given, command_repro
from harness.model.requirements import merged_requirements, pinned_prereleases, required_name, unpinned
from harness.model.text import sentence_and_table
from harness.probing import Judge, Prepared, Probe, next_attempt
from harness.probing.made import supplied
from harness.question.commands import with_folders
from harness.question.project import Project, Projects, find_project
from harness.question.releases import holds_of, notes_on_holds, subject_of
from harness.question.repros import chosen_repro, digest_of, find_repro, names_meant
from harness.search import ByNumber, Grid
from harness.session import at_python

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from harness.session import Session


_GIT_SKIPS = 125  # git bisect run: "the current source code cannot be tested"


@frozen
class Probed:
    """One run and its verdict; `judgement` is None if the repro has no signature."""

    observation: Observation
    judgement: Judgement | None

    def __str__(self) -> str:
        return f"{self.judgement.verdict.word}: {self.judgement.reason}" if self.judgement else self._outcome

    @property
    def _outcome(self) -> str:
        run = self.observation
        return f"{run.outcome.value}: {run.detail}" if run.detail else run.outcome.value

    def _repr_html_(self) -> str:
        run = self.observation
        rows = [("repro", run.repro), ("outcome", self._outcome), ("device", run.device.value), *run.metrics.items()]
        return sentence_and_table(str(self), ("", ""), [*rows, ("seconds", f"{run.duration_s:.1f}")])

    @property
    def exit_code_for_git(self) -> int:
        """The exit code for `git bisect run`: 0 good, 1 bad, 125 if it can't be judged."""
        if self.judgement is not None:
            return {Verdict.GOOD: 0, Verdict.BAD: 1, Verdict.SKIP: _GIT_SKIPS}[self.judgement.verdict]
        if self.observation.outcome is Outcome.COMPLETED:
            return 0
        return 1 if self.observation.outcome.ran else _GIT_SKIPS

    @property
    def exit_code(self) -> int:
        """The exit code: 0 good, 1 bad, 3 skipped; without a signature 0 if the run completed, else 1."""
        if self.judgement is not None:
            return {Verdict.GOOD: 0, Verdict.BAD: 1, Verdict.SKIP: 3}[self.judgement.verdict]
        return 0 if self.observation.outcome is Outcome.COMPLETED else 1


def prepared_probe(session: Session, repro: Repro, *, fresh: bool = False, replaced: Sequence[str] = ()) -> Prepared:
    """Prepare a probe with the session's settings; with `fresh` it runs even if the store has an answer.

    If `python` is a path, the probe runs in that environment as it is. Raises as `probe_of` does.
    """
    with names_meant((*repro.dependencies, *session.settings.with_)):
        return _prepared(session, probe_of(session, repro, replaced), fresh=fresh)


def probe_of(session: Session, repro: Repro, replaced: Sequence[str] = ()) -> Probe:
    """Return the probe of a repro with the session's settings, and with what its first step makes.

    As in a bisection, the repro's own holds apply: those for the subject that `--with` names, else for its default one.
    `replaced` are projects that a folder replaces. Raises `UserMistake`, `UnknownProject`, `NoNetwork`.
    """
    settings = session.settings
    named = [*replaced, *(required_name(text) for text in settings.with_)]
    subject = subject_of(repro, named)
    holds = settings.hold if settings.in_place else holds_of(repro, subject, named, settings.hold)
    for sentence in notes_on_holds(repro, subject, holds):
        session.reporter.report(Note(sentence))
    combination = combination_of(session, repro, settings.with_, holds, _date_of(session, repro, named))
    return Probe(supplied(session.local, repro, combination, settings.as_of, settings.made_with), combination)


def _prepared(session: Session, probe: Probe, *, fresh: bool) -> Prepared:
    settings = session.settings
    if settings.in_place and settings.python is not None:
        if settings.with_ or settings.hold:
            raise UserMistake("--python PATH runs in an environment as it is; --with and --hold can't change it")
        return session.local.prepare_in(settings.python, probe)
    prepared = session.local.prepare(probe)
    while fresh and prepared.cached:
        probe = next_attempt(probe)
        prepared = session.local.prepare(probe)
    return prepared


def combination_of(
    session: Session, repro: Repro, with_: tuple[str, ...], holds: tuple[str, ...], day: datetime | None
) -> Combination:
    """Return the combination of a repro as it is, without a release that a search tries."""
    device, _ = session.device_for(repro)
    return Combination(
        python=session.interpreter.version,
        requirements=merged_requirements(repro.dependencies, with_),
        holds=merged_requirements((), holds),
        as_of=day,
        device=device,
        prereleases=pinned_prereleases(with_),
        from_source=session.settings.buildable,
    )


def shared_combination(
    session: Session, repro: Repro, with_: tuple[str, ...], subject: str, *, is_set: bool = False
) -> Combination:
    """Return the combination that all probes of a question share: what stands beside the releases of its subject.

    With `is_set` the subject is part of it, and the repro's own holds for the subject do not apply.
    """
    holds = holds_of(repro, "" if is_set else subject, set(map(required_name, with_)), session.settings.hold)
    requirements = merged_requirements(repro.dependencies, with_, () if is_set else {subject})
    if is_set and subject and subject not in map(name_of, requirements):
        requirements = (*requirements, subject)
    shared = combination_of(session, repro, with_, holds, None)
    return evolve(shared, requirements=requirements, prereleases=())


def _date_of(session: Session, repro: Repro, named: Sequence[str]) -> datetime | None:
    """Return the day whose packages are used beside what is pinned.

    Without --as-of it is that of the repro's own exact versions, if these are its subject's bad end of its own day.
    """
    settings, bounds = session.settings, repro.subjects.get(subject_of(repro, named), Bounds())
    exact = [text for text in repro.dependencies if unpinned(text) != text]
    if settings.as_of is None and bounds.as_of == "era" and exact and not settings.with_:
        day = era_of(exact, session.index)
        if day is not None:
            session.reporter.report(Note(f"other packages: as they were on {day:%Y-%m-%d} (--as-of changes it)"))
        return day
    return one_date(settings.as_of, settings.with_, session.index)


def executed(session: Session, prepared: Prepared, *, repeat: bool = False) -> Probed:
    """Run a prepared probe, and judge it. Raises `NoSpace`.

    With `repeat` it is run like a cell of a matrix: if a metric judges it, until the verdict is clear.
    """
    signature, probe = prepared.probe.repro.signature, prepared.probe
    if signature is None or not repeat:
        observation = session.local.execute(prepared)
        return Probed(observation, Judge(signature, session.store)(observation) if signature is not None else None)
    judge = Judge(signature, session.store)
    runs: list[Observation] = []
    search = ByNumber(Grid(1), lambda trial: judge.reading(runs[trial.attempt]))
    while trials := search.ask():
        if runs and (lock := runs[0].lock) is not None:
            again = evolve(probe, attempt=probe.attempt + len(runs))
            in_place = session.settings.python if session.settings.in_place else None
            prepared = (
                session.local.prepare_in(in_place, again) if in_place else session.local.prepare_lock(again, lock)
            )
        runs.append(session.local.execute(prepared))
        search.tell(trials[0], judge(runs[-1]).verdict)
    judgement, shown = judge.together(runs)
    return Probed(shown, judgement)


def prepared_again(
    session: Session, key: str, named: str | None, run: str | None, folders: Sequence[Project] = ()
) -> tuple[Session, Prepared]:
    """Prepare a probe that repeats an observation, given the start of its key; also returns the session to run it in.

    What ran is in the results, and may be named again, with the folders that replaced releases. Raises `UserMistake`.
    """
    observation = _observation(session, key)
    lock = observation.lock
    if lock is None:
        raise UserMistake(f"nothing was installed for {key}, so it can't run again: {observation.detail}")
    if observation.by_hand or observation.mixture:
        what = (
            f"ran with files of two releases ({observation.mixture})" if observation.mixture else "was judged by hand"
        )
        raise UserMistake(
            f"{key} {what}, which a run of its own can't repeat",
            hint="to run it again, ask its question with --results and a new folder",
        )
    recorded = session.store.get_repro(observation.repro_digest) if not (named or run or folders) else None
    if recorded is not None:
        repro = _as_recorded(session, recorded, observation)
    else:
        repro = _as_named(session, key, observation, named, run, folders)
    ran = (o.attempt for o in session.store.observations() if (o.lock, o.repro_digest) == (lock, repro.digest))
    probe = Probe(
        repro.within(session.settings.timeout),
        Combination(python=lock.python, requirements=observation.requirements, device=Device(observation.device)),
        attempt=max(ran, default=observation.attempt) + 1,
        hash_seed=observation.machine.get("hash_seed", 0),
    )
    if in_place := observation.machine.get("in_place"):
        prepared = session.local.prepare_in(in_place, probe)
        if prepared.environment is not None and prepared.environment.lock != lock:
            raise UserMistake(f"{in_place} has other packages than when {key} was observed")
        return session, prepared
    if lock.python != session.interpreter.version:
        session = at_python(session, lock.python)
    return session, session.local.prepare_lock(probe, lock)


def _observation(session: Session, key: str) -> Observation:
    """Return the only observation whose key is this, or starts so. Raises `UserMistake`."""
    known = [o for o in session.store.observations() if o.key.startswith(key)]
    known = [o for o in known if o.key == key] or known
    if len(known) != 1:
        why = f"{len(known)} observation ids start" if known else "no observation id starts"
        hint = "harness results lists them; type it where the question was asked, or name its records with --results"
        raise UserMistake(f"{why} with {key!r} in {session.store.root}", hint=hint)
    return known[0]


def _as_recorded(session: Session, repro: Repro, observation: Observation) -> Repro:
    """Return the repro of an observation as its record has it. Raises `UserMistake` if files that it needs are gone."""
    name = observation.key
    for folder in repro.given:
        if session.local.trees.folder(folder.digest) is None:
            raise _no_longer_given(observation, folder.variable)
    is_gone = not all(map(Path.is_dir, _folders_of(repro)))
    if is_gone and repro.project and (root := find_project(session.local.invoked_from)) is not None:
        Projects.of(session).read(root)  # which makes the same copy again, if nothing has changed
        is_gone = not all(map(Path.is_dir, _folders_of(repro)))
    if is_gone:
        hint = "harness clean removes such copies; ask the question again for a new one"
        raise UserMistake(f"the copy of the files that {name} ran with is gone", hint=hint)
    if repro.argv == tuple(shlex.split(repro.name)) and not repro.project:  # it reads files of the user
        now = command_repro(repro.name, content_digest=digest_of(repro.name)).digest
        if not repro.digest.startswith(now):
            session.reporter.report(Note(f"files have changed since {name} was observed: this runs them as they are"))
            repro = evolve(repro, digest=now + repro.digest[len(now) :])
    if repro.source and _has_changed(Path(repro.path), repro.source):
        session.reporter.report(Note(f"{repro.path} has changed since {name} was observed: this runs it as it was"))
    return evolve(repro.with_params(observation.params, typed=False), params=observation.params)


def _has_changed(path: Path, source: str) -> bool:
    with contextlib.suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace").removeprefix("\ufeff") != source
    return False


def _folders_of(repro: Repro) -> list[Path]:
    """The folders of the cache that a repro needs: the copy of its project, and built ones; not all have a `src`."""
    built = [Path(text) for text in repro.search_path if Path(text).is_absolute() and Path(text).name != "src"]
    return [Path(repro.project), *built] if repro.project else built


def _as_named(
    session: Session,
    key: str,
    observation: Observation,
    named: str | None,
    run: str | None,
    folders: Sequence[Project],
) -> Repro:
    """Return the repro that is named, if it is that of an observation. Raises `UserMistake`."""
    try:
        chosen = chosen_repro(named, run, None, ()) if named or run else find_repro(observation.repro)
    except BadRepro as error:
        if named or run:
            raise
        hint = f"name it: harness probe --again {key} REPRO, or with --run COMMAND"
        raise UserMistake(f"the results don't have what {key} ran", hint=hint) from error
    repro = chosen.with_params(observation.params, typed=False)
    repro = _as_given(session, with_folders(repro, folders), observation)
    if repro.digest == observation.repro_digest:
        return repro
    if folders or observation.repro_digest.startswith(f"{chosen.digest}-"):
        again = '--with "NAME @ FOLDER", or for a commit --with "NAME @ CLONE@COMMIT"'
        raise UserMistake(f"{key} ran with other folders", hint=f"give its folders as they were: {again}")
    what = ["--run", run] if run else [named or chosen.path]
    raise UserMistake(
        f"{observation.repro} has changed since {key} was observed",
        hint=f"to run its current version: {shlex.join(['harness', 'probe', *what])}",
    )


def _as_given(session: Session, repro: Repro, observation: Observation) -> Repro:
    """Return a repro with what an observation was given, at the step that it was. Raises `UserMistake`."""
    folders = []
    for variable, record in observation.given.items():
        folder = session.local.trees.folder(record["tree"])
        if folder is None:
            raise _no_longer_given(observation, variable)
        folders.append(Given(variable, str(folder), record["tree"], record.get("by", ""), record.get("run", "")))
    repro = repro.with_given(*folders, step=USE if any(folder.by for folder in folders) else "")
    return repro.first_step if observation.repro_digest.endswith(f"+{MAKE}") else repro


def _no_longer_given(observation: Observation, variable: str) -> UserMistake:
    return UserMistake(
        f"what {observation.key} found in {variable} is no longer in the cache",
        hint="its question makes it again",
    )
