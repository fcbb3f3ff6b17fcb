"""An answer for a person to read, with the commands that show each side again."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from harness.bisect.answer import Answer, Status
from harness.model import Observation, Outcome, Verdict
from harness.model.culprit import Culprit
from harness.terminal.clock import duration
from harness.terminal.picture import STYLE, print_skipped

if TYPE_CHECKING:
    from harness.terminal.console import Console

_SHOWN_FILES = 5
_SHOWN_CHANGES = 12


def print_answer(console: Console, answer: Answer, results: str) -> None:
    """The sentence, what differs between the sides, what was skipped, how to see it again."""
    console.print()
    style = {Status.FOUND: "bold red", Status.FIXED: "bold green"}.get(answer.status, "bold yellow")
    console.print(Text(answer.sentence, style=style))
    if answer.signature is not None:
        console.print(f"  recognised by: {answer.signature}", markup=False, highlight=False)
    if answer.lock_changes:
        culprits = {change.name for change in answer.culprit.packages} if answer.culprit else set()
        changes = sorted(answer.lock_changes, key=lambda change: change.name not in culprits)
        shown = ", ".join(str(change) for change in changes[:_SHOWN_CHANGES])
        more = f" and {len(changes) - _SHOWN_CHANGES} more" if len(changes) > _SHOWN_CHANGES else ""
        console.print(f"  installed differently: {shown}{more}", markup=False, highlight=False)
    if answer.culprit is not None:
        _print_culprit(console, answer.culprit)
    print_skipped(console, ((step.release, step.reason) for step in answer.steps if step.verdict is Verdict.SKIP))
    for told, releases in _grouped(answer.drift):
        console.print(Text(f"  not held: {'; '.join(told)} (with {', '.join(releases)})", style="dim"))
    for files, releases in _grouped(answer.altered):
        console.print(Text(f"  {altered_in_words(files)} (with {', '.join(releases)})", style="dim"), soft_wrap=True)
    if answer.sides:
        console.print("  see it again:")
        for observation in answer.sides:
            console.print(f"    {again(observation)}", markup=False, highlight=False, soft_wrap=True)
    counted = f"{answer.probes} releases run now, {sum(step.cached for step in answer.steps)} known already"
    if answer.culprit is not None:
        counted += f"; {answer.culprit_probes} runs to find the culprit"
    console.print(
        Text(
            f"  {counted}, {duration(answer.wall_s)}; seen on {answer.device}; records in {results}",
            style="dim",
        )
    )
    if answer.constraint:
        console.print(Text.assemble("Until then: ", (answer.constraint, "bold")), soft_wrap=True)
    if answer.advice:
        console.print(Text(answer.advice), soft_wrap=True)


def _grouped(drift: dict[str, tuple[str, ...]]) -> list[tuple[tuple[str, ...], list[str]]]:
    """Releases with the same drift, or the same altered files, together."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for release, told in drift.items():
        groups.setdefault(told, []).append(release)
    return list(groups.items())


def _print_culprit(console: Console, culprit: Culprit) -> None:
    """Each level's proof, and the lines themselves."""
    for finding in culprit.findings:
        for proof in finding.proofs:
            mark, style = ("proved", "green") if proof.holds else ("not shown", "yellow")
            console.print(Text.assemble((f"  {mark:<9} ", style), f"{proof.sentence}: {proof.verdict.value}"))
        for note in finding.notes:
            console.print(Text(f"            {note}", style="dim"))
    for commit in culprit.finest.commits:
        console.print(Text.assemble(("  commit    ", "bold"), f"{commit.sha}"))
        request = f"  pull request #{commit.pull_request} {commit.pull_request_link}" if commit.pull_request else ""
        for line in (f"{commit.subject}", f"{commit.author}, {commit.date}{request}".rstrip(), commit.link):
            if line:
                console.print(f"            {line}", markup=False, highlight=False, soft_wrap=True)
    for region in culprit.finest.regions:
        console.print(Text(f"  {region.file}, {region.function or 'module level'}", style="bold"))
        for line in region.diff.splitlines():
            style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "dim")
            console.print(Text(f"    {line}", style=style))


def again(observation: Observation) -> str:
    """The command that runs an observation's lock and repro once more."""
    return shlex.join(["harness", "probe", "--again", observation.key])


def print_observation(console: Console, observation: Observation, verdict: Verdict | None, reason: str) -> None:
    """One probe: what happened, what it means, numbers."""
    if verdict is None:
        headline = Text(
            f"{observation.outcome.value}: {observation.detail}" if observation.detail else observation.outcome.value
        )
    else:
        headline = Text.assemble((f"{verdict.value} ", f"bold {STYLE[verdict]}"), reason)
    console.print(headline)
    table = Table.grid(padding=(0, 2))
    table.add_row("repro", observation.repro)
    table.add_row("outcome", observation.outcome.value)
    if verdict is not None and observation.detail not in ("", reason):
        table.add_row("detail", observation.detail)
    table.add_row("device", observation.device.value + _described(observation.machine))
    if observation.lock is not None:
        named = {
            requirement.split("==")[0].split(">")[0].split("<")[0].split("[")[0].strip().lower()
            for requirement in observation.requirements
        }
        shown = [f"{pin.name} {pin.version}" for pin in observation.lock.pins if pin.name in named]
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
        console.print(Text(f"  {altered_in_words(observation.altered)}"), soft_wrap=True)
    if observation.exception is not None and observation.outcome is not Outcome.COMPLETED:
        for frame in observation.exception.frames[-6:]:
            console.print(Text(f"  {frame.file}:{frame.line} in {frame.function}", style="dim"))
        first = observation.exception.message.splitlines()[:1]
        console.print(Text(f"  {observation.exception.name}: {first[0] if first else ''}"))


def altered_in_words(files: tuple[str, ...]) -> str:
    """One sentence on the files of its environment that a run changed."""
    more = f" and {len(files) - _SHOWN_FILES} more" if len(files) > _SHOWN_FILES else ""
    shown = ", ".join(file.rpartition("site-packages/")[2] for file in files[:_SHOWN_FILES])
    return f"altered its environment, which was thrown away: {shown}{more}"


def _described(machine: dict[str, object]) -> str:
    name = machine.get("name") or machine.get("device_name")
    return f" ({name})" if name else ""
