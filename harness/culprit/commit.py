"""The commit level: finds the commit between two releases that makes the difference.

A commit of a pure Python package needs no build: it runs in the newer side's environment with the package's files as
in that commit. The history of the changed lines (blame, pickaxe) suggests which commit to run first. If that commit and
its parent show the change, two runs are enough. Otherwise the first-parent history is bisected, as with `git bisect
--first-parent`. If the commit found is a merge, the merged branch is bisected too.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harness.culprit.commit_files import CommitFiles, is_compiled
from harness.culprit.commit_runs import CommitSource, bisected, blobs_of, finding_of
from harness.culprit.exchange import both_contents
from harness.errors import BadRepository
from harness.model import normalized_name
from harness.model.combination import ANY_SOURCE
from harness.model.culprit import Finding, Level, Region
from harness.repository.commits import ChangedLines, commits_behind, repository_url
from harness.repository.git import Repository, clone_of, is_url
from harness.repository.releases import find_source
from harness.request.project import Projects

if TYPE_CHECKING:
    from harness.culprit.counterfactual import Trials
    from harness.culprit.sides import PackageFiles, Sides

_SUSPECTS = 2


def find_commit(trials: Trials, sides: Sides, found: Finding, git: str, cache: Path) -> Finding | str:
    """Find the commit that makes the difference between two releases; returns a text with the reason if it can't.

    `git` is a clone's folder, a URL, "auto" for the URL that the package names, or "" for none. `cache` is the folder
    for clones. Raises `Interrupted`, `NoNetwork`, `NoSpace`.
    """
    source = _source_of(trials, sides, found, git, cache)
    if isinstance(source, str):
        return source
    repository = source.repository
    chain = repository.first_parents(source.base, source.newer.sha)
    between = f"{source.older.tag} and {source.newer.tag}"
    if not chain:
        return f"there are no commits between the tags {between}"
    trials.begin(Level.COMMIT, f"{len(chain)} commits between {between}: which one?")
    notes = (*source.newer.notes, *source.older.notes)
    try:
        pair = _suspected(source, found) or bisected(source, chain)
    except BadRepository as error:  # a partial clone lacks the files of some commits
        return _told(error)
    if isinstance(pair, str):
        return "; ".join((pair, *notes))
    return finding_of(source, pair, found, len(chain))


def builds_of(trials: Trials, project: str) -> Projects | None:
    """Return a builder for commits of a project (its normalised name), or None if `--build` does not allow it."""
    allowed = trials.plan.question.from_source
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


def _source_of(trials: Trials, sides: Sides, found: Finding, git: str, cache: Path) -> CommitSource | str:
    """The repository and both releases in it, or the reason why commits can't be searched."""
    change = found.packages[0] if len(found.packages) == 1 else None
    if change is None or change.before is None or change.after is None:
        return "commits are searched only where one package moved from one release to another"
    contents = both_contents(trials, sides, found)
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
        newer = find_source(repository, change.name, change.after, newest)
        older = find_source(repository, change.name, change.before, blobs_of(before))
        files = CommitFiles(repository, newer.layout, newest, builds if is_compiled(after) else None, change.name)
        source = CommitSource(trials, sides, newer, older, files, url)
        _ = source.base
    except BadRepository as error:
        return _told(error)
    return source


def _told(error: BadRepository) -> str:
    return f"{error.message}; {error.hint}" if error.hint else error.message


def _suspected(source: CommitSource, found: Finding) -> tuple[str, str] | None:
    """A commit that changed the culprit's lines, after its parent, if their runs show the change; else None."""
    lines = [_changed(source, region) for region in found.regions]
    if not lines:
        return None
    try:
        suspects = commits_behind(source.repository, source.base, source.newer.sha, lines)
    except BadRepository:  # a partial clone may lack files that blame needs but the runs don't
        return None
    for sha in suspects[:_SUSPECTS]:
        parents = source.repository.describe(sha).parents
        # Run the parent only if the suspect has the verdict of the newer side.
        shows = bool(parents) and source.run(sha) is source.sides.after.verdict
        if shows and source.run(parents[0]) is source.sides.before.verdict:
            return parents[0], sha
    return None


def _changed(source: CommitSource, region: Region) -> ChangedLines:
    removed = tuple(
        line[1:] for line in region.diff.splitlines() if line.startswith("-") and not line.startswith("---")
    )
    first, last = region.after
    added = (first, last) if last >= first else None
    return ChangedLines(source.newer.layout.source_of(region.file), added, removed)


def repository_of(files: PackageFiles) -> str:
    """The URL of the repository in the package's own metadata, "" if it has none."""
    metadata = next((path for path in files.digests if path.endswith(".dist-info/METADATA")), None)
    content = files.read(metadata) if metadata is not None else None
    return (repository_url(content.decode("utf-8", "replace")) if content else None) or ""
