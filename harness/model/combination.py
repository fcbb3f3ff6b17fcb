"""A combination: what was asked for - interpreter, requirements, a date, a device."""

from __future__ import annotations

import enum
import hashlib
import json
from typing import TYPE_CHECKING

from attrs import field, frozen

if TYPE_CHECKING:
    from datetime import datetime


ANY_SOURCE = ":all:"  # in place of a project's name


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
    """One point of the space that is searched.

    `requirements` are PEP 508 strings in the order in which a user asks: of several ways to meet them a resolver takes
    the one with the newest release of the first. `holds` are requirements kept where the rest allows it; `near` is the
    id of a lock whose versions are kept where possible (None: the newest); `as_of` caps every upload time (None:
    today's index); `prereleases` and `from_source` name projects (`ANY_SOURCE`: whatever has no wheel); with
    `only_named` nothing but what the requirements name is installed.
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
        """Identifies the question to the resolver: all but the device, which no resolver looks at."""
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
