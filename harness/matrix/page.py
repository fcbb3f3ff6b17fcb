"""The page of a matrix: heat maps, charts of metrics, and a panel for each cell; kept with its record."""

from __future__ import annotations

import shlex
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from harness.bisection.advice import again
from harness.matrix.cells import PACKAGES
from harness.matrix.running import NOT_RUN, CellResult, CellRun
from harness.matrix.table import MatrixTable, axis_name, labels, neighbours, tables
from harness.model import Lock, Observation, Verdict, normalized_name
from harness.model.text import counted, in_environment, listed, picked
from harness.model.verdict import in_words
from harness.redact import Private, redacted
from harness.report.charts import ChartPoint
from harness.report.commands import required_names
from harness.report.excerpts import tail, trimmed_traceback
from harness.report.page import Page
from harness.report.phrases import device_worth
from harness.report.privacy import private_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from harness.matrix import Cell
    from harness.store import Store


SCHEMA = 1
_FOLDER = "matrices"
_WORDS = (*(verdict.value for verdict in (Verdict.BAD, Verdict.GOOD, Verdict.SKIP)), NOT_RUN)
_LINES = 6  # the number of colours in charts.css


@frozen
class MatrixResult:
    """A matrix to report on: `results` in the order of its cells, `written` an ISO 8601 time in UTC.

    `command` is what the user typed; `left_out` are releases (or cells) and reasons.
    """

    name: str
    results: tuple[CellResult, ...]
    command: str
    left_out: tuple[tuple[str, str], ...] = ()
    written: str = field(factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))


def write_page(store: Store, matrix: MatrixResult) -> tuple[Path, str]:
    """Write the page; returns its path and the text of its record. Raises `NoSpace`."""
    page = matrix_page(matrix, store.log, private_of(store))
    return page.write(store, f"{_FOLDER}/{matrix.name}", "json", "html")[1], page.json()


def matrix_page(
    matrix: MatrixResult,
    log_of: Callable[[Observation], str],
    private: Private = Private(),  # noqa: B008
) -> Page:
    """Return the page of a matrix, without private data; `log_of` returns the output of a run."""
    results = matrix.results
    cells = [result.cell for result in results]
    maps = tables(cells)
    runs = [result.run for result in results if result.run is not None]
    counts = Counter(result.word for result in results)
    names = labels(cells)
    summary = ", ".join(f"{counts[word]} {in_words(word)}" for word in _WORDS if counts[word])
    timely = [table for table in maps if table.is_timely]
    older = neighbours(timely)
    content = {
        "name": matrix.name,
        "about": " ".join(dict.fromkeys(run.probe.repro.summary for run in runs if run.probe.repro.summary)),
        "sentence": f"{counted(len(results), 'cell')}: {summary}.",
        "counts": [(word, counts[word]) for word in _WORDS if counts[word]],
        "facts": [(label, text) for label, text in _facts(runs) if text],
        "maps": maps,
        "plots": list(plots(timely, results)),
        "panels": [panel(position, results, names, older, log_of) for position in range(len(results))],
        "left_out": matrix.left_out,
        "command": matrix.command,
        "footer": f"{matrix.name}, {len(results)} cells; written {matrix.written[:16].replace('T', ' ')} UTC",
    }
    return Page("matrix", redacted(content, private), redacted(_record(matrix), private))


def _facts(runs: Sequence[CellRun]) -> list[tuple[str, str]]:
    observations = [run.observation for run in runs]
    devices = (device_worth(run.observation, run.probe.repro) for run in runs)
    days = sorted(observation.started[:10] for observation in observations if observation.started)
    return [
        ("Repro", _listed(run.probe.repro.name for run in runs)),
        ("Recognised by", _listed(str(run.signature) for run in runs if run.signature and not run.signature.captured)),
        ("Device", _listed(devices)),
        ("Python", _listed(observation.lock.python for observation in observations if observation.lock)),
        ("Platform", _listed(observation.lock.platform for observation in observations if observation.lock)),
        ("Seen", f"{days[0]} to {days[-1]}" if days and days[0] != days[-1] else "".join(days[:1])),
    ]


def _listed(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(texts))


def _id(position: int) -> str:
    """The id of a cell's panel in the page."""
    return f"cell-{position}"


def plots(maps: Iterable[MatrixTable], results: Sequence[CellResult]) -> Iterator[tuple[str, str, list[ChartPoint]]]:
    """Yield the points over the vertical axis of each table: its title, what is left out, and the points.

    A table in which fewer than two values of that axis have metrics has none.
    """
    for table in maps:
        points = [
            ChartPoint(metric, row, value, results[place[0][0]].word, column, f"#{_id(place[0][0])}")
            for row, places in table.rows
            for column, place in zip(table.columns, places, strict=True)
            if place
            for metric, value in _numbers(results[place[0][0]]).items()
        ]
        lines = list(dict.fromkeys(point.series for point in points))
        if len({point.label for point in points}) > 1:
            note = f"The first {_LINES} of {len(lines)} columns are drawn." if len(lines) > _LINES else ""
            yield table.title, note, [point for point in points if point.series in lines[:_LINES]]


def _numbers(result: CellResult) -> dict[str, float]:
    return result.run.observation.measured if result.run is not None else {}


def _record(matrix: MatrixResult) -> dict[str, Any]:
    words = [result.word for result in matrix.results]
    return {
        "schema": SCHEMA,
        "matrix": matrix.name,
        "written": matrix.written,
        "command": matrix.command,
        "counts": {word: words.count(word) for word in sorted(set(words))},
        "cells": [_cell_record(result) for result in matrix.results],
        "left_out": [{"what": what, "reason": reason} for what, reason in matrix.left_out],
    }


def _cell_record(result: CellResult) -> dict[str, Any]:
    cell, run = result.cell, result.run
    record: dict[str, Any] = {
        **picked(cell, "name choice arguments"),
        "verdict": result.word,
        "reason": result.reason,
    }
    if run is None:
        return record
    observation = run.observation
    lock = observation.lock
    return {
        **record,
        **picked(observation, "outcome started peak_memory metrics device machine drift altered"),
        "signature": str(run.signature) if run.signature is not None else None,
        "observation": observation.key,
        "cached": run.cached,
        "seconds": observation.duration_s,
        "setup_seconds": observation.setup_s,
        "as_of": as_of.isoformat() if (as_of := run.probe.combination.as_of) else None,
        "lock": {**picked(lock, "id python platform"), "versions": {pin.name: pin.version for pin in lock.pins}}
        if lock
        else None,
    }


_SHOWN_FILES = 6
_LOG_CHARACTERS = 20_000  # per cell, because a page has hundreds


def panel(
    position: int,
    results: Sequence[CellResult],
    names: Sequence[str],
    older_of: Mapping[int, tuple[int, ...]],
    log_of: Callable[[Observation], str],
) -> dict[str, Any]:
    """Return the details of one cell; `older_of` maps each position to the older ones to compare it with.

    `label` distinguishes it from the others.
    """
    result, older = results[position], older_of.get(position, ())
    cell, run = result.cell, result.run
    details: dict[str, Any] = {
        "id": _id(position),
        "name": cell.name,
        "label": names[position],
        "word": result.word,
        "reason": result.reason,
        "facts": (*_choice(cell), *(_facts_of_run(run) if run is not None else ())),
        "command": shlex.join(["harness", "probe", *cell.arguments, *_day(cell, run)]),
    }
    if run is None:
        return {**details, **dict.fromkeys(("again", "versions", "compared", "drift", "took", "traceback", "log"), "")}
    observation, lock = run.observation, run.observation.lock
    compared = _compared(run, older, results)
    return {
        **details,
        "again": again(observation) if lock else "",
        "versions": _versions(run, lock),
        "compared": f"{names[compared]} ({results[compared].word})" if compared is not None else "",
        "changes": _changes(results[compared], lock) if compared is not None else (),
        "drift": observation.drift,
        "took": f"{observation.duration_s:.1f} s" if observation.outcome.ran else "",
        "traceback": _trace(run),
        "log": _end(log_of(observation)),
    }


def _compared(run: CellRun, older: Sequence[int], results: Sequence[CellResult]) -> int | None:
    """Return the position of the nearest older cell that has a lock, if its verdict differs."""
    for position in reversed(older):
        other = results[position]
        if other.run is not None and other.run.observation.lock is not None:
            return position if other.verdict is not run.judgement.verdict else None
    return None


def _day(cell: Cell, run: CellRun | None) -> tuple[str, ...]:
    """The option for the date that applies to all cells, unless this cell has its own."""
    day = run.probe.combination.as_of if run is not None and cell.as_of is None else None
    return ("--as-of", day.isoformat()) if day is not None else ()


def _choice(cell: Cell) -> tuple[tuple[str, str], ...]:
    named = [(axis_name(axis), str(value)) for axis, value in cell.choice.items()]
    return (*named, *((("held", ", ".join(cell.hold)),) if cell.hold else ()))


def _facts_of_run(run: CellRun) -> tuple[tuple[str, str], ...]:
    observation = run.observation
    lock = observation.lock
    facts = [
        ("recognised by", str(run.signature) if run.signature else ""),
        ("runs on", device_worth(observation, run.probe.repro)),
        ("interpreter", f"Python {lock.python}, {lock.platform}" if lock else ""),
        ("seen", observation.started.replace("T", " ").replace("+00:00", " UTC")),
        ("took", f"{observation.duration_s:.1f} s" if observation.outcome.ran else ""),
        ("peak memory", f"{observation.peak_memory / 2**20:.0f} MiB" if observation.peak_memory else ""),
        *((name, f"{value:g}") for name, value in observation.metrics.items()),
        ("changed in its environment", listed(map(in_environment, observation.altered), _SHOWN_FILES)),
        ("observation", observation.key),
        ("lock", f"{lock.id} ({len(lock.pins)} packages)" if lock else ""),
    ]
    return tuple((label, text) for label, text in facts if text)


def _versions(run: CellRun, lock: Lock | None) -> tuple[tuple[str, str], ...]:
    """The installed versions of the packages that the axes, the repro and the holds name; the axes first."""
    if lock is None:
        return ()
    axes = _packages(run.cell)
    required = required_names([*run.probe.combination.requirements, *run.probe.combination.holds])
    names = [*axes, *sorted(required - set(axes))]
    return tuple((name, version) for name in names if (version := lock.version_of(name)))


def _packages(cell: Cell) -> list[str]:
    return [normalized_name(axis.removeprefix(PACKAGES)) for axis in cell.choice if axis.startswith(PACKAGES)]


def _changes(compared: CellResult, lock: Lock | None) -> tuple[str, ...]:
    before = compared.run.observation.lock if compared.run is not None else None
    return tuple(map(str, before.diff(lock))) if before is not None and lock is not None else ()


def _trace(run: CellRun) -> str:
    raised = run.observation.exception
    if raised is None:
        return ""
    names = set(_packages(run.cell)) or required_names(run.probe.repro.dependencies)
    return trimmed_traceback(raised, names, f"{run.probe.repro.name}.py")


def _end(log: str) -> str:
    text = tail(log)
    if len(text) <= _LOG_CHARACTERS:
        return text
    return f"...\n{text[-_LOG_CHARACTERS:].partition(chr(10))[2]}"
