"""`harness report`: an answer that was found, as Markdown, HTML or JSON for others to read."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli.private import private_of, unknown_here
from harness.cli.wiring import open_store, results_option
from harness.environment import Workspace
from harness.errors import NoSpace
from harness.model import Verdict
from harness.report import (
    RENDERERS,
    Archive,
    KeptAnswer,
    Private,
    ReportContent,
    kept_answer,
    make_content,
    passed_secrets,
    redacted,
    repositories_in,
)
from harness.store import Store

if TYPE_CHECKING:
    from harness.bisect.answer import Answer
    from harness.planning.plan import Plan

_AT_THE_END = {"markdown": "md", "html": "html"}


@click.command()
@click.argument("id", required=False)
@click.option(
    "--format",
    "style",
    type=click.Choice(list(RENDERERS)),
    default="markdown",
    show_default=True,
    help="markdown for an issue, html to look at, json for programs.",
)
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Write there instead of to stdout.")
@results_option
def report(id: str | None, style: str, output: Path | None, results_folder: Path) -> None:  # noqa: A002
    """Write the report of an answer: the newest, or the one whose ID begins so.

    \b
    harness report
    harness report --format html --output report.html
    """
    store = open_store(results_folder)
    text = RENDERERS[style](content_of(store, Archive(store).get(id)))
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise NoSpace(f"can't write {output}: {error.strerror}") from error


def keep_and_report(store: Store, plan: Plan, answer: Answer, pass_env: tuple[str, ...] = ()) -> tuple[Path, ...]:
    """Keep an answer and write its reports below the results folder; their paths. Raises `NoSpace`."""
    return write_reports(store, kept_answer(plan, answer, datetime.now(UTC).isoformat(), pass_env))


def write_reports(store: Store, kept: KeptAnswer) -> tuple[Path, ...]:
    """Keep an answer that may have been kept before, and write its reports; their paths. Raises `NoSpace`."""
    kept = redacted(kept, Private(passed_secrets(os.environ, kept.pass_env)))
    Archive(store).put(kept)
    content = content_of(store, kept)
    return tuple(
        store.write(f"reports/{kept.id}.{suffix}", RENDERERS[style](content)) for style, suffix in _AT_THE_END.items()
    )


def content_of(store: Store, kept: KeptAnswer) -> ReportContent:
    """What the records of this machine add to a kept answer, without what is private here."""
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
    """The repositories that the metadata of the newer side's environment names, if it is still there."""
    sides = kept.answer.sides
    if not sides or (lock := sides[-1].lock) is None:
        return {}
    environment = Workspace.default().root / "environments" / lock.id
    return repositories_in(environment, [pin.name for pin in lock.pins])
