"""Stores nights in `nights/` of the results folder, one JSON file per night and matrix."""

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
_RESUMED_WITHIN = timedelta(hours=24)

_converter = cattrs.Converter(omit_if_default=True, forbid_extra_keys=False)
# A cell's value keeps the type that TOML gave it. cattrs can't tell a union of plain types apart.
_converter.register_structure_hook_func(lambda kind: kind == str | int | float | bool, lambda value, _: value)


@frozen
class NightArchive:
    """The nights of one results folder."""

    store: Store

    def put(self, night: Night) -> Path:
        """Write a night, replacing an earlier state of the same night; returns the path. Raises `NoSpace`."""
        record = {"schema": SCHEMA, **_converter.unstructure(night)}
        name = f"{night.matrix}-{night.began.strftime('%Y-%m-%dT%H%M%SZ')}"
        return self.store.write(f"{FOLDER}/{name}.json", json.dumps(record, indent=1))

    def all(self) -> tuple[Night, ...]:
        """Return every night, the newest last. Records that can't be read are skipped."""
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
        """Return the nights that began before a time."""
        return tuple(night for night in self.all() if night.began < start)

    def commits_of(self, matrix: str, start: datetime) -> dict[str, str]:
        """Return the commits that branches, tags and hashes named in a night that has begun; empty for a new one."""
        return next((night.commits for night in self.all() if night.matrix == matrix and night.began == start), {})

    def start_of(self, matrix: str, now: datetime) -> datetime:
        """Return when the current night began: a stopped night that began less than a day ago is resumed."""
        mine = [night for night in self.all() if night.matrix == matrix]
        if mine and not mine[-1].ended and now - mine[-1].began < _RESUMED_WITHIN:
            return mine[-1].began
        return now.astimezone(UTC).replace(microsecond=0)
