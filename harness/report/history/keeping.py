"""Stores histories and writes their pages, without private data."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from harness.report.history.archive import keep_history
from harness.report.history.building import history_content, render_history_html, render_history_markdown
from harness.report.privacy import private_of

if TYPE_CHECKING:
    from pathlib import Path

    from harness.history import History, HistoryPlan
    from harness.store import Store


def keep_history_report(store: Store, made: HistoryPlan, found: History, pass_env: tuple[str, ...]) -> tuple[Path, ...]:
    """Store a history and write its pages to the results folder; returns their paths. Raises `NoSpace`."""
    kept = datetime.now(UTC).isoformat()
    seen = [observation for step in found.steps if (observation := store.get(step.observation)) is not None]
    pins = {pin.name for observation in seen if observation.lock is not None for pin in observation.lock.pins}
    private = private_of(store, pass_env=pass_env, spared=pins | {found.subject})
    logs = {observation.key: store.log(observation) for observation in seen}
    content = history_content(made, found, kept=kept, logs=logs, private=private)
    name = f"reports/history-{keep_history(store, made, found, kept, private)}"
    return (
        store.write(f"{name}.md", render_history_markdown(content)),
        store.write(f"{name}.html", render_history_html(content)),
    )
