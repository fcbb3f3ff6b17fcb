"""Stores answers and writes their reports, without private data."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from harness.environment import Workspace
from harness.model import Verdict
from harness.redact import Private, passed_secrets, redacted
from harness.report.answer.archive import Archive, kept_answer
from harness.report.answer.building import make_content
from harness.report.links import repositories_in
from harness.report.privacy import private_of, unknown_here
from harness.report.render import RENDERERS

if TYPE_CHECKING:
    from pathlib import Path

    from harness.bisect.answer import Answer
    from harness.planning.plan import Plan
    from harness.report.answer.archive import KeptAnswer
    from harness.report.answer.content import ReportContent
    from harness.store import Store

_AT_THE_END = {"markdown": "md", "html": "html"}


def keep_and_report(
    store: Store, plan: Plan, answer: Answer, pass_env: tuple[str, ...] = (), commits: tuple[str, ...] = ()
) -> tuple[Path, ...]:
    """Store an answer and write its reports to the results folder; returns their paths. Raises `NoSpace`.

    `commits` are the commits of the range, the oldest first.
    """
    return write_reports(store, kept_answer(plan, answer, datetime.now(UTC).isoformat(), pass_env, commits))


def write_reports(store: Store, kept: KeptAnswer) -> tuple[Path, ...]:
    """Store an answer, replacing its record, and write its reports; returns their paths. Raises `NoSpace`."""
    kept = redacted(kept, Private(passed_secrets(os.environ, kept.pass_env)))
    Archive(store).put(kept)
    content = content_of(store, kept)
    return tuple(
        store.write(f"reports/{kept.id}.{suffix}", RENDERERS[style](content)) for style, suffix in _AT_THE_END.items()
    )


def content_of(store: Store, kept: KeptAnswer) -> ReportContent:
    """The content of a stored answer's report, with the logs in this store and without private data."""
    answer = kept.answer
    failing = next((step.observation for step in reversed(answer.steps) if step.verdict is Verdict.BAD), None)
    pins = {pin.name for side in answer.sides if side.lock is not None for pin in side.lock.pins}
    is_known = not unknown_here(kept.pass_env)
    return make_content(
        kept,
        logs={side.key: store.log(side) for side in answer.sides if is_known},
        failing=store.get(failing) if failing and is_known else None,
        repositories=repositories_of(kept),
        private=private_of(store, pass_env=kept.pass_env, spared=pins | {answer.subject}),
    )


def repositories_of(kept: KeptAnswer) -> dict[str, str]:
    """Each distribution's repository, from the metadata in the newer side's environment if it still exists."""
    sides = kept.answer.sides
    if not sides or (lock := sides[-1].lock) is None:
        return {}
    environment = Workspace.default().root / "environments" / lock.id
    return repositories_in(environment, [pin.name for pin in lock.pins])
