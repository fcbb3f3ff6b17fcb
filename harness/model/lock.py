"""A lock: exactly what was installed, how two locks differ, and a mixture of the files of two."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from itertools import zip_longest

from attrs import field, frozen
from packaging.version import InvalidVersion, Version

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
    """One difference between two locks; None on the side that lacks the distribution."""

    name: str
    before: str | None
    after: str | None

    @property
    def step(self) -> int:
        """The first part of the version that differs: 0 for the major, 1 for the minor; 0 if one side lacks it.

        A version that is not valid under PEP 440 counts as the smallest step.
        """
        if self.before is None or self.after is None:
            return 0
        try:
            before, after = (Version(text).release for text in (self.before, self.after))
        except InvalidVersion:
            return _SMALLEST_STEP
        parts = zip_longest(before, after, fillvalue=0)
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
