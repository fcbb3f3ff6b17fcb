"""Where nights are kept: `nights/` of the results, one JSON file for each night and matrix."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import cattrs
from attrs import frozen

from harness.nightly.record import Night

if TYPE_CHECKING:
    from pathlib import Path

    from harness.store import Store

SCHEMA = 1
FOLDER = "nights"
_GOES_ON = timedelta(hours=24)

_converter = cattrs.Converter(omit_if_default=True, forbid_extra_keys=False)
# A cell's value keeps the type that TOML gave it: a union of plain types, which cattrs can't tell apart.
_converter.register_structure_hook_func(lambda kind: kind == str | int | float | bool, lambda value, _: value)


@frozen
class NightArchive:
    """The nights of one results folder."""

    store: Store

    def put(self, night: Night) -> Path:
        """Keep a night, in the place of an earlier state of itself. Raises `NoSpace`."""
        record = {"schema": SCHEMA, **_converter.unstructure(night)}
        name = f"{night.matrix}-{night.began.strftime('%Y-%m-%dT%H%M%SZ')}"
        return self.store.write(f"{FOLDER}/{name}.json", json.dumps(record, indent=1))

    def all(self) -> tuple[Night, ...]:
        """Every night, the newest last. Records that can't be read count as absent."""
        found = []
        for path in (self.store.root / FOLDER).glob("*.json"):
            try:
                record = json.loads(path.read_text(encoding="utf-8"))
                if record.get("schema") == SCHEMA:
                    found.append(_converter.structure(record, Night))
            except (OSError, ValueError, KeyError, TypeError, AttributeError, cattrs.BaseValidationError):
                continue
        return tuple(sorted(found, key=lambda night: (night.start, night.matrix)))

    def before(self, start: datetime) -> tuple[Night, ...]:
        """The nights that began before a time."""
        return tuple(night for night in self.all() if night.began < start)

    def start_of(self, matrix: str, now: datetime) -> datetime:
        """When the night that is run now began: the last one goes on if it was stopped less than a day ago."""
        mine = [night for night in self.all() if night.matrix == matrix]
        if mine and not mine[-1].ended and now - mine[-1].began < _GOES_ON:
            return mine[-1].began
        return now.astimezone(UTC).replace(microsecond=0)
