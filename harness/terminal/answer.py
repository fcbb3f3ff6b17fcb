"""Prints answers and observations, with the commands that repeat each side."""

from __future__ import annotations

import shlex

from rich.table import Table
from rich.text import Text

from harness.asking.answer import Answer, Boundary, Failure, Guilty, Status
from harness.asking.wording import place_of, runs_made
from harness.model import Observation, Outcome, Verdict
from harness.model.culprit import Culprit
from harness.model.release import version_order
from harness.model.text import listed, listed_in_order
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

_SHOWN_FILES = 5
_SHOWN_CHANGES = 12


def print_answer(console: Console, answer: Answer, results: str) -> None:
    """Print what was found, then each failure with its proofs and how to see it again, and what to do next."""
    console.print()
    print_head(console, _head(answer))
    style = {Status.FOUND: "bold red", Status.FIXED: "bold green"}.get(answer.status, "bold yellow")
    print_text(console, answer.sentence, style)
    console.print()
    shown: set[tuple[str, str | None]] = set()
    for failure in answer.failures:
        _print_failure(console, failure, shown)
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
    runs = f"  {runs_made(answer)}; {duration(answer.wall_s)} on {answer.asked.device}; records in {results}"
    print_text(console, runs, "dim")
    if answer.advice:
        print_text(console, f"  {answer.advice}")


def _head(answer: Answer) -> list[tuple[str, str]]:
    """The rows of the head; last good and first bad only if there are not several culprits."""
    if answer.status not in (Status.FOUND, Status.FIXED, Status.INCONCLUSIVE):
        return []
    culprits, boundary = answer.culprits, answer.boundary
    rows: list[tuple[str, str]] = []
    if len(culprits) < 2:
        labels = ("Last bad", "Fixed in") if boundary.is_fix else ("Last good", "First bad")
        absent = f"{boundary.subject} (absent)" if culprits else ""
        rows = [
            (label, f"{_subject(boundary)} {candidate}" if candidate else absent)
            for label, candidate in zip(labels, boundary.ends, strict=True)
        ]
    if len(culprits) < 2 and len(boundary.suspects) > 1:
        rows.append(("Suspects", listed_in_order((candidate, True) for candidate in boundary.suspects)))
    elif len(culprits) > 1 or boundary.subject != answer.asked.subject or answer.culprit is not None:
        rows += [(_label(culprit), _place(culprit)) for culprit in culprits]
    return [*rows, ("Workaround", _workaround(answer))]


def _subject(boundary: Boundary) -> str:
    return boundary.unit if boundary.unit == "Python" else boundary.subject


def _label(culprit: Guilty) -> str:
    if not culprit.is_proved:
        return "Suspect"
    return "The fix" if culprit.boundary.is_fix else "Culprit"


def _place(culprit: Guilty) -> str:
    """The culprit's package and release, and the place of the difference if it is known."""
    boundary = culprit.boundary
    if culprit.deeper is not None:
        return place_of(culprit.deeper.finest)
    if len(boundary.suspects) > 1:
        return f"{boundary.subject}, one of {listed(boundary.suspects)}"
    return f"{_subject(boundary)} {boundary.ends[1] or '(removed)'}"


def _workaround(answer: Answer) -> str:
    """The constraints; between two worlds also whether the newest packages that they allow were run."""
    if not answer.constraints or not answer.ends:
        return answer.constraint
    sure = "a run with them passed" if answer.constraints_verified else "not confirmed by a run"
    return f"{answer.constraint} ({sure})"


def _print_failure(console: Console, failure: Failure, shown: set[tuple[str, str | None]]) -> None:
    """Print one failure with its culprits; the details of those that were `shown` before are not repeated."""
    if failure.signature is not None:
        tests = listed(failure.tests) or "recognised by"
        print_line(console, f"  {tests}: {short_reason(str(failure.signature))}")
    if failure.note:
        print_line(console, Text(f"  {short_reason(failure.note)}", style="yellow"))
    for culprit in failure.culprits:
        _print_proofs(console, culprit)
        found = (culprit.package, culprit.boundary.ends[1])
        if found not in shown:
            shown.add(found)
            _print_details(console, culprit.boundary, culprit.deeper)
    if not failure.culprits and failure.boundary is not None:
        _print_details(console, failure.boundary, None)


def _print_proofs(console: Console, culprit: Guilty) -> None:
    """Print the two sides, each level's proofs (those that levels share only once) and notes, then the evidence."""
    boundary = culprit.boundary
    words = ("bad", "good") if boundary.is_fix else ("good", "bad")
    ends = [f"{end or '(absent)'} is {word}" for end, word in zip(boundary.ends, words, strict=True)]
    _print_proof(console, f"{_subject(boundary)}: {', '.join(ends)}", holds=boundary.is_certain)
    told: set[tuple[str, Verdict]] = set()
    for finding in culprit.deeper.findings if culprit.deeper is not None else ():
        for proof in finding.proofs:
            if (proof.sentence, proof.verdict) not in told:
                told.add((proof.sentence, proof.verdict))
                _print_proof(console, f"{proof.sentence}: {proof.verdict.word}", holds=proof.holds)
        for note in finding.notes:
            print_line(console, Text(f"            {short_reason(note)}", style="dim"))
    for evidence in culprit.evidence:
        print_line(console, Text.assemble(("  evidence  ", "cyan"), short_reason(evidence.text)))


def _print_proof(console: Console, sentence: str, *, holds: bool) -> None:
    mark, style = ("proved", "green") if holds else ("not shown", "yellow")
    print_line(console, Text.assemble((f"  {mark:<9} ", style), sentence))


def _print_details(console: Console, boundary: Boundary, culprit: Culprit | None) -> None:
    """Print what else differs between the two sides, what was skipped, the lines, and how to see both sides again."""
    if boundary.moved:
        culprits = {change.name for change in culprit.packages} if culprit is not None else {boundary.subject}
        changes = sorted(boundary.moved, key=lambda change: change.name not in culprits)
        shown = ", ".join(str(change) for change in changes[:_SHOWN_CHANGES])
        more = f" and {len(changes) - _SHOWN_CHANGES} more" if len(changes) > _SHOWN_CHANGES else ""
        print_line(console, f"  installed differently: {shown}{more}")
    print_skipped(console, _in_order(boundary))
    for drifts, names in _grouped(boundary.drift):
        print_line(console, Text(f"  also changed with {listed(names)}: {'; '.join(drifts)}", style="dim"))
    for files, names in _grouped(boundary.altered):
        print_line(console, Text(f"  {altered_in_words(files)} (with {listed(names)})", style="dim"))
    if culprit is not None:
        _print_lines(console, culprit)
    if boundary.sides:
        console.print(Text("\n  see it again:"))
        for observation in boundary.sides:
            console.print(Text(f"    {again(observation)}"), soft_wrap=True)


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
    """The command that repeats an observation; what a person judged can only be looked at again."""
    if observation.by_hand:
        return f"harness shell {observation.by_hand}"
    return shlex.join(["harness", "probe", "--again", observation.key])


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
