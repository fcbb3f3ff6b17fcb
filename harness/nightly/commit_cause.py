"""Finds why a cell changed whose packages include a commit, such as `main`: the commit itself, or another package.

The commit of each project and the other packages are replaced one at a time, in the last night's state and in
tonight's. The part that makes the difference alone is searched: commits are bisected in one environment, packages as in
every other cell.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen

from harness.bisect.answer import Answer
from harness.bisect.commit_answer import search_commits
from harness.culprit.commit_files import CommitFiles
from harness.culprit.commit_runs import CommitSource
from harness.culprit.counterfactual import Trials
from harness.culprit.sides import Side, Sides
from harness.model import Observation, Verdict, normalized_name
from harness.model.culprit import Level
from harness.model.words import listed
from harness.nightly.cause import Finder, Turned, unsearched
from harness.planning.plan import Plan
from harness.probe import Judge
from harness.repository.commits import known_address, repository_url
from harness.repository.git import Repository
from harness.repository.releases import Layout, ReleaseSource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.matrix import Cell
    from harness.matrix.running import CellProbes
    from harness.model import Lock
    from harness.model.commit import PinnedCommit
    from harness.nightly.record import Break

_PACKAGES = ""  # stands for the lock among the parts of a change; the other parts are projects


@frozen
class CellCommits:
    """A cell with its commits; makes the same cell with other commits."""

    cell: Cell
    bench: CellProbes

    @property
    def now(self) -> dict[str, str]:
        """The full hash of each project's commit tonight."""
        return {commit.project: commit.sha for commit in self.cell.commits}

    def moved(self, before: Mapping[str, str]) -> tuple[PinnedCommit, ...]:
        """Return tonight's commits that differ from earlier ones (`before` maps projects to hashes)."""
        return tuple(one for one in self.cell.commits if before.get(one.project, one.sha) != one.sha)

    def have_passed(self, before: Mapping[str, str], known: Break) -> bool:
        """Whether all commits of a break are ancestors of tonight's commit, but not of the earlier one."""
        (project, *others) = {change.name for change in known.culprit}
        moved = next((one for one in self.moved(before) if normalized_name(one.project) == project), None)
        if moved is None or others:
            return False
        repository = Repository.open(Path(moved.folder))
        return all(
            repository.has(one.sha)
            and repository.is_ancestor(one.sha, moved.sha)
            and not repository.is_ancestor(one.sha, before[moved.project])
            for one in known.commits
        )

    def at(self, commits: Mapping[str, str]) -> Cell:
        """Return the cell with some commits replaced (`commits` maps projects to hashes)."""
        return evolve(
            self.cell,
            commits=tuple(evolve(one, sha=commits.get(one.project, one.sha)) for one in self.cell.commits),
        )

    def without(self, project: str) -> Cell:
        """Return the cell without the commit of one project."""
        return evolve(self.cell, commits=tuple(one for one in self.cell.commits if one.project != project))


@frozen
class Found:
    """A cause: the question as a user would have asked it, the answer, and the commits that were searched, if any."""

    plan: Plan
    answer: Answer
    commits: tuple[str, ...] = ()


@frozen
class CommitFinder:
    """Finds which part of a change between two nights made the difference, if commits changed.

    `before` has the hash of each project's commit when `turned.older` ran; `turned.newer` is tonight's run.
    """

    finder: Finder
    commits: CellCommits
    before: Mapping[str, str]
    turned: Turned
    _ran: dict[tuple[str, ...], Observation] = field(factory=dict, init=False, eq=False, repr=False)

    def find(self, depth: Level = Level.REGION) -> Found:
        """Find the cause: a commit, or a package, which is searched down to `depth`.

        Raises `OutOfTimeError`, `Interrupted`, `NoNetwork` and `NoSpace`; finished runs are kept.
        """
        begun = time.monotonic()
        trials = self._trials(self._plan(self.turned.subject))
        parts = [commit.project for commit in self.commits.moved(self.before)]
        if self._older.id != self._newer.id:
            parts.append(_PACKAGES)
        alone = self._alone(trials, parts) if len(parts) > 1 else (parts[0], True)
        if alone is None:
            return self._none_alone(parts)
        part, others_are_new = alone
        if part == _PACKAGES:
            return self._packages(others_are_new=others_are_new, depth=depth)
        found = self._commits(part, others_are_new=others_are_new)
        return evolve(found, answer=evolve(found.answer, wall_s=time.monotonic() - begun))

    @property
    def _older(self) -> Lock:
        return _lock(self.turned.older)

    @property
    def _newer(self) -> Lock:
        return _lock(self.turned.newer)

    @property
    def _verdicts(self) -> tuple[Verdict, Verdict]:
        return (Verdict.BAD, Verdict.GOOD) if self.turned.is_fix else (Verdict.GOOD, Verdict.BAD)

    def _alone(self, trials: Trials, parts: list[str]) -> tuple[str, bool] | None:
        """Return the part that makes the difference alone, and whether that was with all others as tonight; or None."""
        was, now = self._verdicts
        for part in parts:
            if self._run(trials, {part}) is now:
                return part, False
        for part in parts:
            if self._run(trials, set(parts) - {part}) is was:
                return part, True
        return None

    def _run(self, trials: Trials, newer: set[str]) -> Verdict:
        """Return the verdict with these parts as tonight and all others as they were."""
        lock = self._newer if _PACKAGES in newer else self._older
        said = listed(sorted(part or "the other packages" for part in newer))
        probe = evolve(self.commits.bench.probe(self.commits.at(self._at(newer))), lock=lock)
        proof = trials.proof(f"the last night's cell with {said} as tonight", probe, self._verdicts[1])
        if proof.observation is not None:
            self._ran[tuple(sorted(newer))] = proof.observation
        return proof.verdict

    def _at(self, newer: set[str]) -> dict[str, str]:
        return {project: sha for project, sha in self.before.items() if project not in newer}

    def _packages(self, *, others_are_new: bool, depth: Level) -> Found:
        """Find the package that made the difference, with the commits of one night."""
        moved = {commit.project for commit in self.commits.moved(self.before)}
        at = {} if others_are_new else self._at(set())
        turned = evolve(self.turned, probe=self.commits.bench.probe(self.commits.at(at)))
        if others_are_new:
            turned = evolve(turned, older=self._ran.get(tuple(sorted(moved)), turned.older))
        else:
            turned = evolve(turned, newer=self._ran.get((_PACKAGES,), turned.newer))
        return Found(*self.finder.find(turned, depth))

    def _commits(self, project: str, *, others_are_new: bool) -> Found:
        """Find the commit of a project that made the difference, with the packages and other commits of one night."""
        pinned = next(commit for commit in self.commits.cell.commits if commit.project == project)
        cells = evolve(self.commits, cell=self.commits.without(project))
        repro = cells.bench.probe(cells.at({} if others_are_new else self._at({project}))).repro
        plan = self._plan(project)
        trials = self._trials(evolve(plan, repro=evolve(repro, signature=self.turned.signature)))
        lock = self._newer if others_are_new else self._older
        was, now = self._verdicts
        sides = Sides(Side(lock, was, self.turned.older), Side(lock, now, self.turned.newer))
        repository = Repository.open(Path(pinned.folder))
        projects = self.commits.bench.projects[self.commits.cell.python]
        source = CommitSource(
            trials,
            sides,
            newer=_named(repository, pinned.sha),
            older=_named(repository, self.before[project]),
            files=CommitFiles(repository, Layout({}), {}, projects, project),
            url=self._address(pinned),
        )
        chain = repository.first_parents(source.base, pinned.sha)
        span = f"{repository.describe(source.base).short} to {pinned.sha[:10]}"
        trials.begin(Level.COMMIT, f"{len(chain)} commits of {project} from {span}: which one?")
        answer = evolve(search_commits(plan, source, chain), culprit_probes=trials.tally.ran_now)
        return Found(plan, answer, tuple(sha[:10] for sha in (source.base, *chain)))

    def _address(self, pinned: PinnedCommit) -> str:
        """Return the web page of a project's repository, from its URL or else from its metadata; "" if unknown."""
        if address := known_address(pinned.git):
            return address
        built = self.commits.bench.commit(self.commits.cell, pinned)
        if isinstance(built, str) or built.built is None:
            return ""
        metadata = next(built.built.glob("*.dist-info/METADATA"), None)
        return (repository_url(metadata.read_text(encoding="utf-8")) or "") if metadata is not None else ""

    def _none_alone(self, parts: list[str]) -> Found:
        names = listed(f"the commit of {part}" if part else "the other packages" for part in parts)
        plan = self._plan(self.turned.subject)
        return Found(plan, unsearched(plan, self.turned, f"none of {names} made the difference alone"))

    def _plan(self, subject: str) -> Plan:
        return self.finder.plan(evolve(self.turned, subject=subject))

    def _trials(self, plan: Plan) -> Trials:
        finder = self.finder
        judge = Judge(self.turned.signature, finder.prober.store)
        return Trials(plan, finder.prober, finder.lanes, finder.index, judge, finder.reporter)


def _lock(observation: Observation) -> Lock:
    if observation.lock is None:
        raise ValueError("both runs of a judged cell have a lock")
    return observation.lock


def _named(repository: Repository, sha: str) -> ReleaseSource:
    return ReleaseSource("", repository.describe(sha).short, sha, Layout({}))
