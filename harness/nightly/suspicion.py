"""A cell whose verdict differs from that of an earlier run, with its commits and what it can be compared with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen

from harness.errors import BadRepository, UnknownProject
from harness.model import normalized_name
from harness.model.text import listed
from harness.repository.git import Repository
from harness.repository.releases import newest_tag

if TYPE_CHECKING:
    from collections.abc import Mapping

    from packaging.version import Version

    from harness.environment import Index
    from harness.matrix import Cell
    from harness.matrix.sessions import CellProbes
    from harness.model import Observation, Signature
    from harness.model.culprit import PinnedCommit
    from harness.nightly.record import Break, CellRecord
    from harness.probing import Probe


@frozen
class Suspicion:
    """A cell whose verdict differs from its baseline's; `signature` is None if it is good now.

    `subject` is the package that the question is about; `bench` makes the cell with other commits.
    """

    record: CellRecord
    cell: Cell
    probe: Probe
    observation: Observation
    signature: Signature | None
    baseline: CellRecord
    subject: str
    bench: CellProbes

    @property
    def is_fix(self) -> bool:
        """Whether the cell was bad and is good now."""
        return self.signature is None

    @property
    def before(self) -> dict[str, str]:
        """The hash of each project's commit in the earlier run that this one is compared with."""
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
        return self.bench.probe(evolve(self.cell, commits=moved))

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
        return all(
            repository.has(one.sha)
            and repository.is_ancestor(one.sha, moved.sha)
            and not repository.is_ancestor(one.sha, self.before[moved.project])
            for one in known.commits
        )


@frozen
class NewestReleases:
    """The tag of each project's newest release and the hash of its commit; `why_not` says why there is none."""

    tags: dict[str, str] = field(factory=dict)
    commits: dict[str, str] = field(factory=dict)
    why_not: str = ""

    def __str__(self) -> str:
        return listed(f"{project} {tag}" for project, tag in self.tags.items())


def newest_releases(cell: Cell, index: Index) -> NewestReleases:
    """Find the newest release of each project of which a cell takes a commit, with a tag no later than that commit.

    It is the baseline of a cell that was never good: so a break on `main` is found in the first night, before it is
    released. Raises `NoNetwork`.
    """
    found = NewestReleases()
    for commit in cell.commits:
        project = commit.project
        try:
            newest = newest_tag(Repository.open(Path(commit.folder)), project, commit.sha, _released(index, project))
        except BadRepository as error:
            return NewestReleases(why_not=error.message)
        if newest is None:
            return NewestReleases(why_not=f"{project} has no release with a tag up to {commit.value}")
        found.tags[project], found.commits[project] = newest
    if all(found.commits[commit.project] == commit.sha for commit in cell.commits):
        return NewestReleases(why_not=f"the newest release, {found}, is this commit")
    return found


def _released(index: Index, project: str) -> frozenset[Version] | None:
    """Return the versions of a project on the index, None if it has no such project."""
    try:
        return frozenset(release.version for release in index.releases(normalized_name(project)))
    except UnknownProject:
        return None
