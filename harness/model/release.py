"""A release: one version of a project in the index, and whether it can be tried."""

from __future__ import annotations

import functools
from datetime import datetime
from typing import TYPE_CHECKING

from attrs import field, frozen
from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from packaging.tags import Tag


def normalized_name(name: str) -> str:
    """The normalised name of a project (PEP 503)."""
    return str(canonicalize_name(name))


def name_of(requirement: str) -> str:
    """The normalised name of the project that a requirement is for."""
    return normalized_name(Requirement(requirement).name)


# The minor versions of Python on which repros run.
_PYTHONS = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14")


def parsed_version(text: str | None) -> Version | None:
    """The version in a text, None if it is not one (PEP 440)."""
    try:
        return Version(text) if text else None
    except ValueError:  # from before PEP 440, which installers ignore too, or a number of thousands of digits
        return None


def is_prerelease(text: str) -> bool:
    """Whether a text is the version of a pre-release."""
    version = parsed_version(text)
    return version is not None and version.is_prerelease


def version_order(release: str) -> tuple[int, Version | str]:
    """A sort key by version (PEP 440); invalid versions come last."""
    version = parsed_version(release)
    return (0, version) if version is not None else (1, release)


@frozen
class Target:
    """An interpreter that a release must support: its version ("3.11.7"), and the tags of wheels that it accepts."""

    version: str
    tags: frozenset[Tag]

    @functools.cache  # noqa: B019 - a process has a few targets
    def with_python(self, minor: str) -> Target:
        """Return another CPython of this platform, such as "3.10"."""
        number = tuple(map(int, minor.split(".")))
        platforms = sorted({tag.platform for tag in self.tags} - {"any"})
        tags = (
            *cpython_tags(number, platforms=platforms),
            *compatible_tags(number, f"cp{number[0]}{number[1]}", platforms),
        )
        return Target(minor, frozenset(tags))


@frozen
class Release:
    """One version of a project.

    `uploaded` is the upload time (UTC) of its first file, or None if the index has none; `size` is that of its largest
    wheel in bytes, or None; `digests` are the SHA-256 hashes of its wheels by file name, as far as the index has them.
    """

    project: str
    version: Version
    uploaded: datetime | None = None
    yanked: str | None = None
    requires_python: str | None = None
    wheels: tuple[str, ...] = ()
    has_sdist: bool = False
    size: int | None = None
    digests: dict[str, tuple[str, ...]] = field(factory=dict, eq=False)

    def has_wheel_for(self, target: Target) -> bool:
        """Whether an interpreter can install one of its wheels."""
        return any(_fits(wheel, target.tags) for wheel in self.wheels)

    @property
    def builds(self) -> tuple[str, ...]:
        """The versions of its wheels if local labels tell them apart, such as 2.8.0+cpu and 2.8.0+cu128; else ()."""
        versions = {version for wheel in self.wheels if (version := _version_of(wheel)) is not None}
        return tuple(map(str, sorted(versions))) if any(version.local for version in versions) else ()

    def left_out_because(
        self, target: Target, *, prereleases: bool = False, build_from_source: bool = False
    ) -> str | None:
        """Why this release can't be tried with an interpreter, or None if it can."""
        python = target.version
        if not self.wheels and not self.has_sdist:
            return "no files on the index"
        if self.yanked is not None:
            return f"yanked: {self.yanked}" if self.yanked else "yanked"
        if self.version.is_prerelease and not prereleases:
            return "pre-release (--pre includes it)"
        if self.requires_python and not _allows(self.requires_python, python):
            fitting = [minor for minor in _PYTHONS if _allows(self.requires_python, minor)]
            return f"requires Python {self.requires_python}, this is {python}{_with_python(fitting, python)}"
        if self.has_wheel_for(target):
            return None
        if build_from_source and self.has_sdist:
            return None
        build = " (--build allows building it)" if self.has_sdist else ""
        if not self.wheels:
            return f"no wheel, source only{build}"
        others = [minor for minor in _PYTHONS if self.has_wheel_for(target.with_python(minor))]
        return f"no wheel for Python {python} on this platform{_with_python(others, python) or build}"


def _allows(requires_python: str, python: str) -> bool:
    try:
        return SpecifierSet(requires_python).contains(python, prereleases=True)
    except InvalidSpecifier:  # old releases have such fields; installers ignore them, too
        return True


def _with_python(minors: Sequence[str], python: str) -> str:
    """How to get a release that is for these minor versions of Python; "" for none."""
    own = Version(python).minor
    nearest = min(minors, key=lambda minor: abs(Version(minor).minor - own), default=None)
    return f" (--python {nearest} can install it)" if nearest else ""


def _version_of(wheel: str) -> Version | None:
    try:
        return parse_wheel_filename(wheel)[1]
    except InvalidWheelFilename:
        return None


def _fits(wheel: str, tags: AbstractSet[Tag]) -> bool:
    try:
        return not parse_wheel_filename(wheel)[3].isdisjoint(tags)
    except InvalidWheelFilename:
        return False
