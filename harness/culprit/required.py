"""Learns from failures which packages of a mixed lock need each other.

Packages are exchanged without the resolver, because many work with versions that their requirements exclude. If a mixed
lock fails, its unmet requirements, read from the installed metadata, say which packages must be exchanged too.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from attrs import define, field
from packaging.requirements import InvalidRequirement, Requirement

from harness.culprit.ties import Ties
from harness.environment.workspace import site_packages
from harness.model import normalized_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.environment import Environment

Needs = Mapping[str, tuple[Requirement, ...]]  # by normalised name


@define
class Installed:
    """The versions and the requirements of the distributions on one side, by normalised name."""

    versions: Mapping[str, str]
    needs: Needs

    @classmethod
    def of(cls, environment: Environment) -> Installed:
        """Read the metadata of an environment. Requirements of extras are left out."""
        lock = environment.lock
        versions = {pin.name: pin.version for pin in lock.pins}
        folder = environment.folder
        return cls(versions, _required_in(site_packages(folder), lock.python) if folder is not None else {})


@define
class Required:
    """The packages that can't be exchanged without others, as far as failures have shown.

    `base` is the side that packages are exchanged in, `other` the side they come from.
    """

    base: Installed
    other: Installed
    ties: Ties = field(factory=Ties)

    def closed(self, names: Collection[str]) -> frozenset[str]:
        """These packages, and all that are known to be needed with them."""
        return self.ties.closed(names)

    def lacking(self, names: Collection[str]) -> frozenset[str]:
        """What these packages require, directly or indirectly, and `base` does not have at all."""
        found: set[str] = set()
        left = list(names)
        while left:
            for required in self.other.needs.get(left.pop(), ()):
                target = normalized_name(required.name)
                if target in self.other.versions and target not in self.base.versions and target not in found:
                    found.add(target)
                    left.append(target)
        return frozenset(found)

    def learn(self, names: Collection[str]) -> bool:
        """Learn from a failure with these packages exchanged; returns whether any tie is new."""
        found: set[tuple[str, str]] = set()
        moved = self.ties.closed(names)
        while True:
            fresh = set(self._unmet(moved)) - found
            if not fresh:
                break
            found |= fresh
            moved = self.ties.and_also(found).closed(names)
        is_new = any(other not in self.ties.needs.get(one, ()) for one, other in found)
        self.ties = self.ties.and_also(found)
        return is_new

    def _unmet(self, moved: frozenset[str]) -> Iterator[tuple[str, str]]:
        """Pairs "exchanging the first requires exchanging the second"."""
        for name in self.base.versions.keys() | self.other.versions.keys():
            side = self.other if name in moved else self.base
            if name not in side.versions:
                continue
            for required in side.needs.get(name, ()):
                target = normalized_name(required.name)
                source, rest = (self.other, self.base) if target in moved else (self.base, self.other)
                if _meets(source, target, required) or not _meets(rest, target, required):
                    continue
                if name in moved:
                    yield name, target
                elif target in moved and self._differs(name):
                    yield target, name

    def _differs(self, name: str) -> bool:
        return self.base.versions.get(name) != self.other.versions.get(name)


def _meets(side: Installed, name: str, required: Requirement) -> bool:
    version = side.versions.get(name)
    return version is not None and required.specifier.contains(version, prereleases=True)


def _required_in(packages: Path, python: str) -> dict[str, tuple[Requirement, ...]]:
    found: dict[str, tuple[Requirement, ...]] = {}
    context = {"extra": "", "python_full_version": python, "python_version": ".".join(python.split(".")[:2])}
    for distribution in importlib.metadata.distributions(path=[str(packages)]):
        name = distribution.metadata["Name"]
        if name:
            texts = distribution.requires or []
            found[normalized_name(name)] = tuple(one for text in texts if (one := _applying(text, context)) is not None)
    return found


def _applying(text: str, context: Mapping[str, str]) -> Requirement | None:
    """Parse a requirement; None if it is for another platform or Python, for an extra, or invalid."""
    try:
        required = Requirement(text)
        return required if required.marker is None or required.marker.evaluate(dict(context)) else None
    except (InvalidRequirement, ValueError):
        return None
