"""Writes the page of a matrix and its record to the results folder, without private data."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from harness.report.matrix.building import make_matrix_content
from harness.report.matrix.record import MatrixStanding
from harness.report.privacy import private_of, unknown_here
from harness.report.render import render_record
from harness.report.templating import filled

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness.matrix.running import Standing
    from harness.store import Store

_FOLDER = "matrices"


def write_page(
    store: Store,
    name: str,
    stood: Sequence[Standing],
    *,
    command: str,
    pass_env: Sequence[str] = (),
    left_out: Sequence[tuple[str, str]] = (),
) -> tuple[Path, str]:
    """Write the page; returns its path and the text of its record. Raises `NoSpace`."""
    passed = tuple(sorted({*pass_env, *_passed_before(store, name)}))
    unknown = ", ".join(unknown_here(passed))
    matrix = MatrixStanding(
        name,
        tuple(stood),
        datetime.now(UTC).isoformat(timespec="seconds"),
        command,
        left_out=tuple(left_out),
        pass_env=passed,
        withheld=f"What runs printed is left out: they saw {unknown}, which is not set now." if unknown else "",
    )
    locks = [standing.run.observation.lock for standing in stood if standing.run is not None]
    spared = {name, *(pin.name for lock in locks if lock is not None for pin in lock.pins)}
    content = make_matrix_content(matrix, store.log, private_of(store, pass_env=passed, spared=spared))
    record = render_record(content.record)
    store.write(f"{_FOLDER}/{name}.json", record)
    return store.write(f"{_FOLDER}/{name}.html", filled("matrix.html.j2", r=content)), record


def _passed_before(store: Store, name: str) -> tuple[str, ...]:
    """The variables that were passed to earlier runs on the page."""
    try:
        record = json.loads((store.root / _FOLDER / f"{name}.json").read_text(encoding="utf-8"))
        return tuple(map(str, record["pass_env"]))
    except (OSError, ValueError, KeyError, TypeError):
        return ()
