"""The two sides of a change: the environments just before and just after it, and what files differ in them."""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from harness.environment.build import site_packages
from harness.investigation.culprit import Proof
from harness.model import Mixture, Observation, Verdict, normalized_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.environment import Environment
    from harness.model import Lock

METADATA = "metadata"  # the one unit that stands for all of a distribution's own metadata


@frozen
class Side:
    """One side: its lock, its verdict and the run that showed it."""

    lock: Lock
    verdict: Verdict
    observation: Observation

    def as_proof(self, sentence: str) -> Proof:
        """This side's own run as the proof of a sentence."""
        return Proof(sentence, self.verdict, self.verdict, "seen at this side itself", self.observation)


@frozen
class Sides:
    """Before and after the change, in version order: for a regression good and bad, for a fix bad and good."""

    before: Side
    after: Side


@frozen
class PackageFiles:
    """The files of some distributions in one environment: path relative to site-packages -> folder to read it from."""

    packages: Path
    digests: dict[str, str]

    @classmethod
    def of(cls, environment: Environment, distributions: Iterable[str]) -> PackageFiles:
        """Read what is installed of these distributions (normalised names), by their RECORD files."""
        if environment.folder is None:
            raise ValueError("only environments that the harness has built can be taken apart")
        packages = site_packages(environment.folder)
        wanted = set(distributions)
        digests = {}
        for record in packages.glob("*.dist-info/RECORD"):
            if normalized_name(record.parent.name.split("-")[0]) in wanted:
                digests.update(_recorded(record))
        return cls(packages, digests)

    def read(self, path: str) -> bytes | None:
        """The content of a file, None if this side lacks it."""
        return (self.packages / path).read_bytes() if path in self.digests else None


def differing(before: PackageFiles, after: PackageFiles) -> dict[str, tuple[str, ...]]:
    """Units of difference: a path for each file that differs, added and removed ones too; all metadata is one unit."""
    paths = sorted(
        path
        for path in before.digests.keys() | after.digests.keys()
        if before.digests.get(path) != after.digests.get(path)
    )
    units: dict[str, tuple[str, ...]] = {path: (path,) for path in paths if not _is_metadata(path)}
    metadata = tuple(path for path in paths if _is_metadata(path))
    return {**units, METADATA: metadata} if metadata else units


def mixture_of(paths: Iterable[str], source: PackageFiles, label: str) -> Mixture:
    """The exchange of these files by those of another side."""
    return Mixture(files={path: source.read(path) for path in sorted(paths)}, label=label)


def _recorded(record: Path) -> dict[str, str]:
    found = {}
    with record.open(encoding="utf-8", newline="") as file:
        for path, digest, *_ in csv.reader(file):
            # Scripts lie outside; RECORD itself follows from the rest.
            if path.startswith("..") or path.endswith(("/RECORD", "/INSTALLER", "/REQUESTED", ".pyc")):
                continue
            here = record.parent.parent / path
            if here.is_file():
                found[path] = digest or hashlib.sha256(here.read_bytes()).hexdigest()
    return found


def _is_metadata(path: str) -> bool:
    return path.split("/", 1)[0].endswith(".dist-info")
