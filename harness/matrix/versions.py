"""Expands words and ranges on package axes to the versions that can be tried, and branches to their commits.

It reads no index and no repository itself: `expanded` takes a function that lists a project's releases, and one that
looks up a commit. Releases that can't be tried are listed with a reason.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen
from packaging.version import Version

from harness.errors import BadMatrix
from harness.matrix.cells import PACKAGES, Inclusion, LeftOut, Matrix, Value, matches
from harness.matrix.words import Selection, Word, selection

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from packaging.tags import Tag

    from harness.model import Release
    from harness.model.culprit import PinnedCommit


@frozen
class Target:
    """An interpreter that a release must support: its version ("3.11.7") and its wheel tags."""

    version: str
    tags: frozenset[Tag]


def expanded(
    matrix: Matrix,
    releases_of: Callable[[str], Sequence[Release]],
    targets: Sequence[Target],
    commit_of: Callable[[str, str], PinnedCommit] | None = None,
) -> Matrix:
    """Replace every word and range with versions; `left_out` of the result lists matching releases that can't be tried.

    `releases_of` lists all releases of a project; `commit_of` looks up a project's branch, tag or hash. A release needs
    to fit only one of the `targets`. An expanded axis is in version order without duplicates, with
    commits last. An exclude that matches nothing on such an axis is dropped. Raises `BadMatrix` if a value matches no
    release, except `prereleases` if the axis has another value.
    """
    if not matrix.needs_index:
        return matrix
    at_work = _Expansion(matrix.name, releases_of, tuple(targets), commit_of)
    axes = {axis: at_work.axis(axis, values) for axis, values in matrix.axes.items()}
    asked = {axis for axis, values in matrix.axes.items() if axes[axis] != values}
    return evolve(
        matrix,
        axes=axes,
        include=tuple(at_work.inclusion(inclusion, number) for number, inclusion in enumerate(matrix.include, start=1)),
        exclude=tuple(
            exclusion
            for exclusion in matrix.exclude
            if all(_names_one_of(exclusion[axis], axes[axis], axis) for axis in exclusion.keys() & asked)
        ),
        left_out=tuple(at_work.left_out),
        commits=dict(at_work.commits),
    )


@frozen
class _Expansion:
    name: str
    releases_of: Callable[[str], Sequence[Release]]
    targets: tuple[Target, ...]
    commit_of: Callable[[str, str], PinnedCommit] | None
    left_out: dict[LeftOut, None] = field(factory=dict, init=False)
    commits: dict[tuple[str, str], PinnedCommit] = field(factory=dict, init=False)

    def axis(self, axis: str, values: tuple[Value, ...], where: str = "axes.") -> tuple[Value, ...]:
        if not axis.startswith(PACKAGES):
            return values
        project = axis.removeprefix(PACKAGES)
        asked = {str(value): selection(project, str(value)) for value in values}
        if not any(asked.values()):
            return values
        commits = self._commits(axis, [w.revision for w in asked.values() if w is not None and w.word is Word.COMMIT])
        asked = {value: wanted for value, wanted in asked.items() if wanted is None or wanted.word is not Word.COMMIT}
        if not asked:
            return commits
        # A version in the file keeps its spelling, so that the cell keeps its name.
        chosen = {Version(value): value for value, wanted in asked.items() if wanted is None}
        for value, wanted in asked.items():
            if wanted is None:
                continue
            found = self._chosen(project, wanted)
            if not found and wanted.word is not Word.PRERELEASES:
                raise BadMatrix(
                    f"{self.name}: {where}{axis}: {value!r} matches no release of {project} that can be tried"
                    + self._an_example(project)
                )
            for version in found:
                chosen.setdefault(version, str(version))
        if not chosen and not commits:
            raise BadMatrix(
                f"{self.name}: {where}{axis}: {project} has no pre-releases now, and the axis has no other value; "
                "add one, for example 'latest'"
            )
        return (*(chosen[version] for version in sorted(chosen)), *commits)

    def _commits(self, axis: str, revisions: Iterable[str]) -> tuple[Value, ...]:
        """Look up revisions and return their axis values; of two that name the same commit, only the first."""
        found: dict[str, PinnedCommit] = {}
        for revision in revisions:
            if self.commit_of is None:
                raise BadMatrix(f"{self.name}: {axis} names a commit, and no repository can be asked here")
            commit = self.commit_of(axis.removeprefix(PACKAGES), revision)
            found.setdefault(commit.sha, commit)
        self.commits.update({(axis, commit.value): commit for commit in found.values()})
        return tuple(commit.value for commit in found.values())

    def inclusion(self, inclusion: Inclusion, number: int) -> Inclusion:
        choice = {axis: self.axis(axis, (value,), f"include {number}.")[0] for axis, value in inclusion.choice.items()}
        return evolve(inclusion, choice=choice)

    def _chosen(self, project: str, wanted: Selection) -> list[Version]:
        """Return the selected versions, with the newest of each group first, as many as the word selects."""
        chosen: list[Version] = []
        for group in self._groups(project, wanted):
            fitting = 0
            for release in sorted(group, key=lambda r: r.version, reverse=True):
                if (why := self._left_out_because(release)) is not None:
                    self._leave_out(release, why)
                    continue
                chosen.append(release.version)
                fitting += 1
                if wanted.word is Word.LATEST and fitting == wanted.count:
                    break
                if wanted.word in (Word.MONTHLY, Word.MINORS):
                    break
        return chosen

    def _groups(self, project: str, wanted: Selection) -> list[list[Release]]:
        releases = self.releases_of(project)
        # PEP 440: a range includes pre-releases if it names one.
        pre = wanted.word is Word.PRERELEASES or (wanted.word is Word.EVERY and bool(wanted.within.prereleases))
        within = [release for release in releases if wanted.within.contains(release.version, prereleases=pre)]
        if wanted.word is Word.PRERELEASES:
            within = [release for release in within if release.version.is_prerelease]
            return [within if wanted.within else self._newer_than_final(releases, within)]
        if wanted.word is Word.MINORS:
            return _grouped(within, lambda r: (r.version.epoch, r.version.major, r.version.minor))
        if wanted.word is Word.MONTHLY:
            for release in within:
                if release.uploaded is None:
                    self._leave_out(release, "the index has no upload time for it")
            dated = [release for release in within if release.uploaded is not None]
            return _grouped(dated, lambda r: (r.uploaded.year, r.uploaded.month) if r.uploaded else ())
        return [within]

    def _newer_than_final(self, releases: Sequence[Release], pre: list[Release]) -> list[Release]:
        finals = [r.version for r in releases if not r.version.is_prerelease and self._left_out_because(r) is None]
        return [release for release in pre if not finals or release.version > max(finals)]

    def _left_out_because(self, release: Release) -> str | None:
        reasons = [
            release.left_out_because(python=target.version, tags=target.tags, prereleases=True)
            for target in self.targets
        ]
        if None in reasons:
            return None
        # A hint about an option of `harness probe` does not help here.
        return next((re.sub(r" \(--[^)]*\)$", "", why) for why in reasons if why), None)

    def _leave_out(self, release: Release, why: str) -> None:
        self.left_out[LeftOut(release.project, str(release.version), why)] = None

    def _an_example(self, project: str) -> str:
        rows = [row for row in self.left_out if row.project == project]
        return f" ({rows[0].version} is left out: {rows[0].reason})" if rows else ""


def _grouped(releases: Iterable[Release], by: Callable[[Release], Hashable]) -> list[list[Release]]:
    groups: dict[Hashable, list[Release]] = {}
    for release in releases:
        groups.setdefault(by(release), []).append(release)
    return list(groups.values())


def _names_one_of(meant: Iterable[Value], values: Iterable[Value], axis: str) -> bool:
    return any(matches(axis, one, value) for one, value in itertools.product(meant, values))
