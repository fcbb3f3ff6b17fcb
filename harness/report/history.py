"""The page of a history: windows, a cell for each release, charts of metrics, and logs; kept with its record."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from harness.bisection.history import BrokenWindow, History, ReleaseRow, RowState
from harness.model import Verdict, is_prerelease
from harness.model.text import listed
from harness.model.verdict import runs_of
from harness.redact import Private, redacted
from harness.report.archive import question_id
from harness.report.charts import ChartPoint
from harness.report.excerpts import altered_rows, tail
from harness.report.page import Page, range_cell
from harness.report.phrases import question_facts, recognised_by
from harness.report.privacy import private_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from harness.store import Store

_JUDGED = (RowState.GOOD, RowState.BAD, RowState.SKIP)


def store_history_report(store: Store, history: History) -> tuple[Path, ...]:
    """Store a history and write its pages to the results folder; returns their paths. Raises `NoSpace`.

    A new answer to the same question replaces both.
    """
    observations = [observation for step in history.steps if (observation := store.get(step.observation)) is not None]
    page = history_page(
        history,
        time=datetime.now(UTC).isoformat(),
        logs={observation.key: store.log(observation) for observation in observations},
        private=private_of(store),
    )
    named = page.record["id"]
    page.write(store, f"histories/{named}", "json")
    return page.write(store, f"reports/history-{named}", "md", "html")


def history_id(history: History) -> str:
    """Identifies the question: with other releases it is another one."""
    names = [row.release for row in history.tried_rows]
    return question_id(history.question, names[0], names[-1], any(map(is_prerelease, names)))


def history_page(
    history: History,
    *,
    time: str,
    logs: Mapping[str, str],
    private: Private = Private(),  # noqa: B008 - a frozen value
) -> Page:
    """Return the page of a history, without private data.

    `time` is when the history is stored (ISO 8601, UTC); `logs` maps observation keys to the output of these runs.
    """
    rows, question = history.rows, history.question
    tried = history.tried_rows
    judged = [row for row in rows if row.state in _JUDGED]
    content = {
        "title": f"{history.subject} with {history.repro}, {tried[0].release} to {tried[-1].release}",
        "history": history,
        "facts": _facts(history),
        "windows": [(window, _certainty(window)) for window in history.windows],
        "cells": [_cell(row) for row in rows],
        "points": [point for row in rows for point in _points(row)],
        "runs": [(row, _took(row, history), tail(logs.get(row.observation, ""))) for row in judged],
        "left_out": [(row.release, row.reason) for row in rows if row.state is RowState.LEFT_OUT],
        "drift": [f"{release}: {'; '.join(lines)}" for release, lines in history.drift.items()],
        "altered": altered_rows(history.altered),
        "repro_file": f"{question.repro.name}.py",
        "repro_source": question.repro.source.rstrip("\n"),
        "footer": f"{runs_of(history.probes, history.steps)}; {time[:10]}",
    }
    record: dict[str, Any] = {
        **history.as_json(),
        "id": history_id(history),
        "kept": time,
        "params": question.repro.params,
        "requirements": list(question.requirements),
        "holds": list(question.holds),
    }
    return Page("history", redacted(content, private), redacted(record, private))


def _facts(history: History) -> list[tuple[str, str]]:
    judged = sum(row.state in _JUDGED for row in history.rows)
    bad = history.question.ends.get("bad")
    near = bad["text"] if bad is not None else history.tried_rows[-1].release
    tried = ("Releases", f"{judged} of {history.tried} were run or known before")
    return question_facts(
        history.question, recognised_by(history.signature), tried, machine={}, platform=history.platform, near=near
    )


def _certainty(window: BrokenWindow) -> str:
    doubts = [
        f"{listed(releases)} may be {where}, and could not be judged"
        for releases, where, end in (
            (window.unsure_before, "the first broken one", window.last_good),
            (window.unsure_after, "broken too", window.fixed_in),
        )
        if releases and end
    ]
    if doubts:
        return "; ".join(doubts)
    missing = [side for end, side in ((window.last_good, "before"), (window.fixed_in, "after")) if end is None]
    if missing:
        return f"certain in this range, which has no good run {' or '.join(missing)} it"
    return "certain among the releases that were tried" if window.left_out else "certain: its neighbours were run"


def _cell(row: ReleaseRow) -> dict[str, str]:
    text = f"left out ({row.reason})" if row.state is RowState.LEFT_OUT else row.reason
    if row.state in _JUDGED:
        text = f"{Verdict(row.state.value).word} ({row.reason})"
    href = f"#{_anchor(row.release)}" if row.observation else ""
    return range_cell(row.release, row.uploaded, row.state, text, href)


def _points(row: ReleaseRow) -> list[ChartPoint]:
    href = f"#{_anchor(row.release)}"
    return [
        ChartPoint(metric, row.release, value, row.state.value, href=href) for metric, value in row.measured.items()
    ]


def _took(row: ReleaseRow, history: History) -> str:
    """The total duration of a release's runs."""
    steps = [step for step in history.steps if step.release == row.release]
    if all(step.cached for step in steps):
        return "known already"
    return f"{sum(step.seconds for step in steps):.1f} s"


def _anchor(release: str) -> str:
    return f"run-{release}"
