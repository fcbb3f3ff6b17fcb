"""Prints answers, histories, matrices and observations, with the commands that repeat each side."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from harness.asking.answer import Answer, Boundary, Failure, Guilty, Status
from harness.asking.history import History, HistoryStatus, RowState
from harness.asking.wording import beyond_head, head_of, runs_made, subject_of
from harness.model import Judgement, Observation, Outcome, Verdict
from harness.model.culprit import Culprit
from harness.model.release import version_order
from harness.model.text import counted, listed
from harness.model.verdict import runs_of
from harness.report.commands import asked_for
from harness.report.excerpts import in_environment
from harness.report.matrix_table import tables
from harness.search import Counts
from harness.terminal.console import (
    STYLE,
    Console,
    duration,
    picture,
    print_head,
    print_skipped,
    print_text,
    short_reason,
)

if TYPE_CHECKING:
    from harness.matrix.running import CellResult


_SHOWN_FILES = 6
_SHOWN_CHANGES = 6
_REASON = 160


def print_answer(
    console: Console,
    answer: Answer,
    results: str,
    reports: Sequence[str] = (),
    constraints: str = "",
    *,
    diff: bool = False,
) -> None:
    """Print the answer and its workaround, the proofs, and what to do next; with `diff` also the changed lines.

    `reports` and `constraints` are the paths of files that were written.
    """
    console.print()
    style = {Status.FOUND: "bold red", Status.FIXED: "bold green"}.get(answer.status, "bold yellow")
    head, rest = head_of(answer), answer.sentence
    if {"First bad", "Fixed in"} & {label for label, _ in head} and not answer.ends:
        rest = beyond_head(answer)
    if rest == answer.sentence:
        print_text(console, rest, style)
        console.print()
        rest = ""
    print_head(console, head)
    if rest:
        print_text(console, rest)
        console.print()
    shown: set[object] = set()
    for failure in answer.failures:
        _print_failure(console, failure, shown, answer.sentence, diff=diff)
    for told in answer.told:
        print_text(console, f"  {short_reason(told)}", "dim")
    apart = {
        "fail at both ends": answer.failing_at_both,
        "passed at the good end, did not run at the bad end": answer.not_run,
        "flaky": answer.flaky,
    }
    for name, tests in apart.items():
        if tests:
            print_text(console, f"  {name}: {listed(tests)}", "dim")
    runs = f"  {runs_made(answer)}; {duration(answer.wall_s)} on {answer.asked.device}; records in {results}"
    print_text(console, runs, "dim")
    _print_next(console, answer, reports, constraints, diff=diff)


def _print_failure(console: Console, failure: Failure, shown: set[object], sentence: str, *, diff: bool) -> None:
    """Print one failure with its culprits; what was `shown` before, or is in the sentence above, is not repeated."""
    if failure.signature is not None and failure.tests:
        print_text(console, f"  {listed(failure.tests)}: {short_reason(str(failure.signature), _REASON)}", hang=4)
    if failure.note and failure.note not in sentence:
        print_text(console, f"  {short_reason(failure.note)}", "yellow")
    for culprit in failure.culprits:
        found = (culprit.package, culprit.boundary.ends[1])
        is_new = found not in shown or culprit.deeper is not None or not culprit.boundary.is_certain
        if is_new:
            _print_proofs(console, culprit)
        _print_evidence(console, culprit, shown)
        if found not in shown:
            shown.add(found)
            _print_details(console, culprit.boundary, culprit.deeper, diff=diff)
    if not failure.culprits and failure.boundary is not None:
        _print_details(console, failure.boundary, None, diff=diff)


def _print_proofs(console: Console, culprit: Guilty) -> None:
    """Print the proofs of the finest level, and of the finest one that is proved; then their limits."""
    findings = culprit.deeper.findings if culprit.deeper is not None else ()
    proved = [finding for finding in findings if finding.is_proved][-1:]
    told = list(dict.fromkeys((p.sentence, p.verdict, p.holds) for f in (*proved, *findings[-1:]) for p in f.proofs))
    if not told:
        boundary = culprit.boundary
        sides = [(Verdict.GOOD, boundary.good_side), (Verdict.BAD, boundary.bad_side)]
        for end, (verdict, counts) in zip(boundary.ends, sides[::-1] if boundary.is_fix else sides, strict=True):
            runs = _runs(verdict, counts)
            _print_proof(console, f"{subject_of(boundary)} {end or '(absent)'}: {runs}", holds=boundary.is_certain)
    for sentence, verdict, holds in told:
        _print_proof(console, f"{sentence}: {verdict.word}", holds=holds)
    for note in findings[-1].notes if findings else ():
        print_text(console, Text(f"            {short_reason(note)}", style="dim"))


def _print_evidence(console: Console, culprit: Guilty, shown: set[object]) -> None:
    """Print what else speaks for the culprit and was not `shown` before."""
    for evidence in culprit.evidence:
        if evidence.text in shown:
            continue
        shown.add(evidence.text)
        told_by = Text.assemble(("  evidence  ", "cyan"), short_reason(evidence.text.partition("; the release")[0]))
        print_text(console, told_by, hang=10)


def _runs(verdict: Verdict, counts: Counts | None) -> str:
    """The verdict on one side, and in how many runs it was seen if there were several."""
    if counts is None or counts.runs < 2:
        return verdict.word
    shown = counts.bad if verdict is Verdict.BAD else counts.runs - counts.bad
    return f"{verdict.word} in {shown} of {counts.runs} runs"


def _print_proof(console: Console, sentence: str, *, holds: bool) -> None:
    mark, style = ("proved", "green") if holds else ("not shown", "yellow")
    print_text(console, Text.assemble((f"  {mark:<9} ", style), sentence), hang=10)


def _print_details(console: Console, boundary: Boundary, culprit: Culprit | None, *, diff: bool) -> None:
    """Print what else differs between the two sides, what was skipped, and the commits; with `diff` the lines too."""
    named = {change.name for change in culprit.packages} if culprit is not None else {boundary.subject}
    changes = [change for change in boundary.moved if change.name not in named]
    if changes:
        shown = listed(map(str, changes), _SHOWN_CHANGES)
        print_text(console, f"  also installed differently: {shown}", hang=2)
    print_skipped(console, _in_order(boundary))
    for drifts, names in _grouped(boundary.drift):
        print_text(console, Text(f"  also changed with {listed(names)}: {'; '.join(drifts)}", style="dim"), hang=2)
    for files, names in _grouped(boundary.altered):
        print_text(console, Text(f"  {altered_in_words(files)} (with {listed(names)})", style="dim"), hang=2)
    if culprit is not None:
        _print_lines(console, culprit, diff=diff)


def _print_next(console: Console, answer: Answer, reports: Sequence[str], constraints: str, *, diff: bool) -> None:
    """Print the commands to go on with, and the files that were written."""
    rows: list[tuple[str, str]] = []
    for culprit in answer.culprits[:1]:
        sides = culprit.boundary.by_verdict
        rows += [(f"run the {verdict.word} side again", again(side)) for verdict, side in sides.items()]
        has_lines = culprit.deeper is not None and any(finding.regions for finding in culprit.deeper.findings)
        if has_lines and not diff:
            rows.append(("show the changed lines", "the same command with --diff, or the report"))
    advice = re.fullmatch(r"(.+?): (harness [^;]+)", answer.advice)
    if advice is not None:
        rows.append((f"{advice[1][0].lower()}{advice[1][1:]}", advice[2]))
    names = ["report"] * len(reports)
    if len(reports) == len(answer.culprits) > 1:
        names = [f"report on {one.package} {one.boundary.ends[1] or ''}".rstrip() for one in answer.culprits]
    rows += zip(names, reports, strict=True)
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


def _in_order(boundary: Boundary) -> list[tuple[str, str | None]]:
    """The candidates that were run, the oldest first, each with the reason why it was skipped or None."""
    reasons: dict[str, str | None] = {}
    for step in boundary.steps:
        skipped = step.reason if step.verdict is Verdict.SKIP else None
        reasons[step.release] = reasons.get(step.release) or skipped
    return sorted(reasons.items(), key=lambda row: version_order(row[0]))


def _grouped(told: dict[str, tuple[str, ...]]) -> list[tuple[tuple[str, ...], list[str]]]:
    """Group candidates with the same drift, or the same changed files."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, lines in told.items():
        groups.setdefault(lines, []).append(name)
    return list(groups.items())


def _print_lines(console: Console, culprit: Culprit, *, diff: bool) -> None:
    """Print the commits of the finest level, and its lines with `diff`."""
    for commit in culprit.finest.commits:
        console.print(Text.assemble(("\n  commit    ", "bold"), f"{commit.sha}"))
        request = f"  pull request #{commit.pull_request} {commit.pull_request_link}" if commit.pull_request else ""
        for line in (commit.subject, f"{commit.author}, {commit.date}{request}".rstrip(), commit.link):
            if line:
                print_text(console, f"            {line}")
    for region in culprit.finest.regions if diff else ():
        console.print()
        print_text(console, f"  {region.file}, {region.function or 'module level'}", "bold")
        for line in region.diff.splitlines():
            style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "dim")
            console.print(Text(f"    {line}", style=style), soft_wrap=True)
    if diff and culprit.finest.regions:
        console.print()


def again(observation: Observation) -> str:
    """The command that repeats an observation; what a person judged can only be looked at again."""
    if observation.by_hand:
        return f"harness shell {observation.by_hand}"
    return shlex.join(["harness", "probe", "--again", observation.key])


def print_observation(console: Console, observation: Observation, judgement: Judgement | None) -> None:
    """Print one observation: the verdict or outcome, metrics, changed files and the traceback."""
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
    table.add_row("device", observation.device.value + _described(observation.machine))
    if observation.lock is not None:
        named = asked_for(observation.requirements)
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
    console.print(table)
    if observation.altered:
        print_text(console, f"  {altered_in_words(observation.altered)}")
    if observation.exception is not None and observation.outcome is not Outcome.COMPLETED:
        for frame in observation.exception.frames[-6:]:
            print_text(console, f"  {frame.file}:{frame.line} in {frame.function}", "dim")
        first = observation.exception.message.splitlines()[:1]
        print_text(console, f"  {observation.exception.name}: {first[0] if first else ''}")


def altered_in_words(files: tuple[str, ...]) -> str:
    """One sentence about the files that a run changed in its environment."""
    shown = listed(map(in_environment, files), _SHOWN_FILES)
    return f"changed files of its environment, which was thrown away: {shown}"


def _described(machine: dict[str, object]) -> str:
    name = machine.get("name")
    return f" ({name})" if name else ""


_LEGEND = "  G good, B bad, S skipped; g and b not run, since the runs around them agree; ? not run"
_STATUS_STYLE = {HistoryStatus.BROKEN: "bold red", HistoryStatus.NEVER_BROKEN: "bold green"}


def print_history(console: Console, history: History, results: str) -> None:
    """Print the sentence, the picture of the range, the limits of the answer, and what was skipped."""
    console.print()
    print_text(console, history.sentence, _STATUS_STYLE.get(history.status, "bold yellow"))
    tried = [row for row in history.rows if row.state is not RowState.LEFT_OUT]
    releases = f"  {tried[0].release} to {tried[-1].release}"
    console.print(Text("  ").append_text(picture([row.state for row in tried])).append(releases))
    print_text(console, _LEGEND, "dim")
    if history.signature is not None:
        print_text(console, f"  recognised by: {history.signature}")
    for note in history.notes:
        print_text(console, f"  {note}")
    print_skipped(console, ((row.release, row.reason if row.state is RowState.SKIP else None) for row in tried))
    runs = f"{runs_of(history.probes, history.steps)}; {counted(history.tried, 'release')} in the range"
    print_text(console, f"  {runs}; {duration(history.wall_s)} on {history.device}; records in {results}", "dim")
    if history.advice:
        print_text(console, history.advice)


_NOT_RUN = "-"
_WIDEST = 10_000


def print_table(console: Console, standings: Sequence[CellResult], meant: Collection[str] | None = None) -> None:
    """Print a table: the longest axis is vertical, the other varying axes horizontal; "-" is a cell that never ran.

    `meant` are the names of the cells to show (None: all).
    """
    shown = [i for i, standing in enumerate(standings) if meant is None or standing.cell.name in meant]
    for one in tables([standing.cell for standing in standings], shown):
        if one.title:
            console.print(Text(f"\n{one.title}", style="bold"))
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column(Text(one.down), no_wrap=True)
        for column in one.columns:
            table.add_column(Text(column or "verdict"))
        for row, places in one.rows:
            table.add_row(Text(row), *(_place(place, standings) for place in places))
        if not console.is_terminal:  # a log has no width, so nothing needs to be cut
            options = console.options.update(max_width=_WIDEST)
            console.width = max(console.width, console.measure(table, options=options).maximum)
        console.print(table)


def _place(place: Sequence[tuple[int, str]], standings: Sequence[CellResult]) -> Text:
    """The verdicts at one place; several are distinguished by how they differ."""
    text = Text()
    for position, what in place:
        text.append(", " if text else "")
        verdict = standings[position].verdict
        text.append(verdict.word if verdict else _NOT_RUN, style=STYLE[verdict] if verdict else "dim")
        text.append(f" ({what})" if what else "", style="dim")
    return text
