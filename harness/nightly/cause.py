"""Finds why a cell changed between its last good run and tonight's.

If commits such as `main` changed, each of them and the other packages are replaced one at a time, in the last night's
state and in tonight's. The part that makes the difference alone is searched: commits are bisected in one environment,
packages as in every other cell.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen

from harness.asking.answer import Answer, Asked, Boundary, Failure, Guilty, Status
from harness.asking.boundaries import boundary_of, candidates_of
from harness.asking.commits import commits_answer
from harness.asking.wording import cause_of, found_in_words
from harness.culprit.commit import CommitFiles, CommitSource
from harness.culprit.descent import find_culprit
from harness.culprit.sides import Side, Sides
from harness.environment import Index, Uninstallable
from harness.errors import BadRepository
from harness.model import Observation, Signature, Verdict, name_of, normalized_name
from harness.model.culprit import Culprit, Level, PinnedCommit
from harness.model.text import listed
from harness.model.verdict import Step, verdicts_around
from harness.planning.inquiry import Scope
from harness.repository.git import Repository, known_address, repository_url
from harness.repository.releases import Layout, ReleaseSource, newest_tag
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
    """A cell whose verdict differs from that of an earlier run: it was good and failed tonight, or was fixed.

    `older` is the earlier run, None if its record is missing; `newer` is tonight's. `signature` is how the failure is
    recognised, None for a fix until its break is looked up. `baseline` is the record that tonight's was compared with,
    `subject` the package that the question is about (normalised); `sessions` make the cell with other commits.
    """

    record: CellRecord
    cell: Cell
    probe: Probe
    older: Observation | None
    newer: Observation
    signature: Signature | None
    baseline: CellRecord
    subject: str
    sessions: Sessions
    is_fix: bool = False

    @property
    def sides(self) -> Sides | None:
        """Both runs with their locks; None if one has no lock, or its record is missing."""
        older, newer = self.older, self.newer
        if older is None or older.lock is None or newer.lock is None:
            return None
        was, now = verdicts_around(is_fix=self.is_fix)
        return Sides(Side(older.lock, was, older), Side(newer.lock, now, newer))

    @property
    def distance(self) -> int:
        """The number of packages that differ between the two runs; very large if a lock is missing."""
        sides = self.sides
        return len(sides.before.lock.diff(sides.after.lock)) if sides is not None else _FAR

    @property
    def before(self) -> dict[str, str]:
        """The hash of each project's commit in the earlier run."""
        return self.baseline.commits if self.is_fix else self.record.good_commits

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


def newest_releases(cell: Cell, index: Index) -> dict[str, tuple[str, str]]:
    """Return the tag and commit of each project's newest release, with a tag no later than the commit of the cell.

    It is the baseline of a cell that was never good: so a break on `main` is found in the first night, before it is
    released. Raises `NoNetwork`, and `BadRepository` if there is none.
    """
    found: dict[str, tuple[str, str]] = {}
    for commit in cell.commits:
        project = commit.project
        released = frozenset(release.version for release in index.known_releases(project)) or None
        newest = newest_tag(Repository.open(Path(commit.folder)), project, commit.sha, released)
        if newest is None:
            raise BadRepository(f"{project} has no release with a tag up to {commit.value}")
        found[project] = newest
    if all(found[commit.project][1] == commit.sha for commit in cell.commits):
        raise BadRepository(f"the newest release, {named_tags(found)}, is this commit")
    return found


def named_tags(releases: Mapping[str, tuple[str, str]]) -> str:
    """List releases by project and tag: "peft v0.17.0"."""
    return listed(f"{project} {tag}" for project, (tag, _) in releases.items())


_PACKAGES = ""  # stands for the lock among the parts of a change; the other parts are projects


@frozen
class Cause:
    """The search for what made the difference between the two sides of a cell's change.

    `trials_of` returns what runs and judges probes; `again` are repeated runs of both locks. The parts of the change
    are the commits that moved, and the other packages if they did; `_ran` has the runs of mixtures of both nights, by
    the parts that were as in the newer one.
    """

    trials_of: Callable[[Scope], Trials]
    change: CellChange
    sides: Sides
    again: tuple[Observation, ...] = ()
    _ran: dict[tuple[str, ...], Observation] = field(factory=dict, init=False, eq=False, repr=False)

    def answer(self) -> Answer:
        """Find what broke the cell, down to the lines, or the package that fixed it.

        Raises `OutOfTimeError`, `Interrupted`, `NoNetwork` and `NoSpace`; finished runs are kept.
        """
        begun = time.monotonic()
        answer = self._of_parts() if self.change.moved else self.package()
        return evolve(answer, wall_s=time.monotonic() - begun)

    @property
    def _depth(self) -> Level:
        return Level.PACKAGE if self.change.is_fix else Level.REGION

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
            Policy(find_fix=change.is_fix, prereleases=bool(combination.prereleases)),
        )

    @property
    def asked(self) -> Asked:
        """The question as a user would have asked it."""
        as_of = self.change.probe.combination.as_of
        return Asked.of(self.scope, as_of=as_of.isoformat() if as_of else "none", depth=self._depth.value)

    def package(self) -> Answer:
        """Find the package between the two locks, and search it down to the depth."""
        trials, is_fix = self.trials_of(self.scope), self.change.is_fix
        if isinstance(gone := trials.prober.builder.build(self.sides.before.lock), Uninstallable):
            known_as = "the last bad" if is_fix else "the last good"
            return self._unsearched(f"{known_as} environment can't be built any more ({gone.words})")
        culprit = find_culprit(trials, self.sides, self._depth)
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
        before, after, is_fix = self.sides.before, self.sides.after, self.change.is_fix
        # The largest version step first.
        changes = tuple(sorted(before.lock.diff(after.lock), key=lambda change: (change.step, change.name)))
        boundary = Boundary(self.change.subject, sides=(before.observation, after.observation), moved=changes)
        if len(changes) != 1 or not (changes[0].before and changes[0].after):
            verb, moved = "fixed" if is_fix else "broke", listed(map(str, changes)) or "no package"
            sentence = f"Not sure what {verb} it: {moved} changed, and {why}."
            return evolve(self._answer(boundary), sentence=sentence)
        alone = changes[0]
        boundary = evolve(boundary, subject=alone.name).with_change(alone.before, alone.after, is_fix=is_fix)
        answer = self._answer(Guilty(boundary))
        return evolve(answer, sentence=f"{found_in_words(answer)} Nothing more is known: {why}.")

    def _answer(self, found: Guilty | Boundary) -> Answer:
        if isinstance(found, Boundary):
            failure = Failure((), self.change.signature, Status.INCONCLUSIVE, boundary=found)
        else:
            failure = Failure((), self.change.signature, Status.FIXED if self.change.is_fix else Status.FOUND, (found,))
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
            boundary.with_change(change.before, change.after, is_fix=self.change.is_fix),
            subject=change.name,
            suspects=(change.after,) if change.after else (),
            sides=ends,
            steps=steps,
            moved=sides.before.lock.diff(sides.after.lock),
        )

    def _of_parts(self) -> Answer:
        """Find the cause: a commit, or a package."""
        are_moved = self.sides.before.lock.id != self.sides.after.lock.id
        parts = [commit.project for commit in self.change.moved] + ([_PACKAGES] if are_moved else [])
        alone = self._alone(parts) if len(parts) > 1 else (parts[0], True)
        if alone is None:
            names = listed(f"the commit of {part}" if part else "the other packages" for part in parts)
            return self._unsearched(f"none of {names} made the difference alone")
        part, others_are_new = alone
        if part == _PACKAGES:
            return self._with_commits_of_one_night(others_are_new=others_are_new).package()
        return self._commits(part, others_are_new=others_are_new)

    def _alone(self, parts: list[str]) -> tuple[str, bool] | None:
        """Return the part that makes the difference alone, and whether that was with all others as tonight; or None."""
        trials = self.trials_of(self.scope)
        for part in parts:
            if self._run(trials, {part}) is self.sides.after.verdict:
                return part, False
        for part in parts:
            if self._run(trials, set(parts) - {part}) is self.sides.before.verdict:
                return part, True
        return None

    def _run(self, trials: Trials, newer: set[str]) -> Verdict:
        """Return the verdict with these parts as tonight and all others as they were."""
        side = self.sides.after if _PACKAGES in newer else self.sides.before
        said = listed(sorted(part or "the other packages" for part in newer))
        probe = evolve(self.change.probe_at(self._at(newer)), lock=side.lock)
        proof = trials.proof(f"the last night's cell with {said} as tonight", probe, self.sides.after.verdict)
        if proof.observation is not None:
            self._ran[tuple(sorted(newer))] = proof.observation
        return proof.verdict

    def _at(self, newer: set[str]) -> dict[str, str]:
        return {project: sha for project, sha in self.change.before.items() if project not in newer}

    def _with_commits_of_one_night(self, *, others_are_new: bool) -> Cause:
        """Return the search between two sides that differ in the other packages only."""
        before, after = self.sides.before, self.sides.after
        probe = self.change.probe_at({} if others_are_new else self._at(set()))
        if others_are_new:
            moved = tuple(sorted(commit.project for commit in self.change.moved))
            before = evolve(before, observation=self._ran.get(moved, before.observation))
        else:
            after = evolve(after, observation=self._ran.get((_PACKAGES,), after.observation))
        return evolve(self, change=evolve(self.change, probe=probe), sides=Sides(before, after))

    def _commits(self, project: str, *, others_are_new: bool) -> Answer:
        """Find the commit of a project that made the difference, with the packages and other commits of one night."""
        change = evolve(self.change, subject=normalized_name(project))
        pinned = next(commit for commit in change.moved if commit.project == project)
        repro = change.probe_at({} if others_are_new else self._at({project}), without=project).repro
        named = evolve(self, change=change)
        trials = self.trials_of(evolve(named.scope, repro=evolve(repro, signature=self.change.signature)))
        lock = (self.sides.after if others_are_new else self.sides.before).lock
        repository = Repository.open(Path(pinned.folder))
        source = CommitSource(
            trials,
            Sides(evolve(self.sides.before, lock=lock), evolve(self.sides.after, lock=lock)),
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
