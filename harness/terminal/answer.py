"""Prints answers, histories, matrices and observations, with the commands that repeat each side."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from harness.bisection.advice import again
from harness.bisection.answer import Answer, Status
from harness.bisection.history import History, HistoryStatus, RowState
from harness.bisection.sections import rows_of, sections_of, skipped_rows
from harness.bisection.wording import runs_made
from harness.matrix.table import tables
from harness.model import Judgement, Observation, Outcome
from harness.model.text import counted, in_environment, listed
from harness.model.verdict import runs_of
from harness.report.commands import required_names
from harness.report.phrases import ranks_in_words
from harness.terminal.console import (
    STYLE,
    Console,
    duration,
    line_width,
    picture,
    print_head,
    print_rows,
    print_text,
    short_path,
)

if TYPE_CHECKING:
    from harness.matrix.running import CellResult
    from harness.store import Store


_SHOWN_FILES, _LAST_LINES = 6, 8


def print_answer(
    console: Console, answer: Answer, results: str, reports: Sequence[str] = (), constraints: str = ""
) -> None:
    """Print the answer with its sections, and what to do next.

    `reports` and `constraints` are the paths of files that were written.
    """
    console.print()
    style = {Status.FOUND: "bold red", Status.FIXED: "bold green"}.get(answer.status, "bold yellow")
    print_text(console, answer.sentence, style)
    console.print()
    head, *sections = sections_of(answer)
    print_head(console, rows_of(head))
    for section in sections:
        print_rows(console, section.rows)
    runs = f"  {runs_made(answer)}; {duration(answer.effort.wall_s)} on {answer.question.device}; records in {results}"
    print_text(console, runs, "dim")
    _print_next(console, answer, reports, constraints)


def _print_next(console: Console, answer: Answer, reports: Sequence[str], constraints: str) -> None:
    """Print the commands to go on with, and the files that were written."""
    rows: list[tuple[str, str]] = []
    for culprit in answer.culprits[:1]:
        boundary = culprit.boundary
        for release, (verdict, side) in zip(boundary.ends, boundary.by_verdict.items(), strict=False):
            is_only = len(answer.culprits) == 1 or not release
            label = f"the {verdict.word} side" if is_only else f"{boundary.subject} {release}"
            command = again(side, answer.question.typed)
            rows += [(f"run {label} again", command)] if command else []
    advice = re.fullmatch(r"(.+?): (harness [^;]+)", answer.advice)
    if advice is not None:
        rows.append((f"{advice[1][0].lower()}{advice[1][1:]}", advice[2]))
    rows += [("report", path) for path in reports]
    rows += [("constraints", constraints)] if constraints else []
    if advice is None and answer.advice:
        print_text(console, f"  {answer.advice}")
    if rows:
        console.print(Text("\nNext", style="bold"))
    width = max((len(label) for label, _ in rows if len(label) <= _NEXT), default=0)
    for label, text in rows:
        lead = f"  {label:<{width}}  " if len(label) <= _NEXT else f"  {label}:\n    "
        console.print(Text(f"{lead}{text}"), soft_wrap=True)  # the terminal wraps it, so that it can be copied


_NEXT = 24  # columns of a label; a longer one has a line of its own


def print_observation(console: Console, observation: Observation, judgement: Judgement | None, store: Store) -> None:
    """Print one observation: the verdict or outcome, metrics, changed files, the traceback, and what it printed last.

    Its log is in the store.
    """
    if judgement is None:
        headline = Text(
            f"{observation.outcome.value}: {observation.detail}" if observation.detail else observation.outcome.value
        )
    else:
        headline = Text.assemble((f"{judgement.verdict.word} ", f"bold {STYLE[judgement.verdict]}"), judgement.reason)
    print_text(console, headline)
    table = Table.grid(padding=(0, 2))
    table.add_row("repro", observation.repro)
    table.add_row("outcome", observation.outcome.value)
    if judgement is not None and observation.detail not in ("", judgement.reason):
        table.add_row("detail", observation.detail)
    table.add_row("device", _described(observation))
    if observation.lock is not None:
        named = required_names(observation.requirements)
        pins = {pin.name: pin for pin in (*observation.lock.pins, *observation.installed)}
        shown = [f"{pin.name} {pin.version}" for name, pin in pins.items() if name in named]
        table.add_row("python", observation.lock.python)
        table.add_row("installed", f"{', '.join(shown)} ({len(observation.lock.pins)} in all)")
    for name, value in observation.metrics.items():
        table.add_row(name, f"{value:g}")
    if observation.outcome.ran:
        table.add_row("seconds", f"{observation.duration_s:.1f}")
    if observation.peak_memory:
        table.add_row("peak memory", f"{observation.peak_memory / 2**20:.0f} MiB")
    table.add_row("observation", observation.key)
    if observation.log:
        table.add_row("log", str(short_path(store.root.absolute() / observation.log)))
    console.print(table)
    if observation.altered:
        print_text(console, f"  {altered_in_words(observation.altered)}")
    _print_end(console, observation, store.log(observation))


def _print_end(console: Console, observation: Observation, printed: str) -> None:
    """Print the exception, then the last lines that a run printed before its traceback."""
    if observation.exception is not None and observation.outcome is not Outcome.COMPLETED:
        for frame in observation.exception.frames[-6:]:
            print_text(console, f"  {frame.file}:{frame.line} in {frame.function}", "dim")
        first = observation.exception.message.splitlines()[:1]
        print_text(console, f"  {observation.exception.name}: {first[0] if first else ''}")
        printed = printed.rpartition("Traceback (most recent call last)")[0] or printed
    for line in printed.rstrip().splitlines()[-_LAST_LINES:]:
        print_text(console, f"  | {line}", "dim")


def altered_in_words(files: tuple[str, ...]) -> str:
    """One sentence about the files that a run changed in its environment."""
    shown = listed(map(in_environment, files), _SHOWN_FILES)
    return f"changed files of its environment, which was thrown away: {shown}"


def _described(observation: Observation) -> str:
    """The device of a run with the name of its GPU, and the processes that a launcher started."""
    device, name = observation.device.value, observation.machine.get("name")
    ranks = ranks_in_words(device, observation.machine)
    return device + (f" ({name})" if name else "") + (f", {ranks}" if ranks else "")


_LEGEND = "  G good, B bad, S skipped; g and b not run, since the runs around them agree; ? not run"
_STATUS_STYLE = {HistoryStatus.BROKEN: "bold red", HistoryStatus.NEVER_BROKEN: "bold green"}


def print_history(console: Console, history: History, results: str) -> None:
    """Print the sentence, the picture of the range, the limits of the answer, and what was skipped."""
    console.print()
    print_text(console, history.sentence, _STATUS_STYLE.get(history.status, "bold yellow"))
    tried = history.tried_rows
    releases = f"  {tried[0].release} to {tried[-1].release}"
    bar = picture([row.state for row in tried], line_width(console) - len(releases) - 2)
    console.print(Text("  ").append_text(bar).append(releases))
    print_text(console, _LEGEND, "dim")
    if history.signature is not None:
        print_text(console, f"  recognised by: {history.signature}")
    for note in history.notes:
        print_text(console, f"  {note}")
    skips = skipped_rows((row.release, row.reason if row.state is RowState.SKIP else None) for row in tried)
    print_rows(console, skips)
    runs = f"{runs_of(history.probes, history.steps)}; {counted(history.tried, 'release')} in the range"
    print_text(
        console,
        f"  {runs}; {duration(history.effort.wall_s)} on {history.question.device}; records in {results}",
        "dim",
    )
    if history.advice:
        print_text(console, history.advice)


_NOT_RUN = "-"
_WIDEST = 10_000


def print_table(console: Console, results: Sequence[CellResult], names: Collection[str] | None = None) -> None:
    """Print a table: the longest axis is vertical, the other varying axes horizontal; "-" is a cell that never ran.

    `names` are those of the cells to show (None: all).
    """
    shown = [i for i, result in enumerate(results) if names is None or result.cell.name in names]
    for part in tables([result.cell for result in results], shown):
        if part.title:
            console.print(Text(f"\n{part.title}", style="bold"))
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column(Text(part.down), no_wrap=True)
        for column in part.columns:
            table.add_column(Text(column or "verdict"))
        for row, places in part.rows:
            table.add_row(Text(row), *(_place(place, results) for place in places))
        if not console.is_terminal:  # a log has no width, so nothing needs to be cut
            options = console.options.update(max_width=_WIDEST)
            console.width = max(console.width, console.measure(table, options=options).maximum)
        console.print(table)


def _place(place: Sequence[tuple[int, str]], results: Sequence[CellResult]) -> Text:
    """The verdicts at one place; several are distinguished by how they differ."""
    text = Text()
    for position, what in place:
        text.append(", " if text else "")
        verdict = results[position].verdict
        text.append(verdict.word if verdict else _NOT_RUN, style=STYLE[verdict] if verdict else "dim")
        text.append(f" ({what})" if what else "", style="dim")
    return text
