"""The values of a package axis: a version; a word and a range, which select releases; or a commit: `main`, `@REV`.

`expanded_axis` replaces words and ranges with the versions that can be tried, and branches with their commits. It reads
no index and no repository itself. Releases that can't be tried are listed with a reason.
"""

from __future__ import annotations

import enum
import json
import re
from typing import TYPE_CHECKING

from attrs import field, frozen
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from harness.errors import BadMatrix
from harness.model.culprit import revision_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from packaging.tags import Tag

    from harness.model import Release
    from harness.model.culprit import PinnedCommit

Value = str | int | float | bool

# Axes in tables get a prefix; all others have plain names.
PACKAGES, PARAMETERS, MADE = "packages.", "parameters.", "made."


def project_of(axis: str) -> str:
    """The project whose releases an axis has: those that are installed, or those that make what is read; else ""."""
    return next((axis.removeprefix(prefix) for prefix in (PACKAGES, MADE) if axis.startswith(prefix)), "")


class Word(enum.StrEnum):
    """Which releases of a project to select; a range without a word selects all of its releases."""

    LATEST = "latest"
    PRERELEASES = "prereleases"
    MONTHLY = "monthly"
    MINORS = "minors"
    EVERY = ""
    COMMIT = "@"


@frozen
class Selection:
    """A selection of releases: a word, a count (for `latest` only) and a range; or a commit by its `revision`."""

    word: Word
    count: int = 1
    within: SpecifierSet = field(factory=SpecifierSet)
    revision: str = ""

    @property
    def follows_the_index(self) -> bool:
        """Whether it depends on what is newest today."""
        return self.word in (Word.LATEST, Word.PRERELEASES)


@frozen
class LeftOut:
    """A release matched by a word or a range that can't be tried, with the reason."""

    project: str
    version: str
    reason: str


@frozen
class Target:
    """An interpreter that a release must support: its version ("3.11.7") and its wheel tags."""

    version: str
    tags: frozenset[Tag]


_NEITHER = (
    "must be a version like 4.53.0, a range like >=4.53,<5, or latest, latest 5, prereleases, monthly or minors, "
    "optionally followed by a range; or a commit: main, @BRANCH, @TAG or @HASH"
)
_SELECTION = re.compile(
    r"(?:(?P<word>latest|prereleases|monthly|minors)(?=\s|$|[<>=!~])\s*)?"
    r"(?:(?P<count>-?\d+)(?=\s|$|[<>=!~])\s*)?"
    r"(?P<name>[A-Za-z0-9][\w.-]*)?(?P<within>.*)",
    re.ASCII | re.DOTALL,
)


def selection(project: str, value: str) -> Selection | None:
    """Parse a value into a selection; None if it is a plain version.

    Raises `ValueError` with a text to append to the value ("names peft, but ...").
    """
    text = value.strip()
    if value[:1].isdigit():
        if not _is_version(value):
            raise ValueError(_NEITHER)
        return None
    if text == "main" or text.startswith("@"):
        if not re.fullmatch(r"main|@[\w.][\w./+-]*", text):
            raise ValueError(_NEITHER)
        return Selection(Word.COMMIT, revision=text.removeprefix("@"))
    named, count, name, rest = _SELECTION.findall(text)[0]
    try:
        word, within = Word(named), SpecifierSet(rest)
    except InvalidSpecifier:
        raise ValueError(_NEITHER) from None
    is_other = bool(name) and canonicalize_name(name) != canonicalize_name(project)
    if is_other and word is not Word.EVERY:
        raise ValueError(f"names {name}, but this axis is of {project}")
    if is_other or (count and word is not Word.LATEST) or (word is Word.EVERY and not within):
        raise ValueError(_NEITHER)
    if count and int(count) < 1:
        raise ValueError("selects no release; the count must be at least 1")
    return Selection(word, int(count or 1), within)


def matches(axis: str, pattern: Value, value: Value) -> bool:
    """Whether an exclude's value matches a value of an axis: it is equal, or a range that contains it."""
    if project := project_of(axis):
        wanted = selection(project, str(pattern))
        if (is_commit := revision_of(str(value)) != value) or (wanted is not None and wanted.word is Word.COMMIT):
            return is_commit and wanted is not None and wanted.revision == revision_of(str(value))
        version = Version(str(value))
        return version == Version(str(pattern)) if wanted is None else wanted.within.contains(version, prereleases=True)
    return json.dumps(pattern) == json.dumps(value)  # since True == 1 in Python


@frozen
class Expansion:
    """Expands the package axes of one matrix; `left_out` and `commits` (by axis and value) collect what it found.

    `releases_of` lists all releases of a project; `commit_of` looks up a project's branch, tag or hash. A release needs
    to fit only one of the `targets`.
    """

    matrix: str
    releases_of: Callable[[str], Sequence[Release]]
    targets: Sequence[Target]
    commit_of: Callable[[str, str], PinnedCommit] | None
    left_out: dict[LeftOut, None] = field(factory=dict, init=False)
    commits: dict[tuple[str, str], PinnedCommit] = field(factory=dict, init=False)

    def axis(self, axis: str, values: tuple[Value, ...], where: str = "axes.") -> tuple[Value, ...]:
        """Return the versions of an axis in order without duplicates, then its commits.

        Raises `BadMatrix` if a value matches no release, except `prereleases` if the axis has another value.
        """
        project = project_of(axis)
        if not project:
            return values
        asked = {str(value): selection(project, str(value)) for value in values}
        if not any(asked.values()):
            return values
        # A version in the file keeps its spelling, so that the cell keeps its name.
        chosen = {Version(value): value for value, wanted in asked.items() if wanted is None}
        commits: dict[str, PinnedCommit] = {}
        for value, wanted in asked.items():
            if wanted is None:
                continue
            if wanted.word is Word.COMMIT:
                commit = self._commit(axis, wanted.revision)
                commits.setdefault(commit.sha, commit)
                continue
            found = self._chosen(project, wanted)
            if not found and wanted.word is not Word.PRERELEASES:
                example = next((row for row in self.left_out if row.project == project), None)
                raise BadMatrix(
                    f"{self.matrix}: {where}{axis}: {value!r} matches no release of {project} that can be tried"
                    + (f" ({example.version} is left out: {example.reason})" if example else "")
                )
            for version in found:
                chosen.setdefault(version, str(version))
        if not chosen and not commits:
            raise BadMatrix(
                f"{self.matrix}: {where}{axis}: {project} has no pre-releases now, and the axis has no other value; "
                "add one, for example 'latest'"
            )
        self.commits.update({(axis, commit.value): commit for commit in commits.values()})
        return (*(chosen[version] for version in sorted(chosen)), *(commit.value for commit in commits.values()))

    def _commit(self, axis: str, revision: str) -> PinnedCommit:
        if self.commit_of is None:
            raise BadMatrix(f"{self.matrix}: {axis} names a commit, and no repository can be asked here")
        return self.commit_of(project_of(axis), revision)

    def _chosen(self, project: str, wanted: Selection) -> list[Version]:
        """Return the selected versions, with the newest of each group first, as many as the word selects."""
        most = {Word.LATEST: wanted.count, Word.MONTHLY: 1, Word.MINORS: 1}.get(wanted.word)
        chosen: list[Version] = []
        for group in self._groups(project, wanted):
            fitting: list[Version] = []
            for release in sorted(group, key=lambda r: r.version, reverse=True):
                if (why := self._left_out_because(release)) is not None:
                    self._leave_out(release, why)
                    continue
                fitting.append(release.version)
                if len(fitting) == most:
                    break
            chosen += fitting
        return chosen

    def _groups(self, project: str, wanted: Selection) -> list[list[Release]]:
        releases = self.releases_of(project)
        # PEP 440: a range includes pre-releases if it names one.
        pre = wanted.word is Word.PRERELEASES or (wanted.word is Word.EVERY and bool(wanted.within.prereleases))
        within = [release for release in releases if wanted.within.contains(release.version, prereleases=pre)]
        match wanted.word:
            case Word.PRERELEASES:
                within = [release for release in within if release.version.is_prerelease]
                return [within if wanted.within else self._newer_than_final(releases, within)]
            case Word.MINORS:
                return _grouped(within, lambda r: (r.version.epoch, r.version.major, r.version.minor))
            case Word.MONTHLY:
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


def _grouped(releases: Iterable[Release], by: Callable[[Release], Hashable]) -> list[list[Release]]:
    groups: dict[Hashable, list[Release]] = {}
    for release in releases:
        groups.setdefault(by(release), []).append(release)
    return list(groups.values())


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True
