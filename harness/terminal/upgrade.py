"""An answer between two worlds for a person to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from harness.bisect.answer import Status
from harness.terminal.answer import again
from harness.terminal.clock import duration
from harness.terminal.console import Console

if TYPE_CHECKING:
    from harness.bisect.upgrade_answer import GroupAnswer, PackageCulprit, UpgradeAnswer

_SHOWN = 3


def print_upgrade(answer: UpgradeAnswer, results: str) -> None:
    """The sentence, each group with its culprits, constraints, and how to see it again."""
    console = Console(soft_wrap=True)
    console.print()
    style = {Status.FOUND: "bold red"}.get(answer.status, "bold yellow")
    console.print(Text(answer.sentence, style=style))
    for group in answer.groups:
        _print_group(console, group)
    for told in answer.told:
        console.print(Text(f"  {told}", style="dim"))
    for name, tests in (("fail at both ends", answer.failing_at_both), ("flaky", answer.flaky)):
        if tests:
            console.print(Text(f"  {name}: {_few(tests)}", style="dim"))
    if answer.constraints:
        sure = "a run has shown that it passes" if answer.constraints_verified else "not shown to be enough"
        console.print(Text.assemble("Until then: ", (" ".join(answer.constraints), "bold"), f" ({sure})"))
    console.print(
        Text(f"  {answer.probes} runs, {duration(answer.wall_s)}; seen on {answer.device}; records in {results}", "dim")
    )
    if answer.advice:
        console.print(Text(answer.advice))


def _print_group(console: Console, group: GroupAnswer) -> None:
    tests = f"{_few(group.tests)}: " if group.tests else ""
    console.print(f"  {tests}{group.signature}", markup=False, highlight=False)
    for culprit in group.culprits:
        _print_culprit(console, culprit)
    if group.note:
        console.print(Text(f"    {group.note}", style="yellow"))


def _print_culprit(console: Console, culprit: PackageCulprit) -> None:
    boundary = culprit.boundary
    mark, style = ("proved", "green") if culprit.is_proved else ("suspect", "yellow")
    line = f"{culprit.package}: {boundary.last_good or '(absent)'} is good, {boundary.first_bad or '(absent)'} is bad"
    console.print(Text.assemble((f"    {mark:<8} ", style), line))
    for evidence in culprit.evidence:
        console.print(Text.assemble(("    evidence ", "cyan"), evidence.text))
    for step in boundary.steps:
        if step.verdict.value == "skip":
            console.print(Text.assemble(("    skipped  ", "yellow"), f"{step.release}: {step.reason}"))
    moved = [str(change) for change in culprit.moved if change.name != culprit.package]
    if moved:
        console.print(Text(f"             with it: {_few(moved)}", style="dim"))
    for observation in boundary.sides:
        console.print(f"             {again(observation)}", markup=False, highlight=False)


def _few(items: tuple[str, ...] | list[str]) -> str:
    if len(items) <= _SHOWN:
        return ", ".join(items)
    return f"{', '.join(items[: _SHOWN - 1])} and {len(items) - _SHOWN + 1} more"
