"""The commit level: finds the commit between two releases, or between two commits, that makes the difference.

A commit of a pure Python package needs no build: it runs in the newer side's environment with the package's files as
in that commit; a package with compiled parts is built, put on the search path, and left out of the lock. The history of
the changed lines (blame, pickaxe) suggests which commit to run first. If that commit and its parent show the change,
only these two are run again, until luck is unlikely. Otherwise the first-parent history is searched as a line, as with
`git bisect --first-parent`. If the commit found is a merge, the merged branch is searched too.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import define, evolve, field, frozen

from harness.culprit.sides import PackageFiles, Side, Sides, both_contents
from harness.errors import BadRepository
from harness.model import Judgement, Lock, Mixture, Observation, Verdict, normalized_name
from harness.model.culprit import Finding, Level, Proof
from harness.model.lock import ANY_SOURCE
from harness.probing.line import Line, ProbedLine, SearchedLine
from harness.question.commands import with_folders
from harness.question.project import Projects
from harness.repository.git import (
    Repository,
    clone_of,
    commit_url,
    is_url,
    pull_request_url,
    repository_url,
)
from harness.repository.releases import ReleaseSource, blob_id, built_from, find_source, tree_of
from harness.search import LineStatus, Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from harness.culprit.proofs import Trials
    from harness.model.culprit import Commit
    from harness.probing import Probe
    from harness.question.request import Policy
    from harness.repository.releases import Layout

_COMPILED = (".so", ".pyd", ".dylib")


def find_commit(trials: Trials, sides: Sides, finding: Finding, git: str, cache: Path) -> Finding | str:
    """Find the commit that makes the difference between two releases; returns a text with the reason if it can't.

    `git` is a clone's folder, a URL, "auto" for the URL that the package names, or "" for none. `cache` is the folder
    for clones. Raises `Interrupted`, `NoNetwork`, `NoSpace`.
    """
    source = _source_of(trials, sides, finding, git, cache)
    if isinstance(source, str):
        return source
    repository = source.repository
    chain = repository.first_parents(source.base, source.newer.sha)
    between = f"{source.older.tag} and {source.newer.tag}"
    if not chain:
        return f"there are no commits between {between}"
    trials.begin(Level.COMMIT, f"{len(chain)} commits between {between}: which one?")
    notes = (*source.newer.notes, *source.older.notes)
    try:
        pair = bisected(source, chain, finding.files, trials.question.policy)
    except BadRepository as error:  # a partial clone lacks the files of some commits
        return _words_of(error)
    if isinstance(pair, str):
        return "; ".join((pair, *notes))
    return finding_of(source, pair, finding, len(chain))


def builds_of(trials: Trials, project: str) -> Projects | None:
    """Return a builder for commits of a project (its normalised name), or None if `--build` does not allow it."""
    allowed = trials.question.combination.from_source
    if ANY_SOURCE not in allowed and project not in map(normalized_name, allowed):
        return None
    builder = trials.prober.builder
    return Projects(builder.workspace, builder.uv, builder.interpreter)


def open_repository(git: str, url: str, cache: Path) -> Repository:
    """Open the repository that `--git` names: a folder, a URL, or with "auto" the package's own `url`.

    Clones are kept in `cache`. Raises `BadRepository` if there is no repository, `NoNetwork` if it can't be cloned.
    """
    if git in ("", "auto") and not url:
        raise BadRepository("the package names no repository", hint="--git takes a clone, or the URL of one")
    if not git:
        raise BadRepository(f"its repository is {url}", hint="--git auto clones it, --git PATH reads your own clone")
    if git == "auto" or is_url(git):
        return clone_of(url if git == "auto" else git, cache)
    return Repository.open(Path(git))


@frozen
class CommitFiles:
    """Turns probes of a release into probes of commits.

    `release` maps the release's installed files to git's hashes; `layout` maps them to files of the repository.
    `builds` builds commits of `project`, each content once; with None, files are exchanged instead.
    """

    repository: Repository
    layout: Layout
    release: Mapping[str, str]
    builds: Projects | None = None
    project: str = ""

    def put_into(self, probe: Probe, sha: str) -> Probe:
        """Return the probe with the package as in a commit. Raises `BadRepository` and `UserMistake`."""
        if self.builds is not None:
            return self._built(probe, sha, self.builds)
        changes = self.layout.changes(self.release, tree_of(self.repository, sha))
        contents = self.repository.contents(blob for blob in changes.values() if blob is not None)
        files = {path: contents[blob] if blob is not None else None for path, blob in sorted(changes.items())}
        return evolve(probe, mixture=Mixture(files=files, label=_label(sha))) if files else probe

    def _built(self, probe: Probe, sha: str, builds: Projects) -> Probe:
        project = builds.read_commit(self.repository, self.repository.describe(sha), self.project)
        if project.built is None:
            why = "; ".join(project.notes) or "it can't be built"
            return evolve(probe, mixture=Mixture(files={}, label=_label(sha), flaw=why))
        lock = probe.lock
        if lock is not None:  # a run is checked against its lock, and the release is not installed
            lock = evolve(lock, pins=tuple(pin for pin in lock.pins if pin.name != project.name))
        return evolve(probe, repro=with_folders(probe.repro, (project,)), lock=lock)


def is_compiled(files: PackageFiles) -> bool:
    """Whether a package has extension modules or shared libraries."""
    return any(path.endswith(_COMPILED) for path in files.digests)


def _label(sha: str) -> str:
    return f"commit {sha[:10]}"


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


def finding_of(source: CommitSource, pair: tuple[str, str], finding: Finding, candidates: int) -> Finding:
    """The finding that the second commit of a pair makes the difference; the first is its parent or neighbour."""
    older, sha = pair
    judged = source.runs.judged
    return Finding(
        Level.COMMIT,
        finding.packages,
        files=finding.files,
        regions=finding.regions,
        proofs=(source.proof(older, source.sides.before.verdict), source.proof(sha, source.sides.after.verdict)),
        candidates=candidates,
        runs=len(judged),
        unresolved=sum(judgement.verdict is Verdict.SKIP for judgement, _ in judged.values()),
        commits=(linked(source.repository.describe(sha), source.url),),
        notes=tuple(dict.fromkeys((*source.newer.notes, *source.older.notes))),
    )


def linked(commit: Commit, url: str) -> Commit:
    """A commit with links to its page and its pull request, if the host of the repository is known."""
    pull_request = pull_request_url(url, commit.pull_request)
    return evolve(commit, link=commit_url(url, commit.sha), pull_request_link=pull_request)


def bisected(
    source: CommitSource, chain: tuple[str, ...], files: Iterable[str], policy: Policy
) -> tuple[str, str] | str:
    """Search a chain of commits (oldest first), and the merged branch if the result is a merge.

    The commits that changed `files`, paths in the newer release, are searched first, each with its first parent.
    Returns the parent and the commit, or a text with the reason why no commit can be named.
    """
    commits = (source.base, *chain)
    neighbours = tuple(itertools.pairwise(commits))
    paths = [source.newer.layout.source_of(file) for file in files]
    touching = source.repository.first_parents(source.base, source.newer.sha, *paths) if paths else ()
    likely = tuple(dict.fromkeys(sha for pair in neighbours if pair[1] in touching for sha in pair))
    pair = pair_of(source, likely, search_among(source, likely, policy)) if likely else ""
    if pair not in neighbours:
        pair = pair_of(source, commits, search_among(source, commits, policy))
    return pair if isinstance(pair, str) else inside_merge(source, pair, policy)


def inside_merge(source: CommitSource, pair: tuple[str, str], policy: Policy) -> tuple[str, str]:
    """If the second commit of a pair is a merge that brought the change, return the pair inside the merged branch."""
    parents = source.repository.describe(pair[1]).parents
    for other in parents[1:]:
        fork = source.repository.merge_base(parents[0], other)
        inside = source.repository.first_parents(fork, other)
        if inside and source.run(inside[-1]) is source.sides.after.verdict:
            branch = (fork, *inside)
            opened = pair_of(source, branch, search_among(source, branch, policy))
            return opened if not isinstance(opened, str) else pair
    return pair


def search_among(source: CommitSource, commits: tuple[str, ...], policy: Policy) -> SearchedLine:
    """Search the line of these commits, oldest first, with what is known of them."""
    trials = source.trials
    line = ProbedLine(
        line_among(source, commits), trials.judge, trials.prober, trials.lanes, trials.reporter, policy.noise
    )
    searched = line.search(known_among(source, commits))
    trials.tally.ran_now += searched.record.ran
    trials.tally.failed += searched.search.is_noisy  # proofs that hold may be luck, too
    keep_runs(source, commits, searched)
    return searched


def line_among(source: CommitSource, commits: tuple[str, ...]) -> Line:
    """Return these commits, oldest first, as a line."""
    find_fix = source.sides.before.verdict is Verdict.BAD
    last = len(commits) - 1
    return Line(
        source.files.project,
        tuple(sha[:10] for sha in commits),
        lambda trial: evolve(source.probe(commits[trial.position]), attempt=trial.attempt),
        good=last if find_fix else 0,
        bad=0 if find_fix else last,
        find_fix=find_fix,
        unit="commit",
        label=lambda position: source.label(commits[position]),
    )


def known_among(source: CommitSource, commits: tuple[str, ...]) -> dict[Trial, Observation]:
    """Return the runs of these commits that were made before, without those under a trace."""
    return {
        Trial(position, run.attempt): run
        for position, sha in enumerate(commits)
        if sha in source.runs.judged and not (run := source.runs.judged[sha][1]).trace
    }


def keep_runs(source: CommitSource, commits: tuple[str, ...], searched: SearchedLine) -> None:
    """Keep the run of each commit that a search ran, for its finding."""
    for trial, observation in sorted(searched.record.observations.items()):
        verdict = searched.record.judge(observation)
        sha = commits[trial.position]
        # Of a flaky commit, the run that shows what its side of the change is called.
        is_side = searched.search.result.boundary is not None and trial.position in searched.search.result.boundary
        if sha not in source.runs.judged or (is_side and observation in searched.sides):
            source.runs.judged[sha] = (verdict, observation)


def pair_of(source: CommitSource, commits: tuple[str, ...], searched: SearchedLine) -> tuple[str, str] | str:
    """Return the two neighbours between which the verdict changes, or a text with the reason why they are unknown."""
    result = searched.search.result
    if result.status in (LineStatus.FOUND, LineStatus.FIXED) and result.boundary is not None:
        older, newer = sorted(result.boundary)
        return commits[older], commits[newer]
    return _why_not(source, [commits[position] for position in result.suspects], result.status)


def _why_not(source: CommitSource, suspects: Iterable[str], status: LineStatus) -> str:
    named = [str(source.repository.describe(sha)) for sha in suspects]
    if status is LineStatus.INCONCLUSIVE and named:
        shown = ", ".join(named[:3]) + (f" and {len(named) - 3} more" if len(named) > 3 else "")
        return f"one of {len(named)} commits, of which those between could not be judged: {shown}"
    return (
        f"the commits from {source.older.tag} to {source.newer.tag} do not show the change by themselves: it came "
        "with the release's other files, or was made on a branch of the older release"
    )


def blobs_of(files: PackageFiles) -> dict[str, str]:
    """Git's hash of each installed file, by path."""
    return {path: blob_id(content) for path in files.digests if (content := files.read(path)) is not None}


def _source_of(trials: Trials, sides: Sides, finding: Finding, git: str, cache: Path) -> CommitSource | str:
    """The repository and both releases in it, or the reason why commits can't be searched."""
    change = finding.packages[0] if len(finding.packages) == 1 else None
    if change is None or change.before is None or change.after is None:
        return "commits are searched only where one package moved from one release to another"
    contents = both_contents(trials.prober, sides, finding)
    if contents is None:
        return f"the files of {change.name} can't be exchanged between the two environments"
    before, after = contents
    builds = builds_of(trials, change.name)
    if is_compiled(after) and builds is None:
        allows = f"--build {change.name} allows building its commits, which runs code of them"
        return f"{change.name} has compiled parts: {allows}"
    try:
        url = repository_of(after)
        repository = open_repository(git, url, cache)
        newest = blobs_of(after)
        newer = find_source(repository, change.name, change.after, newest, commit=_commit_of(after, sides.after))
        own = _commit_of(before, sides.before)
        older = find_source(repository, change.name, change.before, blobs_of(before), commit=own)
        files = CommitFiles(repository, newer.layout, newest, builds if is_compiled(after) else None, change.name)
        trials = trials.for_mixtures(sides, finding.proofs)
        source = CommitSource(trials, sides, newer, older, files, url)
        _ = source.base
    except BadRepository as error:
        return _words_of(error)
    return source


def _commit_of(files: PackageFiles, side: Side) -> str:
    """The commit from which the package of a side was built, as far as it says so itself."""
    names = set(files.owners.values())
    version = side.lock.version_of(names.pop()) if len(names) == 1 else None
    return built_from(version or "", files.digests, files.text)


def _words_of(error: BadRepository) -> str:
    return f"{error.message}; {error.hint}" if error.hint else error.message


def repository_of(files: PackageFiles) -> str:
    """The URL of the repository in the package's own metadata, "" if it has none."""
    metadata = next((path for path in files.digests if path.endswith(".dist-info/METADATA")), None)
    content = files.read(metadata) if metadata is not None else None
    return (repository_url(content.decode("utf-8", "replace")) if content else None) or ""
