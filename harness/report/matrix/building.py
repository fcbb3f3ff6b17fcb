"""Builds the page of a matrix from its standing, without private data."""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING

from attrs import evolve

from harness.matrix.axes import PACKAGES
from harness.matrix.running import NOT_RUN
from harness.model import Verdict
from harness.model.verdict import in_words
from harness.redact import Private, redacted
from harness.report.answer.phrases import device_worth
from harness.report.matrix.charts import plots
from harness.report.matrix.content import Count, MatrixContent
from harness.report.matrix.heat_map import heat_maps, neighbours, state_class
from harness.report.matrix.panels import Panels
from harness.report.matrix.pivot import Pivot, axis_name, labels, pivot
from harness.report.matrix.record import MatrixStanding, make_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from harness.matrix import Cell
    from harness.matrix.running import CellRun, Standing
    from harness.model import Observation

_WORDS = (*(verdict.value for verdict in (Verdict.BAD, Verdict.GOOD, Verdict.SKIP)), NOT_RUN)
_READINGS = 12  # columns described in words
_SPANS = 6  # changes described for each column


def make_matrix_content(
    matrix: MatrixStanding,
    log_of: Callable[[Observation], str],
    private: Private = Private(),  # noqa: B008
) -> MatrixContent:
    """Return the content of the page and its record; `log_of` returns the output of a run."""
    if matrix.withheld:
        matrix = evolve(matrix, standings=tuple(map(_without_words, matrix.standings)))
    standings = matrix.standings
    laid = pivot([standing.cell for standing in standings])
    ids = _ids([standing.cell for standing in standings])
    runs = [standing.run for standing in standings if standing.run is not None]
    counts = Counter(standing.word for standing in standings)
    is_timely = laid.down.startswith(PACKAGES) or laid.down in ("python", "as-of")
    told = labels([standing.cell for standing in standings])
    panels = Panels(
        standings, ids, told, neighbours(laid) if is_timely else {}, (lambda _: "") if matrix.withheld else log_of
    )
    content = MatrixContent(
        name=matrix.name,
        about=_about(runs),
        sentence=_sentence(counts, len(standings)),
        counts=tuple(Count(state_class(word), word, counts[word]) for word in _WORDS if counts[word]),
        readings=_readings(laid, standings) if is_timely else (),
        facts=tuple((label, text) for label, text in _facts(runs) if text),
        maps=heat_maps(laid, standings, ids, told),
        plots=plots(laid, standings, ids) if is_timely else (),
        panels=tuple(panels.panel(position) for position in range(len(standings))),
        withheld=matrix.withheld,
        left_out=matrix.left_out,
        command=matrix.command,
        footer=f"{matrix.name}, {len(standings)} cells; written {_minute(matrix.written)}",
        record=make_record(matrix),
    )
    return redacted(content, private)  # type: ignore[no-any-return]


def _sentence(counts: Counter[str], cells: int) -> str:
    told = ", ".join(f"{counts[word]} {in_words(word)}" for word in _WORDS if counts[word])
    return f"{cells} {'cell' if cells == 1 else 'cells'}: {told}."


def _without_words(standing: Standing) -> Standing:
    """Remove the messages of a run from a standing; the outcome is kept."""
    run = standing.run
    if run is None:
        return standing
    seen = evolve(run.observation, exception=None, detail="", machine={})
    signature = run.signature if run.signature is not None and not run.signature.captured else None
    judgement = evolve(run.judgement, reason=seen.outcome.value)
    return evolve(standing, run=evolve(run, observation=seen, signature=signature, judgement=judgement))


def _about(runs: Sequence[CellRun]) -> str:
    """What the repros show, from the first sentences of their docstrings."""
    return " ".join(dict.fromkeys(run.probe.repro.summary for run in runs if run.probe.repro.summary))


def _readings(laid: Pivot, standings: Sequence[Standing]) -> tuple[tuple[str, str], ...]:
    """A description of each column: the verdicts and their ranges."""
    told = []
    for column in laid.columns[:_READINGS]:
        line = [
            (standings[position].word, row) for row in laid.rows for position in laid.places.get((row, column), ())[:1]
        ]
        spans: list[str] = []
        for word, group in groupby((pair for pair in line if pair[0] != NOT_RUN), key=lambda pair: pair[0]):
            rows = [row for _, row in group]
            spans.append(f"{in_words(word)} {rows[0]}" + (f" to {rows[-1]}" if len(rows) > 1 else ""))
        named = ", ".join(
            f"{axis_name(axis)}={value}" for axis, value in zip(laid.across, column, strict=True) if value
        )
        if len(spans) > _SPANS:
            spans = [*spans[:_SPANS], f"and {len(spans) - _SPANS} more changes"]
        if spans:
            told.append((named or axis_name(laid.down), ", ".join(spans)))
    return tuple(told)


def _facts(runs: Sequence[CellRun]) -> list[tuple[str, str]]:
    observations = [run.observation for run in runs]
    devices = (device_worth(run.observation, run.probe.repro) for run in runs)
    days = sorted(one.started[:10] for one in observations if one.started)
    return [
        ("Repro", _listed(run.probe.repro.name for run in runs)),
        ("Recognised by", _listed(str(run.signature) for run in runs if run.signature and not run.signature.captured)),
        ("Device", _listed(devices)),
        ("Python", _listed(one.lock.python for one in observations if one.lock)),
        ("Platform", _listed(one.lock.platform for one in observations if one.lock)),
        ("Seen", f"{days[0]} to {days[-1]}" if days and days[0] != days[-1] else "".join(days[:1])),
    ]


def _listed(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(texts))


def _minute(written: str) -> str:
    return f"{written[:16].replace('T', ' ')} UTC"


def _ids(cells: Sequence[Cell]) -> list[str]:
    """An id for each cell, unique and safe in a URL."""
    ids: list[str] = []
    for cell in cells:
        plain = f"cell-{re.sub(r'[^A-Za-z0-9_.=-]+', '-', cell.name)}"
        ids.append(plain if plain not in ids else f"{plain}-{len(ids)}")
    return ids
