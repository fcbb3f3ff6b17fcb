"""Finds why a cell changed between its last good run and tonight's.

If commits such as `main` changed, last night's commits run with tonight's packages. If that fails, the packages are
searched as in every other cell; else the commits are bisected in tonight's environment.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.asking.answer import Answer, Asked, Boundary, Failure, Guilty, Status
from harness.asking.boundaries import boundary_of, candidates_of
from harness.asking.commits import commits_answer
from harness.asking.wording import cause_of, found_in_words
from harness.culprit.commit import CommitFiles, CommitSource
from harness.culprit.descent import find_culprit
from harness.culprit.sides import Side, Sides
from harness.environment import Uninstallable
from harness.model import Observation, Signature, Verdict, name_of, normalized_name
from harness.model.culprit import Culprit, Level, PinnedCommit
from harness.model.text import listed
from harness.model.verdict import Step
from harness.planning.inquiry import Scope
from harness.repository.git import Repository, known_address, repository_url
from harness.repository.releases import Layout, ReleaseSource
from harness.request.question import Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness.culprit.trials import Trials
    from harness.matrix import Cell
    from harness.matrix.running import Sessions
    from harness.nightly.record import Break, CellRecord
    from harness.probing import Probe


_FAR = 10**6


@frozen
class CellChange:
    """A cell that was good in an earlier run and failed tonight.

    `older` is the earlier run, None if its record is missing; `newer` is tonight's. `signature` is how the failure is
    recognised, `subject` the package that the question is about (normalised); `sessions` make the cell with other
    commits.
    """

    record: CellRecord
    cell: Cell
    probe: Probe
    older: Observation | None
    newer: Observation
    signature: Signature
    subject: str
    sessions: Sessions

    @property
    def sides(self) -> Sides | None:
        """Both runs with their locks; None if one has no lock, or its record is missing."""
        older, newer = self.older, self.newer
        if older is None or older.lock is None or newer.lock is None:
            return None
        return Sides(Side(older.lock, Verdict.GOOD, older), Side(newer.lock, Verdict.BAD, newer))

    @property
    def distance(self) -> int:
        """The number of packages that differ between the two runs; very large if a lock is missing."""
        sides = self.sides
        return len(sides.before.lock.diff(sides.after.lock)) if sides is not None else _FAR

    @property
    def before(self) -> dict[str, str]:
        """The hash of each project's commit in the earlier run."""
        return self.record.good_commits

    @property
    def moved(self) -> tuple[PinnedCommit, ...]:
        """Tonight's commits that differ from those of the earlier run."""
        before = self.before
        return tuple(one for one in self.cell.commits if before.get(one.project, one.sha) != one.sha)

    def probe_at(self, commits: Mapping[str, str], *, without: str | None = None) -> Probe:
        """Return the cell's probe with some commits replaced (`commits` maps projects to hashes), or one removed."""
        pinned = (one for one in self.cell.commits if one.project != without)
        moved = tuple(evolve(one, sha=commits.get(one.project, one.sha)) for one in pinned)
        return self.sessions.probe(evolve(self.cell, commits=moved))

    @property
    def earlier_probe(self) -> Probe:
        """The cell's probe with the commits of the earlier run."""
        return self.probe_at(self.before) if self.moved else self.probe

    def has_come_with(self, known: Break) -> bool:
        """Whether the commits that caused a break are ancestors of tonight's commit, but not of the earlier one."""
        (project, *others) = {change.name for change in known.culprit}
        moved = next((one for one in self.moved if normalized_name(one.project) == project), None)
        if moved is None or others:
            return False
        repository = Repository.open(Path(moved.folder))
        new = repository.lines("rev-list", moved.sha, f"^{self.before[moved.project]}")
        return all(one.sha in new for one in known.commits)


@frozen
class Cause:
    """The search for what made the difference between the two sides of a cell's change.

    `trials_of` returns what runs and judges probes; `again` are repeated runs of both locks.
    """

    trials_of: Callable[[Scope], Trials]
    change: CellChange
    sides: Sides
    again: tuple[Observation, ...] = ()

    def answer(self) -> Answer:
        """Find what broke the cell, down to the lines.

        Raises `OutOfTimeError`, `Interrupted`, `NoNetwork` and `NoSpace`; finished runs are kept.
        """
        begun = time.monotonic()
        answer = self._of_parts() if self.change.moved else self.package()
        return evolve(answer, wall_s=time.monotonic() - begun)

    @property
    def scope(self) -> Scope:
        """What all probes of the cell share."""
        change, combination = self.change, self.change.probe.combination
        return Scope(
            evolve(change.probe.repro, signature=self.change.signature),
            combination.python,
            _without(combination.requirements, change.subject),
            combination.holds,
            combination.device,
            combination.from_source,
            change.subject,
            Policy(prereleases=bool(combination.prereleases)),
        )

    @property
    def asked(self) -> Asked:
        """The question as a user would have asked it."""
        as_of = self.change.probe.combination.as_of
        return Asked.of(self.scope, as_of=as_of.isoformat() if as_of else "none", depth=Level.REGION.value)

    def package(self) -> Answer:
        """Find the package between the two locks, and search it down to the depth."""
        trials = self.trials_of(self.scope)
        if isinstance(gone := trials.prober.builder.build(self.sides.before.lock), Uninstallable):
            return self._unsearched(f"the last good environment can't be built any more ({gone.words})")
        culprit = find_culprit(trials, self.sides, Level.REGION)
        if culprit is None or not culprit.findings[0].is_shown_one_way:
            answer = self._unsearched("no smaller part of the change was proved to make the difference")
        else:
            guilty = Guilty(self._boundary(culprit, trials), culprit)
            answer = self._answer(guilty)
            requirements = _without((*answer.asked.requirements, self.change.subject), guilty.package)
            asked = evolve(answer.asked, subject=guilty.package, requirements=requirements)
            sentence = f"{found_in_words(answer).rstrip('.')}: {cause_of(guilty)}."
            answer = evolve(answer, asked=asked, sentence=sentence)
        return evolve(answer, culprit_probes=trials.tally.ran_now)

    def _unsearched(self, why: str) -> Answer:
        """Return an answer from the two runs alone; it names the package if only one changed."""
        before, after = self.sides.before, self.sides.after
        # The largest version step first.
        changes = tuple(sorted(before.lock.diff(after.lock), key=lambda change: (change.step, change.name)))
        boundary = Boundary(self.change.subject, sides=(before.observation, after.observation), moved=changes)
        if len(changes) != 1 or not (changes[0].before and changes[0].after):
            sentence = f"Not sure what broke it: {listed(map(str, changes)) or 'no package'} changed, and {why}."
            return evolve(self._answer(boundary), sentence=sentence)
        alone = changes[0]
        boundary = evolve(boundary, subject=alone.name, before=alone.before, after=alone.after)
        answer = self._answer(Guilty(boundary))
        return evolve(answer, sentence=f"{found_in_words(answer)} Nothing more is known: {why}.")

    def _answer(self, found: Guilty | Boundary) -> Answer:
        if isinstance(found, Boundary):
            failure = Failure((), self.change.signature, Status.INCONCLUSIVE, boundary=found)
        else:
            failure = Failure((), self.change.signature, Status.FOUND, (found,))
        return Answer(self.asked, failure.status, failures=(failure,))

    def _boundary(self, culprit: Culprit, trials: Trials) -> Boundary:
        """Return the boundary of the culprit: the bisection over its releases, or else the two sides."""
        change, searched = culprit.packages[0], trials.tally.searched
        sides = trials.tally.sides or self.sides
        ends = (sides.before.observation, sides.after.observation)
        versions = searched.axis.names if searched is not None else (change.before, change.after)
        releases = [trials.index.known_release(change.name, version) for version in versions if version]
        candidates = candidates_of(tuple(release for release in releases if release is not None))
        boundary = boundary_of(searched, candidates) if searched is not None else Boundary("", candidates=candidates)
        steps: tuple[Step, ...] = ()
        if change.before is not None and change.after is not None:
            steps = boundary.steps or tuple(_step(change.name, run, trials) for run in ends)
            known = {step.observation for step in steps}
            again = (_step(change.name, run, trials) for run in self.again if run.key not in known)
            steps = (*steps, *(step for step in again if step.release))
        return evolve(
            boundary,
            subject=change.name,
            before=change.before,
            after=change.after,
            suspects=(change.after,) if change.after else (),
            sides=ends,
            steps=steps,
            moved=sides.before.lock.diff(sides.after.lock),
        )

    def _of_parts(self) -> Answer:
        """Find the cause, a commit or a package: last night's commits with tonight's packages tell which."""
        change, after = self.change, self.sides.after
        if self.sides.before.lock.id != after.lock.id:
            probe = evolve(change.earlier_probe, lock=after.lock)
            mixed = self.trials_of(self.scope).proof("last night's commits with tonight's packages", probe, Verdict.BAD)
            if mixed.verdict is Verdict.BAD and mixed.observation is not None:
                sides = evolve(self.sides, after=evolve(after, observation=mixed.observation))
                return evolve(self, change=evolve(change, probe=change.earlier_probe), sides=sides).package()
            if mixed.verdict is not Verdict.GOOD:
                return self._unsearched("last night's commits with tonight's packages can't be judged")
        for commit in change.moved[:-1]:
            answer = self._commits(commit)
            if answer.culprit is not None:
                return answer
        return self._commits(change.moved[-1])

    def _commits(self, pinned: PinnedCommit) -> Answer:
        """Find the commit of a project that made the difference, with tonight's packages and its other commits."""
        project = pinned.project
        change = evolve(self.change, subject=normalized_name(project))
        repro = change.probe_at({}, without=project).repro
        named = evolve(self, change=change)
        trials = self.trials_of(evolve(named.scope, repro=evolve(repro, signature=self.change.signature)))
        repository = Repository.open(Path(pinned.folder))
        source = CommitSource(
            trials,
            Sides(evolve(self.sides.before, lock=self.sides.after.lock), self.sides.after),
            newer=_named(repository, pinned.sha),
            older=_named(repository, change.before[project]),
            files=CommitFiles(repository, Layout({}), {}, change.sessions.projects(change.cell), project),
            url=self._address(pinned),
        )
        chain = repository.first_parents(source.base, pinned.sha)
        span = f"{repository.describe(source.base).short} to {pinned.sha[:10]}"
        trials.begin(Level.COMMIT, f"{len(chain)} commits of {project} from {span}: which one?")
        answer = commits_answer(named.asked, source, chain, Policy())
        return evolve(answer, culprit_probes=trials.tally.ran_now)

    def _address(self, pinned: PinnedCommit) -> str:
        """Return the web page of a project's repository, from its URL or else from its metadata; "" if unknown."""
        if address := known_address(pinned.git):
            return address
        built = self.change.sessions.commit(self.change.cell, pinned)
        if isinstance(built, str) or built.built is None:
            return ""
        metadata = next(built.built.glob("*.dist-info/METADATA"), None)
        return (repository_url(metadata.read_text(encoding="utf-8")) or "") if metadata is not None else ""


def _step(package: str, run: Observation, trials: Trials) -> Step:
    """One run as a step of a search over a package's releases."""
    told = trials.judge(run)
    release = (run.lock.version_of(package) if run.lock is not None else None) or ""
    return Step(release, told.verdict, told.reason, run.key, cached=False, seconds=run.duration_s, attempt=run.attempt)


def _named(repository: Repository, sha: str) -> ReleaseSource:
    return ReleaseSource("", repository.describe(sha).short, sha, Layout({}))


def _without(requirements: tuple[str, ...], project: str) -> tuple[str, ...]:
    return tuple(text for text in requirements if name_of(text) != project)
