"""The report of an answer: its content, built from the stored answer and its runs, and the files it is kept in."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import cattrs
from attrs import evolve

from harness.bisection.answer import Answer
from harness.bisection.sections import rows_of, sections_of
from harness.bisection.showing import json_of
from harness.bisection.wording import runs_made
from harness.environment import Workspace
from harness.environment.workspace import site_packages
from harness.model import Observation, Verdict, normalized_name
from harness.model.release import version_order
from harness.model.text import counted
from harness.redact import Private, redacted
from harness.report.archive import Archive, KeptAnswer, kept_answer
from harness.report.commands import asked_for, exact_command, lock_text, side_command
from harness.report.excerpts import tail, trimmed_traceback
from harness.report.page import Page, range_cell
from harness.report.phrases import (
    certainty,
    facts_of,
    how_to_see_it,
    not_tried,
    package_kind,
    recipient_of,
    title_of,
)
from harness.report.privacy import private_of
from harness.repository.git import repository_url
from harness.search import PositionState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from harness.model.verdict import Step
    from harness.store import Store


_SIDE_RECORD = ("verdict", "reason", "observation", "command", "lock", "metrics", "versions", "frames")
_KEPT = ("md", "html")
_SHOWN_CHANGES = 12


def keep_and_report(store: Store, answer: Answer) -> tuple[Path, ...]:
    """Store an answer and write a report for each culprit to the results folder; returns their paths.

    An answer without a search over a line has no report. The report of an answer that was known stays as it is. Raises
    `NoSpace`.
    """
    now = datetime.now(UTC).isoformat()
    paths: list[Path] = []
    for part in (part for part in answer.parts() if part.steps):
        kept = kept_answer(part, now)
        there = [store.root / f"reports/{kept.id}.{suffix}" for suffix in _KEPT]
        known = (
            Archive(store).known(kept.id) if answer.effort.is_known and all(path.is_file() for path in there) else None
        )
        if known is not None:
            Archive(store).put(evolve(known, kept=now))
        paths += there if known is not None else write_reports(store, kept)
    return tuple(paths)


def write_reports(store: Store, kept: KeptAnswer) -> tuple[Path, ...]:
    """Store an answer, replacing its record, and write its reports; returns their paths. Raises `NoSpace`."""
    kept = redacted(kept, Private(store.secrets))
    Archive(store).put(kept)
    return page_of(store, kept).write(store, f"reports/{kept.id}", *_KEPT)


def page_of(store: Store, kept: KeptAnswer) -> Page:
    """The report of a stored answer, with the logs in this store and without private data."""
    answer = kept.answer
    failing = next((step.observation for step in reversed(answer.steps) if step.verdict is Verdict.BAD), None)
    return report_page(
        kept,
        logs={side.key: store.log(side) for side in answer.sides},
        failing=store.get(failing) if failing else None,
        private=private_of(store),
    )


def repositories_of(kept: KeptAnswer) -> dict[str, str]:
    """Each distribution's repository, from the metadata in the newer side's environment if it still exists."""
    sides = kept.answer.sides
    if not sides or (lock := sides[-1].lock) is None:
        return {}
    environment = Workspace.default().root / "environments" / lock.id
    return repositories_in(environment, [pin.name for pin in lock.pins])


def report_page(
    kept: KeptAnswer,
    *,
    logs: Mapping[str, str] | None = None,
    failing: Observation | None = None,
    private: Private = Private(),  # noqa: B008 - a frozen value
) -> Page:
    """Return the page of a report, without private data.

    `logs` maps observation keys to the output of these runs; `failing` is a run with the bug, for an answer without two
    sides.
    """
    answer = kept.answer
    sides = _sides(kept, logs or {})
    shows_bug = answer.boundary.by_verdict.get(Verdict.BAD) or failing
    head, *sections = sections_of(answer)
    steps = _steps(answer.steps)
    content = {
        "title": title_of(answer),
        "sentence": answer.sentence,
        "certainty": certainty(answer),
        "recipient": recipient_of(answer),  # set if the culprit is not the subject
        "head": rows_of(head),
        "facts": facts_of(kept),
        "sections": [section for section in sections if not section.is_folded],
        "folded": [section for section in sections if section.is_folded],
        "before": sides[0]["title"] if sides else "before",
        "after": sides[1]["title"] if sides else "after",
        "versions": _versions(kept),
        "traceback_title": f"{answer.subject} {_release_of(answer, shows_bug)}".strip(),
        "traceback": _trace(kept, shows_bug) if shows_bug else "",
        "cells": _cells(answer, steps),
        "steps": steps,
        "runs": len(answer.steps),
        "sides": sides,
        "how_to": how_to_see_it(kept) if sides else [],
        "repro_file": f"{kept.repro.name}.py",
        "repro_source": kept.repro.source.rstrip("\n"),
        "not_tried": not_tried(answer, shows_bug),
        "footer": f"{runs_made(answer)}; stored {kept.kept[:10]} as {kept.id}",
    }
    return Page("report", redacted(content, private), redacted(_record(kept, sides), private))


def _record(kept: KeptAnswer, sides: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The JSON report: the answer and the fields that only reports have."""
    return {
        **json_of(kept.answer),
        "id": kept.id,
        "kept": kept.kept,
        "certainty": certainty(kept.answer),
        "recipient": recipient_of(kept.answer),
        "releases": [cattrs.unstructure(release) for release in kept.answer.boundary.candidates],
        "sides": [{name: side[name] for name in _SIDE_RECORD} for side in sides],
    }


def _steps(steps: Iterable[Step]) -> list[dict[str, Any]]:
    """One row for each release in the order of their first runs, with how many runs had its verdict: bad if any was."""
    runs: dict[str, list[Step]] = {}
    for step in steps:
        runs.setdefault(step.release, []).append(step)
    rows = []
    for release, ran in runs.items():
        shown = next((step for step in ran if step.verdict is Verdict.BAD), ran[0])
        alike = sum(step.verdict is shown.verdict for step in ran)
        now = [step.seconds for step in ran if not step.cached]
        rows.append(
            {
                "release": release,
                "verdict": shown.verdict,
                "why": shown.reason,
                "runs": f"{alike} of {counted(len(ran), 'run')}" if len(ran) > 1 else "",
                "time": f"{sum(now):.1f} s" if now else "known already",
                "observation": shown.observation,
            }
        )
    return rows


def _asked(kept: KeptAnswer) -> set[str]:
    asked = kept.answer.asked
    named = asked_for([*asked.requirements, *asked.holds, *kept.repro.dependencies])
    return named | {kept.answer.subject}


def _versions(kept: KeptAnswer) -> tuple[tuple[str, str, str, str], ...]:
    """The subject, the culprit, the repro's requirements, and the first few of the other changes.

    Each with its versions on both sides ("" if one lacks it) and why it is listed.
    """
    answer = kept.answer
    locks = [side.lock for side in answer.sides if side.lock is not None]
    if len(locks) != 2:
        return ()
    before, after = locks
    changed = {change.name for change in answer.lock_changes}
    culprits = {change.name for change in answer.findings[-1].packages} if answer.findings else set()
    asked = _asked(kept)
    roles = dict.fromkeys(sorted(changed)[:_SHOWN_CHANGES], "changed")
    roles |= {name: "required, changed" if name in changed else "required" for name in sorted(asked)}
    kind = package_kind(answer)
    roles |= dict.fromkeys(sorted(culprits), kind)
    roles[answer.subject] = f"bisected, {kind}" if answer.subject in culprits else "bisected"
    order = sorted(roles, key=lambda name: (name != answer.subject, name not in culprits, name not in asked, name))
    rows = [(name, before.version_of(name) or "", after.version_of(name) or "", roles[name]) for name in order]
    return tuple(row for row in rows if row[1] or row[2])


def _release_of(answer: Answer, observation: Observation | None) -> str:
    if observation is None or observation.lock is None:
        return ""
    return observation.lock.version_of(answer.subject) or ""


def _trace(kept: KeptAnswer, observation: Observation) -> str:
    if observation.exception is None:
        return ""
    return trimmed_traceback(observation.exception, kept.about, f"{kept.repro.name}.py")


def _sides(kept: KeptAnswer, logs: Mapping[str, str]) -> tuple[dict[str, Any], ...]:
    """Both sides of the change, or none.

    `command` reproduces one with only uv and the repro. `lock` has requirement lines with hashes; `exact_command` runs
    with exactly these files after they are saved as `lock_file`.
    """
    answer = kept.answer
    reasons = {step.observation: step.reason for step in answer.steps}
    pinned = _asked(kept) | {change.name for change in answer.lock_changes}
    held = asked_for(answer.asked.holds)
    found = []
    for verdict, observation in answer.boundary.by_verdict.items():
        lock, raised = observation.lock, observation.exception
        lock_file = f"requirements-{verdict.value}.txt"
        side = {
            "verdict": verdict.value,
            "title": f"{answer.subject} {_release_of(answer, observation)} ({verdict.value})",
            "reason": reasons.get(observation.key, observation.detail),
            "observation": observation.key,
            "command": side_command(observation, lock, pinned, held, kept.repro, answer.signature) if lock else "",
            "exact_command": exact_command(lock, lock_file, kept.repro) if lock else "",
            "lock_file": lock_file,
            "lock": lock_text(lock) if lock else "",
            "log": tail(logs.get(observation.key, "")),
            "metrics": dict(observation.metrics),
            "versions": {pin.name: pin.version for pin in (*lock.pins, *observation.installed)} if lock else {},
            "frames": cattrs.unstructure(raised.frames) if raised else (),
        }
        found.append(side)
    return tuple(found)


def _cells(answer: Answer, steps: list[dict[str, Any]]) -> tuple[dict[str, str], ...]:
    """Return one cell for each candidate between the first and the last that was run."""
    seen = {step["release"]: step for step in steps}
    candidates = {one.version: one.uploaded for one in answer.boundary.candidates}
    names = list(candidates) if seen.keys() <= candidates.keys() else sorted(seen, key=version_order)
    ran = [position for position, name in enumerate(names) if name in seen]
    cells = []
    for name in names[min(ran, default=0) : max(ran, default=-1) + 1]:
        state = PositionState.UNTRIED if name in answer.suspects else PositionState.EXCLUDED
        told = "not run" if name in answer.suspects else "not run: its verdict can't matter"
        if name in seen:
            state = PositionState(seen[name]["verdict"].value)
            told = f"{seen[name]['verdict'].word} ({seen[name]['why']})"
        cells.append(range_cell(name, candidates.get(name, ""), state, told))
    return tuple(cells)


def repositories_in(environment: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the repository of each distribution (normalised names) whose installed METADATA names one.

    `environment` is the folder of an environment; missing distributions are left out.
    """
    wanted = set(names)
    if not environment.is_dir():
        return {}
    found = {}
    for metadata in sorted(site_packages(environment).glob("*.dist-info/METADATA")):
        name = normalized_name(metadata.parent.name.split("-")[0])
        if name in wanted and (repository := repository_url(metadata.read_text(encoding="utf-8", errors="replace"))):
            found[name] = repository
    return found
