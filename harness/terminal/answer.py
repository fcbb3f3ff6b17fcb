"""Prints answers and observations, with the commands that repeat each side."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from harness.bisect.answer import Answer, Status
from harness.bisect.wording import place_of
from harness.model import Observation, Outcome, Verdict
from harness.model.culprit import Culprit
from harness.model.release import version_order
from harness.model.words import counted, listed, listed_in_order
from harness.report.commands import asked_for
from harness.terminal.console import (
    STYLE,
    Console,
    duration,
    print_head,
    print_line,
    print_skipped,
    print_text,
    short_reason,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harness.bisect.upgrade_answer import GroupAnswer, PackageCulprit, UpgradeAnswer

_SHOWN_FILES = 5
_SHOWN_CHANGES = 12


def print_answer(console: Console, answer: Answer, results: str) -> None:
    """Print the outcome, its proofs, the lines, what was skipped, and how to repeat it."""
    _print_top(console, _head(answer), answer)
    _print_proofs(console, answer)
    if answer.signature is not None:
        print_line(console, f"  recognised by: {short_reason(str(answer.signature))}")
    if answer.lock_changes:
        culprits = {change.name for change in answer.culprit.packages} if answer.culprit else set()
        changes = sorted(answer.lock_changes, key=lambda change: change.name not in culprits)
        shown = ", ".join(str(change) for change in changes[:_SHOWN_CHANGES])
        more = f" and {len(changes) - _SHOWN_CHANGES} more" if len(changes) > _SHOWN_CHANGES else ""
        print_line(console, f"  installed differently: {shown}{more}")
    print_skipped(console, _in_order(answer))
    for drifts, releases in _grouped(answer.drift):
        print_line(console, Text(f"  also changed with {listed(releases)}: {'; '.join(drifts)}", style="dim"))
    for files, releases in _grouped(answer.altered):
        print_line(console, Text(f"  {altered_in_words(files)} (with {listed(releases)})", style="dim"))
    if answer.culprit is not None:
        _print_lines(console, answer.culprit)
    if answer.sides:
        console.print(Text("\n  see it again:"))
        for observation in answer.sides:
            console.print(Text(f"    {again(observation)}"), soft_wrap=True)
    told = f"{counted(answer.probes, 'release')} run, {sum(step.cached for step in answer.steps)} known already"
    if answer.culprit is not None:
        told += f"; {counted(answer.culprit_probes, 'run')} to find the culprit"
    _print_end(console, told, answer, results)


def print_upgrade(answer: UpgradeAnswer, results: str) -> None:
    """Print the outcome, each group with its culprits and proofs, and how to repeat it."""
    console = Console()
    _print_top(console, _upgrade_head(answer), answer)
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
    _print_end(console, counted(answer.probes, "run"), answer, results)


def _print_top(console: Console, head: Iterable[tuple[str, str]], answer: Answer | UpgradeAnswer) -> None:
    console.print()
    print_head(console, head)
    style = {Status.FOUND: "bold red", Status.FIXED: "bold green"}.get(answer.status, "bold yellow")
    print_text(console, answer.sentence, style)
    console.print()


def _print_end(console: Console, runs: str, answer: Answer | UpgradeAnswer, results: str) -> None:
    told = f"  {runs}; {duration(answer.wall_s)} on {answer.device}; records in {results}"
    print_text(console, told, "dim")
    if answer.advice:
        print_text(console, f"  {answer.advice}")


def _upgrade_head(answer: UpgradeAnswer) -> list[tuple[str, str]]:
    """The rows of the head; last good and first bad only if there is one culprit."""
    culprits = [culprit for culprit in answer.culprits if not culprit.is_companion]
    rows: list[tuple[str, str]] = []
    if len(culprits) == 1:
        boundary = culprits[0].boundary
        rows = [
            ("Last good", f"{boundary.package} {boundary.last_good or '(absent)'}"),
            ("First bad", f"{boundary.package} {boundary.first_bad or '(absent)'}"),
        ]
    rows += [("Culprit" if culprit.is_proved else "Suspect", _place_of_upgrade(culprit)) for culprit in culprits]
    sure = "a run with them passed" if answer.constraints_verified else "not confirmed by a run"
    rows.append(("Workaround", f"{' '.join(answer.constraints)} ({sure})" if answer.constraints else ""))
    return rows


def _place_of_upgrade(culprit: PackageCulprit) -> str:
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


def print_observation(console: Console, observation: Observation, verdict: Verdict | None, reason: str) -> None:
    """Print one observation: the verdict or outcome, metrics, changed files and the traceback."""
    if verdict is None:
        headline = Text(
            f"{observation.outcome.value}: {observation.detail}" if observation.detail else observation.outcome.value
        )
    else:
        headline = Text.assemble((f"{verdict.word} ", f"bold {STYLE[verdict]}"), reason)
    print_text(console, headline)
    table = Table.grid(padding=(0, 2))
    table.add_row("repro", observation.repro)
    table.add_row("outcome", observation.outcome.value)
    if verdict is not None and observation.detail not in ("", reason):
        table.add_row("detail", observation.detail)
    table.add_row("device", observation.device.value + _described(observation.machine))
    if observation.lock is not None:
        named = asked_for(observation.requirements)
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
        print_text(console, f"  {altered_in_words(observation.altered)}")
    if observation.exception is not None and observation.outcome is not Outcome.COMPLETED:
        for frame in observation.exception.frames[-6:]:
            print_text(console, f"  {frame.file}:{frame.line} in {frame.function}", "dim")
        first = observation.exception.message.splitlines()[:1]
        print_text(console, f"  {observation.exception.name}: {first[0] if first else ''}")


def altered_in_words(files: tuple[str, ...]) -> str:
    """One sentence about the files that a run changed in its environment."""
    more = f" and {len(files) - _SHOWN_FILES} more" if len(files) > _SHOWN_FILES else ""
    shown = ", ".join(file.rpartition("site-packages/")[2] for file in files[:_SHOWN_FILES])
    return f"changed files of its environment, which was thrown away: {shown}{more}"


def _described(machine: dict[str, object]) -> str:
    name = machine.get("name") or machine.get("device_name")
    return f" ({name})" if name else ""


def _head(answer: Answer) -> list[tuple[str, str]]:
    """The rows for an answer about one project's releases."""
    if answer.status not in (Status.FOUND, Status.FIXED, Status.INCONCLUSIVE):
        return []
    if answer.status is Status.FIXED:
        ends = [("Last bad", _named(answer, answer.last_bad)), ("Fixed in", _named(answer, answer.first_good))]
    else:
        ends = [("Last good", _named(answer, answer.last_good)), ("First bad", _named(answer, answer.first_bad))]
    suspects = listed_in_order((release, True) for release in answer.suspects) if len(answer.suspects) > 1 else ""
    return [*ends, ("Suspects", suspects), _culprit(answer), ("Workaround", answer.constraint)]


def _named(answer: Answer, release: str | None) -> str:
    return f"{answer.subject} {release}" if release else ""


def _culprit(answer: Answer) -> tuple[str, str]:
    """The label and text for the finest culprit; it is a suspect if it is not proved."""
    if answer.culprit is None:
        return "Culprit", ""
    finest = answer.culprit.finest
    label = "Suspect" if not finest.is_proved else "The fix" if answer.status is Status.FIXED else "Culprit"
    return label, place_of(finest)


def _in_order(answer: Answer) -> Iterator[tuple[str, str | None]]:
    """The releases that were run, the oldest first, each with the reason why it was skipped or None."""
    reasons: dict[str, str | None] = {}
    for step in answer.steps:
        skipped = step.reason if step.verdict is Verdict.SKIP else None
        reasons[step.release] = reasons.get(step.release) or skipped
    return iter(sorted(reasons.items(), key=lambda row: version_order(row[0])))


def _grouped(drift: dict[str, tuple[str, ...]]) -> list[tuple[tuple[str, ...], list[str]]]:
    """Group releases with the same drift, or the same changed files."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for release, told in drift.items():
        groups.setdefault(told, []).append(release)
    return list(groups.items())


def _print_proofs(console: Console, answer: Answer) -> None:
    """Print each level's proofs (those that levels share only once) and notes, then the evidence."""
    told: set[tuple[str, Verdict]] = set()
    for finding in answer.culprit.findings if answer.culprit is not None else ():
        for proof in finding.proofs:
            if (proof.sentence, proof.verdict) in told:
                continue
            told.add((proof.sentence, proof.verdict))
            mark, style = ("proved", "green") if proof.holds else ("not shown", "yellow")
            print_line(console, Text.assemble((f"  {mark:<9} ", style), f"{proof.sentence}: {proof.verdict.word}"))
        for note in finding.notes:
            print_line(console, Text(f"            {short_reason(note)}", style="dim"))
    for evidence in answer.evidence:
        print_line(console, Text.assemble(("  evidence  ", "cyan"), short_reason(evidence.text)))


def _print_lines(console: Console, culprit: Culprit) -> None:
    """Print the commits and lines of the finest level."""
    for commit in culprit.finest.commits:
        console.print(Text.assemble(("\n  commit    ", "bold"), f"{commit.sha}"))
        request = f"  pull request #{commit.pull_request} {commit.pull_request_link}" if commit.pull_request else ""
        for line in (commit.subject, f"{commit.author}, {commit.date}{request}".rstrip(), commit.link):
            if line:
                print_text(console, f"            {line}")
    for region in culprit.finest.regions:
        console.print()
        print_text(console, f"  {region.file}, {region.function or 'module level'}", "bold")
        for line in region.diff.splitlines():
            style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "dim")
            print_line(console, Text(f"    {line}", style=style))


def again(observation: Observation) -> str:
    """The command that repeats an observation."""
    return shlex.join(["harness", "probe", "--again", observation.key])
