"""Finds why a cell changed between its last good run and tonight's, as an answer for a report.

This is the only module of nights and watches that asks the searches of the house. If commits such as `main` changed,
each of them and the other packages are replaced one at a time, in the last night's state and in tonight's. The part
that makes the difference alone is searched: commits are bisected in one environment, packages as in every other cell.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen
from packaging.requirements import Requirement

from harness.bisect.answer import Answer, Status
from harness.bisect.ask_upgrade import UpgradeQuestion, ask_upgrade
from harness.bisect.commit_answer import search_commits
from harness.bisect.wording import sentence_with_culprit
from harness.culprit.commit_files import CommitFiles
from harness.culprit.commit_runs import CommitSource
from harness.culprit.counterfactual import Trials
from harness.culprit.descent import find_culprit
from harness.culprit.sides import Side, Sides
from harness.environment import Uninstallable
from harness.errors import UnknownProject
from harness.events import SearchBegan
from harness.model import Change, Observation, Signature, Verdict, normalized_name
from harness.model.culprit import Culprit, Level
from harness.model.step import Step
from harness.model.words import listed
from harness.planning.plan import Plan, merged_requirements
from harness.planning.world import WorldRequest
from harness.planning.worlds import Worlds
from harness.probe import Judge
from harness.report.answer.archive import kept_answer
from harness.repository.git import Repository
from harness.repository.layout import Layout
from harness.repository.project_urls import known_address, repository_url
from harness.repository.release_source import ReleaseSource
from harness.request.question import Question

if TYPE_CHECKING:
    from harness.bisect.upgrade_answer import UpgradeAnswer
    from harness.culprit.release_search import Searched
    from harness.environment import Index, Interpreter
    from harness.events import Reporter
    from harness.model import Lock, Release
    from harness.model.commit import PinnedCommit
    from harness.nightly.suspicion import Suspicion
    from harness.probe import Probe
    from harness.report import KeptAnswer
    from harness.scheduling.lanes import Lanes
    from harness.scheduling.probers import Probing
    from harness.session import Session

__all__ = ["Cause", "Means", "ask_upgrade", "cause_of", "is_found", "newest_run"]

_PACKAGES = ""  # stands for the lock among the parts of a change; the other parts are projects


@frozen
class Means:
    """What a search needs: where it runs, and where its events go."""

    prober: Probing
    interpreter: Interpreter
    index: Index
    lanes: Lanes
    reporter: Reporter


@frozen
class Cause:
    """The answer, as if a user had asked; `commits` are those that were searched, if any."""

    answer: Answer
    _plan: Plan
    commits: tuple[str, ...] = ()

    def kept(self, start: str, pass_env: tuple[str, ...]) -> KeptAnswer:
        """Return the answer as the archive keeps it; `start` is when the night began (ISO 8601, UTC)."""
        # Reports must not show where the copy of a commit is on this machine.
        plan = evolve(self._plan, repro=evolve(self._plan.repro, project="", inside="", search_path=()))
        return kept_answer(plan, self.answer, start, pass_env, self.commits)


def cause_of(
    means: Means,
    suspicion: Suspicion,
    older: Observation,
    newer: Observation,
    signature: Signature,
    depth: Level = Level.REGION,
    again: tuple[Observation, ...] = (),
) -> Cause:
    """Find what broke or fixed a cell between two runs of different verdicts, down to `depth`.

    `again` are repeated runs of both locks. Raises `OutOfTimeError`, `Interrupted`, `NoNetwork` and `NoSpace`; finished
    runs are kept.
    """
    begun = time.monotonic()
    turned = _Turned(means, suspicion.subject, suspicion.probe, older, newer, signature, suspicion.is_fix, again)
    moved = suspicion.moved
    found = _Parts(suspicion, turned, moved).find(depth) if moved else turned.package(depth)
    return evolve(found, answer=evolve(found.answer, wall_s=time.monotonic() - begun))


def newest_run(session: Session, question: UpgradeQuestion) -> Observation:
    """Run what a watch asks about with the newest packages; a bisection that follows finds this run in the store."""
    device, why = session.device_for(question.repro)
    session.reporter.report(SearchBegan(f"{question.repro.name} with the newest packages", (*question.told, why)))
    requirements = merged_requirements(question.repro.dependencies, question.requirements)
    settings, python = session.settings, session.interpreter.version
    request = WorldRequest(question.repro, python, requirements, settings.held, device, settings.from_source)
    newest = question.ends.bad
    worlds = Worlds(request, session.prober, session.index, session.interpreter, question.subject, newest)
    return session.prober.execute(session.prober.prepare(worlds.of(newest).itself()))


def is_found(answer: UpgradeAnswer) -> bool:
    """Whether tests fail that passed with older packages, whichever package it was."""
    return answer.status is Status.FOUND or bool(answer.groups)


@frozen
class _Turned:
    """Two runs of a cell with different verdicts, the older first, and the probe of the newer."""

    means: Means
    subject: str
    probe: Probe
    older: Observation
    newer: Observation
    signature: Signature
    is_fix: bool
    again: tuple[Observation, ...] = ()

    @property
    def verdicts(self) -> tuple[Verdict, Verdict]:
        return (Verdict.BAD, Verdict.GOOD) if self.is_fix else (Verdict.GOOD, Verdict.BAD)

    @property
    def locks(self) -> tuple[Lock, Lock]:
        if self.older.lock is None or self.newer.lock is None:
            raise ValueError("both runs of a judged cell have a lock")
        return self.older.lock, self.newer.lock

    @property
    def judge(self) -> Judge:
        return Judge(self.signature, self.means.prober.store)

    @property
    def plan(self) -> Plan:
        """The question as a user would have asked it."""
        repro, combination = self.probe.repro, self.probe.combination
        subject = normalized_name(self.subject)
        return Plan(
            question=Question(
                subject=subject,
                repro=repro,
                find_fix=self.is_fix,
                prereleases=bool(combination.prereleases),
                from_source=combination.from_source,
            ),
            repro=evolve(repro, signature=self.signature),
            interpreter=self.means.interpreter,
            device=combination.device,
            releases=(),
            good=None,
            bad=None,
            left_out=(),
            as_of=combination.as_of.isoformat() if combination.as_of else "none",
            requirements=tuple(text for text in combination.requirements if _name(text) != subject),
            holds=combination.holds,
        )

    def trials(self, plan: Plan) -> Trials:
        means = self.means
        return Trials(plan, means.prober, means.lanes, means.index, self.judge, means.reporter)

    def package(self, depth: Level) -> Cause:
        """Find the package between the two locks, and search it down to `depth`."""
        older, newer = self.locks
        was, now = self.verdicts
        if isinstance(gone := self.means.prober.builder.build(older), Uninstallable):
            known_as = "the last bad" if self.is_fix else "the last good"
            return self.unsearched(f"{known_as} environment can't be built any more ({gone.words})")
        trials = self.trials(self.plan)
        culprit = find_culprit(trials, Sides(Side(older, was, self.older), Side(newer, now, self.newer)), depth)
        if culprit is None or not culprit.findings[0].is_shown_one_way:
            found = self.unsearched("no smaller part of the change was proved to make the difference")
            return evolve(found, answer=evolve(found.answer, culprit_probes=trials.tally.ran_now))
        searched = trials.tally.searched
        answer = self._with_culprit(culprit, searched)
        plan = self.plan
        asked = [text for text in (*plan.requirements, plan.subject) if _name(text) != answer.subject]
        return Cause(
            evolve(answer, culprit_probes=trials.tally.ran_now),
            evolve(
                plan,
                question=evolve(plan.question, subject=answer.subject),
                releases=searched.plan.releases if searched is not None else self._known(culprit.packages[0]),
                requirements=tuple(asked),
            ),
        )

    def unsearched(self, why: str) -> Cause:
        """Return an answer from the two runs alone; it names the package if only one changed."""
        older, newer = self.locks
        # The largest version step first.
        changes = tuple(sorted(older.diff(newer), key=lambda change: (change.step, change.name)))
        alone = changes[0] if len(changes) == 1 and changes[0].before and changes[0].after else None
        sentence = f"{_release_sentence((alone,), is_fix=self.is_fix)} Nothing more is known: {why}." if alone else ""
        if alone is None:
            moved = listed(map(str, changes)) or "no package"
            sentence = f"Not sure what {'fixed' if self.is_fix else 'broke'} it: {moved} changed, and {why}."
        answer = self._answer(sentence, changes, (self.older, self.newer), alone)
        return Cause(answer, self.plan)

    def _answer(
        self, sentence: str, changes: tuple[Change, ...], ends: tuple[Observation, Observation], named: Change | None
    ) -> Answer:
        plan = self.plan
        answer = Answer(
            subject=named.name if named else plan.subject,
            repro=self.probe.repro.name,
            status=(Status.FIXED if self.is_fix else Status.FOUND) if named else Status.INCONCLUSIVE,
            sentence=sentence,
            signature=self.signature,
            steps=(),
            device=plan.device.value,
            python=plan.interpreter.version,
            as_of=plan.as_of,
            lock_changes=changes,
            sides=ends,
        )
        if named is None:
            return answer
        if self.is_fix:
            return evolve(answer, last_bad=named.before, first_good=named.after)
        return evolve(answer, last_good=named.before, first_bad=named.after)

    def _with_culprit(self, culprit: Culprit, searched: Searched | None) -> Answer:
        change = culprit.packages[0]
        before, after = self._closest(culprit)
        changes = before.lock.diff(after.lock) if before.lock and after.lock else ()
        answer = evolve(
            self._answer(_release_sentence(culprit.packages, is_fix=self.is_fix), changes, (before, after), change),
            steps=self._steps(change, (before, after), searched),
            suspects=(change.after,) if change.after else (),
            culprit=culprit,
        )
        return evolve(answer, sentence=sentence_with_culprit(answer, culprit))

    def _known(self, change: Change) -> tuple[Release, ...]:
        index = self.means.index
        try:
            ends = [index.release(change.name, version) for version in (change.before, change.after) if version]
        except UnknownProject:
            return ()
        return tuple(release for release in ends if release is not None)

    def _steps(
        self, change: Change, ends: tuple[Observation, Observation], searched: Searched | None
    ) -> tuple[Step, ...]:
        """Return the steps of the bisection over the culprit's releases, or the two sides; then the repeated runs."""
        if change.before is None or change.after is None:
            return ()
        steps = tuple(searched.record.steps) if searched is not None else ()
        steps = steps or tuple(self._step(change.name, run) for run in ends)
        known = {step.observation for step in steps}
        again = (self._step(change.name, run) for run in self.again if run.key not in known)
        return (*steps, *(step for step in again if step.release))

    def _step(self, package: str, run: Observation) -> Step:
        """One run as a step of a search over a package's releases."""
        told = self.judge(run)
        release = (run.lock.version_of(package) if run.lock is not None else None) or ""
        return Step(
            release, told.verdict, told.reason, run.key, cached=False, seconds=run.duration_s, attempt=run.attempt
        )

    def _closest(self, culprit: Culprit) -> tuple[Observation, Observation]:
        """Return the pair of runs that prove the package whose locks differ least."""
        was, now = self.verdicts
        proved = [(p.verdict, p.observation) for p in culprit.findings[0].proofs if p.holds and p.observation]
        older = [self.older, *(run for verdict, run in proved if verdict is was)]
        newer = [self.newer, *(run for verdict, run in proved if verdict is now)]
        culprits = set(culprit.packages)

        def distance(pair: tuple[Observation, Observation]) -> tuple[int, int]:
            one, other = pair[0].lock, pair[1].lock
            changes = one.diff(other) if one is not None and other is not None else ()
            return len(culprits.difference(changes)), len(changes)

        return min(((one, other) for one in older for other in newer), key=distance)


def _release_sentence(packages: tuple[Change, ...], *, is_fix: bool) -> str:
    """Say which release broke or fixed it, and the verdicts before and after."""
    verb, was, now = ("fixed", "bad", "good") if is_fix else ("broke", "good", "bad")
    change = packages[0]
    if len(packages) > 1:
        return f"{listed(map(str, packages))} together {verb} it."
    if change.after is None:
        return f"It was {was} with {change.name} {change.before} and is {now} without it."
    if change.before is None:
        return f"{change.name} {change.after} {verb} it: it was {was} without it."
    return f"{change.name} {change.after} {verb} it: {change.before} is {was}, {change.after} is {now}."


@frozen
class _Parts:
    """The parts of a change between two nights: the commits that moved, and the other packages if they did."""

    suspicion: Suspicion
    turned: _Turned
    moved: tuple[PinnedCommit, ...]
    _ran: dict[tuple[str, ...], Observation] = field(factory=dict, init=False, eq=False, repr=False)

    def find(self, depth: Level) -> Cause:
        """Find the cause: a commit, or a package, which is searched down to `depth`."""
        older, newer = self.turned.locks
        parts = [commit.project for commit in self.moved] + ([_PACKAGES] if older.id != newer.id else [])
        alone = self._alone(parts) if len(parts) > 1 else (parts[0], True)
        if alone is None:
            names = listed(f"the commit of {part}" if part else "the other packages" for part in parts)
            return self.turned.unsearched(f"none of {names} made the difference alone")
        part, others_are_new = alone
        if part == _PACKAGES:
            return self._packages(others_are_new=others_are_new).package(depth)
        return self._commits(part, others_are_new=others_are_new)

    def _alone(self, parts: list[str]) -> tuple[str, bool] | None:
        """Return the part that makes the difference alone, and whether that was with all others as tonight; or None."""
        was, now = self.turned.verdicts
        trials = self.turned.trials(self.turned.plan)
        for part in parts:
            if self._run(trials, {part}) is now:
                return part, False
        for part in parts:
            if self._run(trials, set(parts) - {part}) is was:
                return part, True
        return None

    def _run(self, trials: Trials, newer: set[str]) -> Verdict:
        """Return the verdict with these parts as tonight and all others as they were."""
        lock = self.turned.locks[_PACKAGES in newer]
        said = listed(sorted(part or "the other packages" for part in newer))
        probe = evolve(self.suspicion.probe_at(self._at(newer)), lock=lock)
        proof = trials.proof(f"the last night's cell with {said} as tonight", probe, self.turned.verdicts[1])
        if proof.observation is not None:
            self._ran[tuple(sorted(newer))] = proof.observation
        return proof.verdict

    def _at(self, newer: set[str]) -> dict[str, str]:
        return {project: sha for project, sha in self.suspicion.before.items() if project not in newer}

    def _packages(self, *, others_are_new: bool) -> _Turned:
        """Return the two runs that differ in the other packages only, with the commits of one night."""
        turned = self.turned
        probe = self.suspicion.probe_at({} if others_are_new else self._at(set()))
        if others_are_new:
            moved = tuple(sorted(commit.project for commit in self.moved))
            return evolve(turned, probe=probe, older=self._ran.get(moved, turned.older))
        return evolve(turned, probe=probe, newer=self._ran.get((_PACKAGES,), turned.newer))

    def _commits(self, project: str, *, others_are_new: bool) -> Cause:
        """Find the commit of a project that made the difference, with the packages and other commits of one night."""
        turned, suspicion = self.turned, self.suspicion
        pinned = next(commit for commit in self.moved if commit.project == project)
        repro = suspicion.probe_at({} if others_are_new else self._at({project}), without=project).repro
        plan = evolve(turned, subject=project).plan
        trials = turned.trials(evolve(plan, repro=evolve(repro, signature=turned.signature)))
        lock = turned.locks[others_are_new]
        was, now = turned.verdicts
        repository = Repository.open(Path(pinned.folder))
        projects = suspicion.bench.projects[suspicion.cell.python]
        source = CommitSource(
            trials,
            Sides(Side(lock, was, turned.older), Side(lock, now, turned.newer)),
            newer=_named(repository, pinned.sha),
            older=_named(repository, suspicion.before[project]),
            files=CommitFiles(repository, Layout({}), {}, projects, project),
            url=self._address(pinned),
        )
        chain = repository.first_parents(source.base, pinned.sha)
        span = f"{repository.describe(source.base).short} to {pinned.sha[:10]}"
        trials.begin(Level.COMMIT, f"{len(chain)} commits of {project} from {span}: which one?")
        answer = evolve(search_commits(plan, source, chain), culprit_probes=trials.tally.ran_now)
        return Cause(answer, plan, tuple(sha[:10] for sha in (source.base, *chain)))

    def _address(self, pinned: PinnedCommit) -> str:
        """Return the web page of a project's repository, from its URL or else from its metadata; "" if unknown."""
        if address := known_address(pinned.git):
            return address
        built = self.suspicion.bench.commit(self.suspicion.cell, pinned)
        if isinstance(built, str) or built.built is None:
            return ""
        metadata = next(built.built.glob("*.dist-info/METADATA"), None)
        return (repository_url(metadata.read_text(encoding="utf-8")) or "") if metadata is not None else ""


def _named(repository: Repository, sha: str) -> ReleaseSource:
    return ReleaseSource("", repository.describe(sha).short, sha, Layout({}))


def _name(requirement: str) -> str:
    return normalized_name(Requirement(requirement).name)
