"""Prints the answer to which packages broke a command between two sets of packages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from harness.bisect.answer import Status
from harness.bisect.wording import place_of
from harness.model import Verdict
from harness.model.release import version_order
from harness.model.text import counted, listed
from harness.terminal.answer import again
from harness.terminal.clock import duration
from harness.terminal.console import Console, print_line
from harness.terminal.head import print_head
from harness.terminal.picture import print_skipped, short_reason

if TYPE_CHECKING:
    from harness.bisect.upgrade_answer import GroupAnswer, PackageCulprit, UpgradeAnswer


def print_upgrade(answer: UpgradeAnswer, results: str) -> None:
    """Print the outcome, each group with its culprits and proofs, and how to repeat it."""
    console = Console(soft_wrap=True)
    console.print()
    rows = [row for row in _head(answer) if row[1]]
    if rows:
        print_head(console, rows)
        console.print()
    style = {Status.FOUND: "bold red"}.get(answer.status, "bold yellow")
    console.print(Text(answer.sentence, style=style))
    console.print()
    for group in answer.groups:
        _print_group(console, group)
    for told in answer.told:
        print_line(console, Text(f"  {short_reason(told)}", style="dim"))
    apart = {
        "fail at both ends": answer.failing_at_both,
        "passed at the good end, did not run at the bad end": answer.not_run,
        "flaky": answer.flaky,
    }
    for name, tests in apart.items():
        if tests:
            print_line(console, Text(f"  {name}: {listed(tests)}", style="dim"))
    told = f"{counted(answer.probes, 'run')}; {duration(answer.wall_s)} on {answer.device}; records in {results}"
    console.print(Text(f"  {told}", "dim"))
    if answer.advice:
        console.print(Text(f"  {answer.advice}"))


def _head(answer: UpgradeAnswer) -> list[tuple[str, str]]:
    """The rows of the head; last good and first bad only if there is one culprit."""
    culprits = [culprit for culprit in answer.culprits if not culprit.is_companion]
    rows: list[tuple[str, str]] = []
    if len(culprits) == 1:
        boundary = culprits[0].boundary
        rows = [
            ("Last good", f"{boundary.package} {boundary.last_good or '(absent)'}"),
            ("First bad", f"{boundary.package} {boundary.first_bad or '(absent)'}"),
        ]
    rows += [("Culprit" if culprit.is_proved else "Suspect", _place(culprit)) for culprit in culprits]
    sure = "a run with them passed" if answer.constraints_verified else "not confirmed by a run"
    rows.append(("Until then", f"{' '.join(answer.constraints)} ({sure})" if answer.constraints else ""))
    return rows


def _place(culprit: PackageCulprit) -> str:
    """The culprit's package and release, and the place of the difference if it is known."""
    if culprit.deeper is not None:
        return place_of(culprit.deeper.finest)
    boundary = culprit.boundary
    if len(boundary.suspects) > 1:
        return f"{boundary.package}, one of {listed(boundary.suspects)}"
    return f"{boundary.package} {boundary.first_bad or '(removed)'}"


def _print_group(console: Console, group: GroupAnswer) -> None:
    tests = f"{listed(group.tests)}: " if group.tests else ""
    print_line(console, f"  {tests}{short_reason(str(group.signature))}")
    for culprit in group.culprits:
        _print_culprit(console, culprit)
    if group.note:
        print_line(console, Text(f"    {short_reason(group.note)}", style="yellow"))


def _print_culprit(console: Console, culprit: PackageCulprit) -> None:
    boundary = culprit.boundary
    mark, style = ("proved", "green") if culprit.is_proved else ("suspect", "yellow")
    line = f"{culprit.package}: {boundary.last_good or '(absent)'} is good, {boundary.first_bad or '(absent)'} is bad"
    print_line(console, Text.assemble((f"    {mark:<8}  ", style), line))
    for evidence in culprit.evidence:
        print_line(console, Text.assemble(("    evidence  ", "cyan"), short_reason(evidence.text)))
    steps = sorted(boundary.steps, key=lambda step: version_order(step.release))
    print_skipped(console, ((step.release, step.reason if step.verdict is Verdict.SKIP else None) for step in steps))
    moved = [str(change) for change in culprit.moved if change.name != culprit.package]
    if moved:
        print_line(console, Text(f"              with it: {listed(moved)}", style="dim"))
    for observation in boundary.sides:
        console.print(Text(f"              {again(observation)}"), soft_wrap=True)
