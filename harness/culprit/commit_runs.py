"""Runs commits in the environment of a side, and bisects over them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define, evolve, field, frozen

from harness.culprit.commit_files import CommitFiles
from harness.culprit.counterfactual import Trials
from harness.culprit.sides import PackageFiles, Sides
from harness.events import Progress
from harness.model import Judgement, Lock, Observation, Verdict
from harness.model.culprit import Finding, Level, Proof
from harness.repository.commits import bisect_log, commit_url, pull_request_url
from harness.repository.git import Repository
from harness.repository.releases import ReleaseSource, blob_id
from harness.scheduling.loop import Engine
from harness.search import Bisection, BisectionStatus, Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harness.model.commit import Commit
    from harness.probe import Probe


@define
class _Runs:
    """The judgement and the run of each commit, by hash, in the order of the runs."""

    judged: dict[str, tuple[Judgement, Observation]] = field(factory=dict)

    def verdict(self, sha: str) -> Verdict | None:
        """The verdict on a commit, None if it has not run."""
        return self.judged[sha][0].verdict if sha in self.judged else None


@frozen
class CommitSource:
    """The repository of the culprit, at `url`, and how its commits run.

    `files` replaces the newer release with a commit. `lock_of` returns the lock as of the day of a commit (its hash),
    or None for the lock of the newer side.
    """

    trials: Trials
    sides: Sides
    newer: ReleaseSource
    older: ReleaseSource
    files: CommitFiles
    url: str
    runs: _Runs = field(factory=_Runs)
    lock_of: Callable[[str], Lock | None] = lambda _sha: None

    @property
    def repository(self) -> Repository:
        """The clone that the commits are read from."""
        return self.files.repository

    @property
    def base(self) -> str:
        """The merge base of both releases: the older one's commit, unless that release was made on a branch."""
        return self.repository.merge_base(self.older.sha, self.newer.sha)

    def probe(self, sha: str) -> Probe:
        """A probe of the newer side with the package as in a commit. Raises `BadRepository` and `UserMistake`."""
        lock = self.lock_of(sha)
        side = self.sides.after if lock is None else evolve(self.sides.after, lock=lock)
        return self.files.put_into(self.trials.mixed(side, None), sha)

    def label(self, sha: str) -> str:
        """The name of a commit's run, for progress and reports."""
        return f"commit {self.repository.describe(sha)}"

    def run(self, sha: str) -> Verdict:
        """Return the verdict on a commit, and run it unless it has run before."""
        known = self.runs.verdict(sha)
        if known is not None:
            return known
        proof = self.trials.proof(self.label(sha), self.probe(sha), self.sides.after.verdict)
        if proof.observation is not None:
            self.runs.judged[sha] = (Judgement(proof.verdict, proof.reason), proof.observation)
        return proof.verdict

    def proof(self, sha: str, expected: Verdict) -> Proof:
        """The run of a commit as a proof. Raises `KeyError` if it has not run."""
        judgement, observation = self.runs.judged[sha]
        return Proof(f"commit {sha[:10]}", expected, judgement.verdict, judgement.reason, observation)


def finding_of(source: CommitSource, pair: tuple[str, str], found: Finding, candidates: int) -> Finding:
    """The finding that the second commit of a pair makes the difference; the first is its parent or neighbour."""
    older, sha = pair
    judged = source.runs.judged
    return Finding(
        Level.COMMIT,
        found.packages,
        files=found.files,
        regions=found.regions,
        proofs=(source.proof(older, source.sides.before.verdict), source.proof(sha, source.sides.after.verdict)),
        candidates=candidates,
        runs=len(judged),
        unresolved=sum(judgement.verdict is Verdict.SKIP for judgement, _ in judged.values()),
        commits=(linked(source.repository.describe(sha), source.url),),
        replay=bisect_log(
            ((source.repository.describe(one), run[0].verdict) for one, run in judged.items()),
            find_fix=source.sides.before.verdict is Verdict.BAD,
        ),
        notes=tuple(dict.fromkeys((*source.newer.notes, *source.older.notes))),
    )


def linked(commit: Commit, url: str) -> Commit:
    """A commit with links to its page and its pull request, if the host of the repository is known."""
    pull_request = pull_request_url(url, commit.pull_request)
    return evolve(commit, link=commit_url(url, commit.sha), pull_request_link=pull_request)


def bisected(source: CommitSource, chain: tuple[str, ...]) -> tuple[str, str] | str:
    """Bisect a chain of commits (oldest first), and the merged branch if the result is a merge.

    Returns the parent and the commit, or a text with the reason why no commit can be named.
    """
    found = search_among(source, (source.base, *chain))
    if isinstance(found, str):
        return found
    parent, sha = found
    parents = source.repository.describe(sha).parents
    for other in parents[1:]:
        fork = source.repository.merge_base(parents[0], other)
        inside = source.repository.first_parents(fork, other)
        if inside and source.run(inside[-1]) is source.sides.after.verdict:
            opened = search_among(source, (fork, *inside))
            return opened if not isinstance(opened, str) else found
    return parent, sha


def search_among(source: CommitSource, commits: tuple[str, ...]) -> tuple[str, str] | str:
    """Bisect over these commits, oldest first.

    Returns the two neighbours between which the verdict changes, or a text with the reason why they are unknown.
    """
    find_fix = source.sides.before.verdict is Verdict.BAD
    ends = {"good": len(commits) - 1, "bad": 0} if find_fix else {"good": 0, "bad": len(commits) - 1}
    known = {i: verdict for i, sha in enumerate(commits) if (verdict := source.runs.verdict(sha)) is not None}
    search = Bisection(len(commits), find_fix=find_fix, tried=known, **ends)

    def judged(trial: Trial, observation: Observation, _cached: bool) -> Judgement:
        judgement = source.trials.judge(observation)
        source.runs.judged[commits[trial.position]] = (judgement, observation)
        return judgement

    engine = Engine(
        source.trials.prober,
        source.trials.lanes,
        lambda trial: source.probe(commits[trial.position]),
        lambda trial: source.label(commits[trial.position]),
        judged,
        source.trials.reporter,
        lambda: Progress(search.states, search.remaining(), unit="commit"),
    )
    engine.drive(search)
    result = search.result
    if result.status in (BisectionStatus.FOUND, BisectionStatus.FIXED) and result.boundary is not None:
        older, newer = sorted(result.boundary)
        return commits[older], commits[newer]
    return _why_not(source, [commits[position] for position in result.suspects], result.status)


def _why_not(source: CommitSource, suspects: Iterable[str], status: BisectionStatus) -> str:
    named = [str(source.repository.describe(sha)) for sha in suspects]
    if status is BisectionStatus.INCONCLUSIVE and named:
        shown = ", ".join(named[:3]) + (f" and {len(named) - 3} more" if len(named) > 3 else "")
        return f"one of {len(named)} commits, of which those between could not be judged: {shown}"
    return (
        f"the commits from {source.older.tag} to {source.newer.tag} do not show the change by themselves: it came "
        "with the release's other files, or was made on a branch of the older release"
    )


def blobs_of(files: PackageFiles) -> dict[str, str]:
    """Git's hash of each installed file, by path."""
    return {path: blob_id(content) for path in files.digests if (content := files.read(path)) is not None}
