"""Stored histories: one JSON record each, as printed by `harness history --json`, with its question."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from harness.redact import Private, redacted

if TYPE_CHECKING:
    from harness.history import History, HistoryPlan
    from harness.store import Store

_FOLDER = "histories"


def history_id(history_plan: HistoryPlan) -> str:
    """Identifies the question; a new answer to it replaces the record."""
    plan = history_plan.plan
    what = [
        plan.subject,
        plan.repro.digest,
        json.dumps(plan.repro.params, sort_keys=True),
        sorted(plan.requirements),
        sorted(plan.holds),
        plan.interpreter.version,
        plan.device.value,
        plan.as_of,
        plan.question.prereleases,
        str(plan.releases[0].version),
        str(plan.releases[-1].version),
    ]
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:10]


def keep_history(store: Store, history_plan: HistoryPlan, history: History, kept: str, private: Private) -> str:
    """Store a history, without private data; returns its id. `kept` is the current time (ISO 8601, UTC).

    Raises `NoSpace`.
    """
    plan = history_plan.plan
    record: dict[str, Any] = {
        **history.as_json(),
        "id": history_id(history_plan),
        "kept": kept,
        "params": plan.repro.params,
        "requirements": list(plan.requirements),
        "holds": list(plan.holds),
    }
    store.write(f"{_FOLDER}/{record['id']}.json", json.dumps(redacted(record, private), indent=1))
    return str(record["id"])
