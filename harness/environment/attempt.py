"""What is requested from uv for a combination, and the lock file (PEP 751) that it answers with.

Limits replace the date of a combination where files have no upload time.
"""

from __future__ import annotations

import re
import tomllib
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from attrs import field, frozen
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from harness.environment.index import Index, at_once
from harness.model import Combination, Lock, Pin, Release, name_of, normalized_name
from harness.model.lock import ANY_SOURCE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from packaging.tags import Tag

    from harness.environment.interpreter import Interpreter


# What uv takes from PyTorch's own index if a backend is named (uv: "Using uv with PyTorch", automatic backend
# selection), and what these packages require from there.
_OF_A_TORCH_BACKEND = re.compile(r"torch|torch(audio|vision|text|data)|(pytorch-)?triton(-.*)?|nvidia-.*")


@frozen
class Attempt:
    """What to request from uv.

    `later` maps some projects to later dates; `floors` are the oldest versions that projects may get; `undated` are
    projects to which uv's own date limit can't be applied, and `caps` the constraints that replace it; with
    `ignores_dates` only the caps limit what uv may choose. `links` are folders of wheels that were built here;
    `sources` are projects whose source distributions are looked for.
    """

    combination: Combination
    later: Mapping[str, datetime] = field(factory=dict)
    floors: Mapping[str, str] = field(factory=dict)
    undated: frozenset[str] = frozenset()
    caps: tuple[str, ...] = ()
    ignores_dates: bool = False
    links: tuple[Path, ...] = ()
    sources: tuple[str, ...] = ()

    @property
    def pinned(self) -> frozenset[str]:
        """The projects that are requested at one version."""
        return frozenset(name_of(text) for text in self.combination.requirements if "==" in text)

    @property
    def constraints(self) -> list[str]:
        """Constraint lines."""
        floors = [f"{project}>={version}" for project, version in sorted(self.floors.items())]
        held = _held_at_a_release(self.combination.holds)
        return [*self.combination.holds, *floors, *(cap for cap in self.caps if name_of(cap) not in held)]

    @property
    def options(self) -> Iterator[str]:
        """Options that limit what uv may choose from."""
        combination = self.combination
        if combination.only_named:
            yield "--no-deps"
        for project in self.sources:
            yield from ("--no-binary", project)
        if combination.as_of is not None and not self.ignores_dates:
            yield from ("--exclude-newer", combination.as_of.isoformat())
            dates = {project: date.isoformat() for project, date in self.later.items()}
            dates |= dict.fromkeys(self.undated | _held_at_a_release(combination.holds), "false")
            for project, date in sorted(dates.items()):
                yield from ("--exclude-newer-package", f"{project}={date}")
        for project in combination.prereleases:
            yield from ("--prerelease-package", f"{project}=allow")


_NO_WHEEL = re.compile(r"no usable wheels|no wheels with a matching")
_NAMED = re.compile(
    r"Wheels are required for `([A-Za-z0-9._-]+)`|versions of ([A-Za-z0-9._-]+) have no usable wheels"
    r"|\b([A-Za-z0-9._-]+?)(?:\[[^]]*\])?[=<>]=?[^\s,]+ ha(?:s|ve) no usable wheels"
    r"|only found wheels for `([A-Za-z0-9._-]+)`"
)


def lacks_wheels(words: str) -> bool:
    """Whether a resolver's message says that wheels are missing."""
    return _NO_WHEEL.search(words) is not None


def projects_without_wheels(words: str) -> set[str]:
    """The projects in a resolver's message that have no wheel."""
    return {normalized_name(name) for groups in _NAMED.findall(words) for name in groups if name}


def may_be_built(project: str, combination: Combination) -> bool:
    """Whether a project, by its normalised name, may be built from source where it has no wheel."""
    return ANY_SOURCE in combination.from_source or project in map(normalized_name, combination.from_source)


def _held_at_a_release(holds: Sequence[str]) -> frozenset[str]:
    """Projects that are held at one release, whatever its upload time. A range names no release."""
    return frozenset(name_of(hold) for hold in holds if "==" in hold)


def of_a_torch_backend(projects: Collection[str]) -> frozenset[str]:
    """The projects that come from an index without upload times if a torch backend is set."""
    return frozenset(name for name in projects if _OF_A_TORCH_BACKEND.fullmatch(name))


def caps(projects: Collection[str], index: Index, as_of: datetime) -> tuple[str, ...]:
    """Constraints that limit each project to what existed on a day, by the dates that any index has.

    A project without any date is not limited. Raises `NoNetwork`.
    """
    names = sorted(projects)
    pages = zip(names, at_once(index.known_releases, names), strict=True)
    return tuple(cap for name, releases in pages for cap in _caps(name, releases, as_of))


def _caps(project: str, releases: Collection[Release], as_of: datetime) -> Iterator[str]:
    dated = [release.version for release in releases if release.uploaded and release.uploaded <= as_of]
    newest = max((version for version in dated if not version.is_prerelease), default=None)
    if newest is not None:
        # A version without a date counts as newer if its number is higher.
        yield f"{project}<={newest}"
    for release in releases:
        if release.uploaded and release.uploaded > as_of and (newest is None or release.version < newest):
            yield f"{project}!={release.version}"


@frozen
class LockedFile:
    """A file in a lock, as a pin, and the URL where it is."""

    pin: Pin
    url: str

    @property
    def is_source(self) -> bool:
        """Whether it is a source distribution."""
        return is_source(self.pin.wheel)


def locked_files(text: str, interpreter: Interpreter) -> list[LockedFile]:
    """Read what uv wrote for this interpreter: the one file per package that will be installed."""
    ranks = {tag: rank for rank, tag in enumerate(interpreter.wheel_tags())}
    return [_locked_file(package, ranks) for package in tomllib.loads(text).get("packages", [])]


def read_lock(text: str, interpreter: Interpreter) -> Lock:
    """Read the lock that uv wrote for this interpreter."""
    pins = [file.pin for file in locked_files(text, interpreter)]
    return Lock(python=interpreter.version, platform=interpreter.platform, pins=pins)


def undated_in(text: str) -> frozenset[str]:
    """The projects for which uv chose a file without upload time."""
    undated = set()
    for package in tomllib.loads(text).get("packages", []):
        files = [*package.get("wheels", ()), *([package["sdist"]] if "sdist" in package else [])]
        if any("upload-time" not in file for file in files):
            undated.add(normalized_name(package["name"]))
    return frozenset(undated)


def is_source(file: str) -> bool:
    """Whether the file of a pin is a source distribution."""
    return file.endswith((".tar.gz", ".zip", ".tar.bz2"))


def as_preferences(lock: Lock) -> str:
    """A lock file without files: uv prefers the versions in an existing output file."""
    packages = "".join(f'\n[[packages]]\nname = "{pin.name}"\nversion = "{pin.version}"\n' for pin in lock.pins)
    return f'lock-version = "1.0"\ncreated-by = "harness"\n{packages}'


def _locked_file(package: dict[str, Any], ranks: Mapping[Tag, int]) -> LockedFile:
    """The file of a locked package that the installer will choose: the wheel with the best tag, else the source."""
    wheels = package.get("wheels") or []
    best = min(wheels, key=lambda wheel: _rank(_file_name(wheel), ranks), default=None)
    chosen = best or package.get("sdist") or package.get("archive") or {}
    pin = Pin(
        name=normalized_name(str(package["name"])),
        version=str(package.get("version", "")),
        wheel=_file_name(chosen),
        sha256=_digest(chosen),
        size=chosen.get("size"),
        siblings=tuple(_digest(wheel) for wheel in wheels if wheel is not best and _digest(wheel)),
        uploaded=_newest(wheels or [chosen]),
    )
    path = chosen.get("path")
    return LockedFile(pin, Path(path).absolute().as_uri() if path else str(chosen.get("url") or ""))


def _digest(file: dict[str, Any]) -> str:
    return str(file.get("hashes", {}).get("sha256", ""))


def _newest(files: Sequence[dict[str, Any]]) -> str:
    """Upload time of the newest file, "" if one has none."""
    times = [file.get("upload-time") for file in files]
    dated = [time for time in times if isinstance(time, datetime)]
    return max(dated).isoformat() if dated and len(dated) == len(times) else ""


def _file_name(file: dict[str, Any]) -> str:
    where = str(file.get("name") or file.get("path") or file.get("url") or "")
    return unquote(urlsplit(where).path).rpartition("/")[2]


def _rank(wheel: str, ranks: Mapping[Tag, int]) -> int:
    try:
        fits = parse_wheel_filename(wheel)[3]
    except InvalidWheelFilename:
        return len(ranks)
    return min((ranks[tag] for tag in fits if tag in ranks), default=len(ranks))
