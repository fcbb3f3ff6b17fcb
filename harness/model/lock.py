"""A combination, which is asked for: interpreter, requirements, date and device; and the lock that it gives.

A lock is exactly what was installed. Two locks differ by changes, and a mixture has files of both.
"""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from itertools import zip_longest

from attrs import evolve, field, frozen

from harness.model.release import parsed_version

ANY_SOURCE, NO_SOURCE = ":all:", ":none:"  # in place of a project's name


class Device(enum.StrEnum):
    """Where a repro runs."""

    CPU = "cpu"
    CUDA = "cuda"
    EMULATED = "emulated"


def _unique(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))


def _sorted_unique(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(set(values)))


@frozen
class Combination:
    """One point of the search space: what is resolved, and for which device.

    `requirements` are PEP 508 strings in the user's order: if several solutions exist, the resolver prefers the newest
    release of the first. `holds` are requirements that are kept if possible; `near` is the id of a lock whose versions
    are kept if possible (None: the newest); `as_of` limits upload times (None: today's index); `prereleases` and
    `from_source` name projects (`ANY_SOURCE`: any without a wheel, `NO_SOURCE`: none); with `only_named` only the named
    requirements are installed, without their dependencies.
    """

    python: str
    requirements: tuple[str, ...] = field(converter=_unique)
    holds: tuple[str, ...] = field(default=(), converter=_sorted_unique)
    as_of: datetime | None = None
    near: str | None = None
    device: Device = Device.CPU
    prereleases: tuple[str, ...] = field(default=(), converter=_sorted_unique)
    from_source: tuple[str, ...] = field(default=(), converter=_sorted_unique)
    only_named: bool = False

    @property
    def resolution_key(self) -> str:
        """Identifies the resolver's question: everything but the device."""
        question = [
            self.python,
            self.requirements,
            self.holds,
            self.as_of.isoformat() if self.as_of else None,
            self.near,
            self.prereleases,
            self.from_source,
            *(["only named"] if self.only_named else []),
        ]
        return hashlib.sha256(json.dumps(question).encode()).hexdigest()[:16]


ERA, NONE = "era", "none"


@frozen
class AsOf:
    """The day of each release (`is_era`), one `moment` (UTC), or neither: the newest packages."""

    moment: datetime | None = None
    is_era: bool = False
    text: str = NONE

    @classmethod
    def read(cls, text: str | None) -> AsOf:
        """Parse "era", "none" (or no text), or an ISO 8601 date. Raises `ValueError` with a message for users."""
        if text is None or text == NONE:
            return cls()
        if text == ERA:
            return cls(is_era=True, text=ERA)
        try:
            return cls(moment_of(text), text=text)
        except ValueError as error:
            raise ValueError(f"takes era, none or a date like 2025-06-27, not {text!r}") from error

    def of(self, era: datetime | None) -> datetime | None:
        """The date for a release of the day `era`; None means the newest packages."""
        return era if self.is_era else self.moment

    def __str__(self) -> str:
        return self.text


def moment_of(text: str, *, begins: bool = False) -> datetime:
    """Parse an ISO 8601 date or time and convert it to UTC, the default time zone. Raises `ValueError`.

    A date means the end of that day, as for `uv --exclude-newer`; its start with `begins`.
    """
    moment = datetime.fromisoformat(text)
    if len(text) <= len("2025-06-20") and not begins:
        moment = moment + timedelta(days=1) if moment.date() < date.max else datetime.max.replace(tzinfo=UTC)
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError:  # the last or the first day of the calendar in another time zone
        return datetime.min.replace(tzinfo=UTC) if moment.year == 1 else datetime.max.replace(tzinfo=UTC)


_SMALLEST_STEP = 9


@frozen(order=True)
class Pin:
    """One installed distribution: normalised name, version, the wheel's file name and its SHA-256.

    `sha256` and `wheel` are empty in an environment that the harness did not build. `size` is in bytes, None if the
    index has none. `siblings` are the SHA-256 hashes of other files of this version that the interpreter accepts, since
    installers do not always choose by the order of tags. `uploaded` is the upload time of the newest of these files
    (ISO 8601), "" if unknown.
    """

    name: str
    version: str
    wheel: str = ""
    sha256: str = ""
    size: int | None = field(default=None, eq=False, order=False)
    siblings: tuple[str, ...] = field(default=(), eq=False, order=False)
    uploaded: str = field(default="", eq=False, order=False)

    @property
    def digests(self) -> tuple[str, ...]:
        """Every SHA-256 that the installed file can have, the expected one first; empty if none is known."""
        return (self.sha256, *self.siblings) if self.sha256 else ()


@frozen
class Change:
    """What changed: `name` at `before` and at `after`; None on the side that lacks it.

    It is a distribution of two locks, or what the candidates of a line are candidates of, which are releases, commits
    or Pythons, as `unit` says. The change is a fix with `is_fix`, else a regression.
    """

    name: str
    before: str | None
    after: str | None
    unit: str = "release"
    is_fix: bool = False

    @property
    def reversed(self) -> Change:
        """The same change from the newer side to the older one."""
        return evolve(self, before=self.after, after=self.before)

    @property
    def step(self) -> int:
        """The first part of the version that differs: 0 for the major, 1 for the minor; 0 if one side lacks it.

        A version that is not valid under PEP 440 counts as the smallest step.
        """
        if self.before is None or self.after is None:
            return 0
        before, after = parsed_version(self.before), parsed_version(self.after)
        if before is None or after is None:
            return _SMALLEST_STEP
        parts = zip_longest(before.release, after.release, fillvalue=0)
        return next((i for i, (old, new) in enumerate(parts) if old != new), _SMALLEST_STEP)

    def __str__(self) -> str:
        return f"{self.name} {self.before or '(absent)'} -> {self.after or '(absent)'}"


def _sorted_pins(pins: Iterable[Pin]) -> tuple[Pin, ...]:
    return tuple(sorted(pins))


@frozen
class Lock:
    """All distributions of one environment, with the interpreter and platform they were chosen for."""

    python: str
    platform: str
    pins: tuple[Pin, ...] = field(converter=_sorted_pins)

    @property
    def id(self) -> str:
        """A hash of the content: equal for equal interpreters, platforms and files."""
        text = "\n".join([self.python, self.platform, *(f"{p.name}=={p.version} {p.sha256}" for p in self.pins)])
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    @property
    def minor(self) -> str:
        """The interpreter's version up to its minor part: "3.12"."""
        return ".".join(self.python.split(".")[:2])

    def version_of(self, name: str) -> str | None:
        """The version of a distribution (by normalised name), or None if it is not in the lock."""
        return next((pin.version for pin in self.pins if pin.name == name), None)

    def diff(self, other: Lock) -> tuple[Change, ...]:
        """The changes from this lock to `other`, sorted by name."""
        before = {pin.name: pin.version for pin in self.pins}
        after = {pin.name: pin.version for pin in other.pins}
        return tuple(
            Change(name, before.get(name), after.get(name))
            for name in sorted(before.keys() | after.keys())
            if before.get(name) != after.get(name)
        )

    def exchanging(self, other: Lock, names: Iterable[str]) -> Lock:
        """This lock with some distributions (normalised names) from another one; those that it lacks are left out.

        The resolver is not used, so requirements may be unmet.
        """
        chosen = set(names)
        own = [pin for pin in self.pins if pin.name not in chosen]
        return evolve(self, pins=(*own, *(pin for pin in other.pins if pin.name in chosen)))

    def as_requirements(self) -> str:
        """Requirement lines with hashes, as pip and uv install them; names no index."""
        return "".join(
            " ".join([f"{pin.name}=={pin.version}", *(f"--hash=sha256:{digest}" for digest in pin.digests)]) + "\n"
            for pin in self.pins
        )


@frozen
class Mixture:
    """Files to put into a copy of an environment, by path relative to site-packages; None removes one.

    `label` describes the mixture; `flaw` says why it can't run, if that is known beforehand ("" if not).
    """

    files: Mapping[str, bytes | None] = field(repr=False)
    label: str
    flaw: str = ""

    @property
    def id(self) -> str:
        """A hash of the files."""
        digest = hashlib.sha256()
        for path in sorted(self.files):
            content = self.files[path]
            state = b"removed" if content is None else hashlib.sha256(content).digest()
            digest.update(path.encode() + b"\0" + state + b"\0")
        return digest.hexdigest()[:16]
