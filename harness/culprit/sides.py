"""The two sides of a change: the environments just before and after it, and the files that differ."""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import field, frozen

from harness.culprit.regions import renamed
from harness.environment.workspace import site_packages
from harness.model import Change, Observation, Verdict, normalized_name
from harness.model.culprit import Finding
from harness.probing.probe import environment_with

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.environment import Environment
    from harness.model import Lock
    from harness.probing.probe import Probing

_STUB = 0.2  # a file that shrank to less of its size was moved away, if another one has its lines
METADATA = "metadata of "  # followed by a name: the unit of all metadata of a distribution


@frozen
class Side:
    """One side: its lock, its verdict and the run that showed it."""

    lock: Lock
    verdict: Verdict
    observation: Observation


@frozen
class Sides:
    """The sides before and after the change, in version order: a regression turns good to bad, a fix bad to good."""

    before: Side
    after: Side


@frozen
class PackageFiles:
    """The files of some distributions in one environment, with their digests.

    Paths are relative to the folder `packages`. `owners` maps each file to the normalised name of its distribution.
    """

    packages: Path
    digests: dict[str, str]
    owners: dict[str, str] = field(factory=dict)

    @classmethod
    def of(cls, environment: Environment, distributions: Iterable[str]) -> PackageFiles:
        """Read the files of these distributions (normalised names) from their RECORDs.

        Raises `ValueError` if the harness did not build the environment.
        """
        if environment.folder is None:
            raise ValueError("files can only be exchanged in environments that the harness built")
        return cls.at(site_packages(environment.folder), distributions)

    @classmethod
    def at(cls, packages: Path, distributions: Iterable[str]) -> PackageFiles:
        """Read the files of these distributions (normalised names) in a folder of installed packages."""
        wanted = set(distributions)
        digests: dict[str, str] = {}
        owners: dict[str, str] = {}
        for record in packages.glob("*.dist-info/RECORD"):
            if (name := _distribution(record.parent.name)) in wanted:
                recorded = _recorded(record)
                digests |= recorded
                owners |= dict.fromkeys(recorded, name)
        return cls(packages, digests, owners)

    def read(self, path: str) -> bytes | None:
        """Return the content of a file, None if this side lacks it."""
        return (self.packages / path).read_bytes() if path in self.digests else None

    def text(self, path: str) -> str:
        """Return the content of a file as text, "" if this side lacks it."""
        return (self.read(path) or b"").decode("utf-8", "replace")

    def size(self, path: str) -> int:
        """The size of a file in bytes, 0 if this side lacks it."""
        return (self.packages / path).stat().st_size if path in self.digests else 0


def differing(before: PackageFiles, after: PackageFiles) -> dict[str, tuple[str, ...]]:
    """The units of difference by name, with the files of each.

    Each changed, added or removed file is a unit. A renamed file is one unit, named by its newer path, with the older
    path first; something else may be at that path by now, often a stub that imports from the new one. All metadata of a
    distribution is one unit.
    """
    paths = sorted(
        path
        for path in before.digests.keys() | after.digests.keys()
        if before.digests.get(path) != after.digests.get(path)
    )
    files = [path for path in paths if not _is_metadata(path)]
    gone = [path for path in files if path in before.digests and after.size(path) < _STUB * before.size(path)]
    come = [path for path in files if path not in before.digests]
    moved = renamed(
        {path: content for path in gone if (content := before.read(path)) is not None},
        {path: content for path in come if (content := after.read(path)) is not None},
    )
    units: dict[str, tuple[str, ...]] = {path: (path,) for path in files if path not in moved.values()}
    units |= {newer: (older, newer) for newer, older in moved.items()}
    for path in paths:
        if _is_metadata(path):
            name = METADATA + _distribution(path.split("/", 1)[0])
            units[name] = (*units.get(name, ()), path)
    return units


def _recorded(record: Path) -> dict[str, str]:
    digests = {}
    with record.open(encoding="utf-8", newline="") as file:
        for path, digest, *_ in csv.reader(file):
            if path.startswith("..") or path.endswith(".pyc"):  # scripts are outside of site-packages
                continue
            installed = record.parent.parent / path
            if installed.is_file():
                digests[path] = digest or hashlib.sha256(installed.read_bytes()).hexdigest()
    return digests


def _distribution(folder: str) -> str:
    """The normalised name of the distribution of a .dist-info folder."""
    return normalized_name(folder.split("-")[0])


def _is_metadata(path: str) -> bool:
    return path.split("/", 1)[0].endswith(".dist-info")


@frozen
class Exchange:
    """The units of difference (`differing`) between two sides of the packages in a finding."""

    package: Finding
    before: PackageFiles
    after: PackageFiles
    units: dict[str, tuple[str, ...]]

    @classmethod
    def of(cls, prober: Probing, sides: Sides, package: Finding) -> Exchange | None:
        """The exchange between two sides; None if an environment can't be built."""
        content = both_contents(prober, sides, package)
        return cls(package, *content, differing(*content)) if content is not None else None

    def paths(self, units: Iterable[str]) -> tuple[str, ...]:
        """The files of some units, sorted."""
        return tuple(sorted(path for unit in units for path in self.units[unit]))

    def owning(self, paths: Iterable[str]) -> tuple[Change, ...]:
        """The changed packages that these files belong to; all changed ones if that is unknown."""
        owners = {self.after.owners.get(path) or self.before.owners.get(path) for path in paths}
        return tuple(change for change in self.package.packages if change.name in owners) or self.package.packages


def both_contents(prober: Probing, sides: Sides, package: Finding) -> tuple[PackageFiles, PackageFiles] | None:
    """The files of the culprit's packages before and after; None if an environment can't be built."""
    names = [change.name for change in package.packages]
    before, after = (environment_with(prober, side.lock) for side in (sides.before, sides.after))
    if before is None or after is None:
        return None
    return PackageFiles.of(before, names), PackageFiles.of(after, names)
