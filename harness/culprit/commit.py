"""The commit level: which commit between two releases made the difference.

A commit of a pure Python package needs no build: it is the newer side's environment with the package's files as in
that commit. What history tells of the changed lines (blame, pickaxe) says which commit to run first; where that commit
and its parent show the change, two runs are enough. Else the commits are bisected along first parents, as `git bisect
--first-parent` does, and a merge that turns out to be the first one is opened afterwards.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from attrs import define, evolve, field, frozen

from harness.culprit.counterfactual import Ground
from harness.culprit.exchange import both_contents
from harness.culprit.sides import PackageFiles, Sides
from harness.errors import BadRepository
from harness.events import Progress
from harness.model import Judgement, Mixture, Observation, Verdict
from harness.model.culprit import Finding, Level, Proof, Region
from harness.repository.clones import clone_of, is_url
from harness.repository.git import Repository
from harness.repository.layout import blob_id
from harness.repository.project_urls import commit_url, pull_request_url, repository_url
from harness.repository.release_source import ReleaseSource, find_source, tree_of
from harness.repository.replay import bisect_log
from harness.repository.suspects import ChangedLines, commits_behind
from harness.scheduling.loop import Engine
from harness.search import Bisection, BisectionStatus, Trial

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.model.commit import Commit
    from harness.probe import Probe

_SUSPECTS = 2
_COMPILED = (".so", ".pyd", ".dylib")


@define
class _Runs:
    """The commits that were run, each once, in the order in which they were."""

    judged: dict[str, tuple[Judgement, Observation]] = field(factory=dict)

    def verdict(self, sha: str) -> Verdict | None:
        """What a commit came to, None where it was not run."""
        return self.judged[sha][0].verdict if sha in self.judged else None


@frozen
class _Source:
    """The repository of the culprit, and what of it takes the place of the newer release's files."""

    ground: Ground
    sides: Sides
    repository: Repository
    newer: ReleaseSource
    older: ReleaseSource
    release: dict[str, str]
    url: str
    runs: _Runs = field(factory=_Runs)

    @property
    def base(self) -> str:
        """The commit that both releases come from: the older one's own, unless that was made on a branch."""
        return self.repository.merge_base(self.older.sha, self.newer.sha)

    def probe(self, sha: str) -> Probe:
        """The newer side with the package's files as in a commit."""
        changes = self.newer.layout.changes(self.release, tree_of(self.repository, sha))
        contents = self.repository.contents(blob for blob in changes.values() if blob is not None)
        files = {path: contents[blob] if blob is not None else None for path, blob in sorted(changes.items())}
        return self.ground.mixed(self.sides.after, Mixture(files=files, label=f"commit {sha[:10]}") if files else None)

    def label(self, sha: str) -> str:
        """A commit as it is shown while it runs."""
        return f"commit {self.repository.describe(sha)}"

    def run(self, sha: str) -> Verdict:
        """Run one commit, unless it was run before."""
        known = self.runs.verdict(sha)
        if known is not None:
            return known
        proof = self.ground.proof(self.label(sha), self.probe(sha), self.sides.after.verdict)
        if proof.observation is not None:
            self.runs.judged[sha] = (Judgement(proof.verdict, proof.reason), proof.observation)
        return proof.verdict

    def proof(self, sha: str, expected: Verdict) -> Proof:
        """The run of a commit as a proof."""
        judgement, observation = self.runs.judged[sha]
        return Proof(f"commit {sha[:10]}", expected, judgement.verdict, judgement.reason, observation)


def find_commit(ground: Ground, sides: Sides, found: Finding, git: str, cache: Path) -> Finding | str:
    """The commit that made the difference between two releases, or why none can be named.

    `git` is a clone's folder, a URL, "auto" for the URL that the package names, or "" for none; `cache` keeps clones.
    Raises `Interrupted`, `NoNetwork`, `NoSpace`.
    """
    source = _source(ground, sides, found, git, cache)
    if isinstance(source, str):
        return source
    repository = source.repository
    chain = repository.first_parents(source.base, source.newer.sha)
    between = f"{source.older.tag} and {source.newer.tag}"
    ground.begin(Level.COMMIT, f"{len(chain)} commits between {between}: which one?")
    notes = (*source.newer.notes, *source.older.notes)
    pair = _suspected(source, found) or _bisected(source, chain)
    if isinstance(pair, str):
        return "; ".join((pair, *notes))
    parent, sha = pair
    commit = repository.describe(sha)
    return Finding(
        Level.COMMIT,
        found.packages,
        files=found.files,
        regions=found.regions,
        proofs=(source.proof(parent, sides.before.verdict), source.proof(sha, sides.after.verdict)),
        candidates=len(chain),
        runs=len(source.runs.judged),
        unresolved=sum(judgement.verdict is Verdict.SKIP for judgement, _ in source.runs.judged.values()),
        commits=(linked(commit, source.url),),
        replay=bisect_log(
            ((repository.describe(one), judged[0].verdict) for one, judged in source.runs.judged.items()),
            find_fix=sides.before.verdict is Verdict.BAD,
        ),
        notes=notes,
    )


def linked(commit: Commit, url: str) -> Commit:
    """A commit with its pages at the host of its repository, where that is known."""
    pull_request = pull_request_url(url, commit.pull_request)
    return evolve(commit, link=commit_url(url, commit.sha), pull_request_link=pull_request)


def open_repository(git: str, url: str, cache: Path) -> Repository:
    """The repository that `--git` means: a folder, a URL, or with "auto" the package's own `url`.

    Raises `BadRepository` where there is none, `NoNetwork` where it can't be cloned.
    """
    if git in ("", "auto") and not url:
        raise BadRepository("the package names no repository", hint="--git takes a clone, or the URL of one")
    if not git:
        raise BadRepository(f"its repository is {url}", hint="--git auto clones it, --git PATH reads your own clone")
    if git == "auto" or is_url(git):
        return clone_of(url if git == "auto" else git, cache)
    return Repository.open(Path(git))


def _source(ground: Ground, sides: Sides, found: Finding, git: str, cache: Path) -> _Source | str:
    """What the level works on, or why it has nothing to do."""
    change = found.packages[0] if len(found.packages) == 1 else None
    if change is None or change.before is None or change.after is None:
        return "commits are searched only where one package moved from one release to another"
    contents = both_contents(ground, sides, found)
    if contents is None:
        return f"the environments of {change.name} can't be taken apart"
    before, after = contents
    if any(path.endswith(_COMPILED) for path in after.digests):
        return f"{change.name} has compiled parts, and its commits would have to be built"
    try:
        url = _url(after)
        repository = open_repository(git, url, cache)
        newest = _blobs(after)
        newer = find_source(repository, change.name, change.after, newest)
        older = find_source(repository, change.name, change.before, _blobs(before))
        source = _Source(ground, sides, repository, newer, older, newest, url)
        _ = source.base
    except BadRepository as error:
        return f"{error.message}; {error.hint}" if error.hint else error.message
    return source


def _suspected(source: _Source, found: Finding) -> tuple[str, str] | None:
    """A commit behind the culprit's lines that shows the change against its parent, and that parent first."""
    lines = [_changed(source, region) for region in found.regions]
    if not lines:
        return None
    for sha in commits_behind(source.repository, source.base, source.newer.sha, lines)[:_SUSPECTS]:
        parents = source.repository.describe(sha).parents
        # The parent is run only where the suspect shows the change.
        shows = bool(parents) and source.run(sha) is source.sides.after.verdict
        if shows and source.run(parents[0]) is source.sides.before.verdict:
            return parents[0], sha
    return None


def _changed(source: _Source, region: Region) -> ChangedLines:
    removed = tuple(
        line[1:] for line in region.diff.splitlines() if line.startswith("-") and not line.startswith("---")
    )
    first, last = region.after
    added = (first, last) if last >= first else None
    return ChangedLines(source.newer.layout.source_of(region.file), added, removed)


def _bisected(source: _Source, chain: tuple[str, ...]) -> tuple[str, str] | str:
    """The commit of the chain with its parent, by bisection; a merge is opened. Or why it can't be told."""
    found = _search(source, (source.base, *chain))
    if isinstance(found, str):
        return found
    parent, sha = found
    parents = source.repository.describe(sha).parents
    for other in parents[1:]:
        fork = source.repository.merge_base(parents[0], other)
        inside = source.repository.first_parents(fork, other)
        if inside and source.run(inside[-1]) is source.sides.after.verdict:
            opened = _search(source, (fork, *inside))
            return opened if not isinstance(opened, str) else found
    return parent, sha


def _search(source: _Source, commits: tuple[str, ...]) -> tuple[str, str] | str:
    """The neighbours among these commits, oldest first, between which the verdict changes."""
    find_fix = source.sides.before.verdict is Verdict.BAD
    ends = {"good": len(commits) - 1, "bad": 0} if find_fix else {"good": 0, "bad": len(commits) - 1}
    known = {i: verdict for i, sha in enumerate(commits) if (verdict := source.runs.verdict(sha)) is not None}
    search = Bisection(len(commits), find_fix=find_fix, tried=known, **ends)

    def judged(trial: Trial, observation: Observation, _cached: bool) -> Judgement:
        judgement = source.ground.judge(observation)
        source.runs.judged[commits[trial.position]] = (judgement, observation)
        return judgement

    engine = Engine(
        source.ground.prober,
        source.ground.lanes,
        lambda trial: source.probe(commits[trial.position]),
        lambda trial: source.label(commits[trial.position]),
        judged,
        source.ground.reporter,
        lambda: Progress(search.states, search.remaining(), unit="commit"),
    )
    engine.drive(search)
    result = search.result
    if result.status in (BisectionStatus.FOUND, BisectionStatus.FIXED) and result.boundary is not None:
        older, newer = sorted(result.boundary)
        return commits[older], commits[newer]
    return _why_not(source, [commits[position] for position in result.suspects], result.status)


def _why_not(source: _Source, suspects: Iterable[str], status: BisectionStatus) -> str:
    named = [str(source.repository.describe(sha)) for sha in suspects]
    if status is BisectionStatus.INCONCLUSIVE and named:
        shown = ", ".join(named[:3]) + (f" and {len(named) - 3} more" if len(named) > 3 else "")
        return f"one of {len(named)} commits, of which those between could not be judged: {shown}"
    return (
        f"the commits from {source.older.tag} to {source.newer.tag} do not show the change by themselves: it came "
        "with the release's other files, or was made on a branch of the older release"
    )


def _blobs(files: PackageFiles) -> dict[str, str]:
    """git's hash of every installed file of the culprit."""
    return {path: blob_id(content) for path in files.digests if (content := files.read(path)) is not None}


def _url(files: PackageFiles) -> str:
    """The repository that the package's own metadata names, "" for none."""
    metadata = next((path for path in files.digests if path.endswith(".dist-info/METADATA")), None)
    content = files.read(metadata) if metadata is not None else None
    return (repository_url(content.decode("utf-8", "replace")) if content else None) or ""
