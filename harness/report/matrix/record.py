"""A matrix as JSON (schema 1): every cell with its choice, verdict and observation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import frozen

if TYPE_CHECKING:
    from harness.matrix.running import Standing

SCHEMA = 1


@frozen
class MatrixStanding:
    """A matrix to report on: `standings` in the order of its cells, `written` an ISO 8601 time in UTC.

    `command` is what the user typed; `left_out` are releases (or cells) and reasons; `pass_env` names the variables
    passed to repros; `withheld` says why logs and messages must not be shown, "" if they can be.
    """

    name: str
    standings: tuple[Standing, ...]
    written: str
    command: str
    left_out: tuple[tuple[str, str], ...] = ()
    pass_env: tuple[str, ...] = ()
    withheld: str = ""


def make_record(matrix: MatrixStanding) -> dict[str, Any]:
    """Return the record of a matrix. It may have NaN and infinities, which `render_record` replaces with null."""
    words = [standing.word for standing in matrix.standings]
    return {
        "schema": SCHEMA,
        "matrix": matrix.name,
        "written": matrix.written,
        "command": matrix.command,
        "counts": {word: words.count(word) for word in sorted(set(words))},
        "cells": [_cell(standing) for standing in matrix.standings],
        "left_out": [{"what": what, "reason": reason} for what, reason in matrix.left_out],
        "pass_env": list(matrix.pass_env),
    }


def _cell(standing: Standing) -> dict[str, Any]:
    cell, run = standing.cell, standing.run
    record: dict[str, Any] = {
        "name": cell.name,
        "choice": dict(cell.choice),
        "arguments": list(cell.arguments),
        "verdict": standing.word,
        "reason": standing.reason,
    }
    if run is None:
        return record
    seen = run.observation
    lock = seen.lock
    return {
        **record,
        "outcome": seen.outcome.value,
        "signature": str(run.signature) if run.signature is not None else None,
        "observation": seen.key,
        "cached": run.cached,
        "started": seen.started,
        "seconds": seen.duration_s,
        "setup_seconds": seen.setup_s,
        "peak_memory": seen.peak_memory,
        "metrics": dict(seen.metrics),
        "device": seen.device.value,
        "machine": dict(seen.machine),
        "as_of": as_of.isoformat() if (as_of := run.probe.combination.as_of) else None,
        "drift": list(seen.drift),
        "altered": list(seen.altered),
        "lock": {
            "id": lock.id,
            "python": lock.python,
            "platform": lock.platform,
            "versions": {pin.name: pin.version for pin in lock.pins},
        }
        if lock
        else None,
    }
