"""The report of an answer: its content, built from the stored answer and its runs, and the files that it goes to."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import cattrs
from attrs import evolve

from harness.bisection.answer import Answer, Failure
from harness.bisection.by_culprit import answers_by_culprit
from harness.bisection.observing import only_tests
from harness.bisection.sections import rows_of, sections_of
from harness.bisection.showing import json_of
from harness.bisection.wording import runs_made
from harness.environment import Workspace
from harness.environment.workspace import site_packages
from harness.model import Observation, Repro, Verdict, normalized_name
from harness.model.culprit import Culprit
from harness.model.release import version_order
from harness.model.text import counted
from harness.redact import Private, everywhere, redacted
from harness.report.archive import Archive, StoredAnswer, stored_answer
from harness.report.commands import exact_command, lock_text, required_names, side_command
from harness.report.excerpts import tail, trimmed_traceback
from harness.report.page import Page, range_cell
from harness.report.phrases import (
    certainty,
    facts_of,
    failure_facts,
    how_to_reproduce,
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
_FORMATS = ("md", "html")
_SHOWN_CHANGES = 12
# The columns of the steps, each with how a page shows it.
_COLUMNS = {
    "release": "name",
    "verdict": "verdict",
    "runs": "brief",
    "why": "words",
    "time": "brief",
    "observation": "code",
}


def store_and_report(store: Store, answer: Answer) -> tuple[Path, ...]:
    """Store an answer and write its reports to the results folder; returns their paths.

    An answer without a search over a line has no report. The report of an answer that was known stays as it is. Raises
    `NoSpace`.
    """
    if not answer.steps:
        return ()
    stored = stored_answer(answer, datetime.now(UTC).isoformat())
    reports = tuple(store.root / f"reports/{stored.id}.{suffix}" for suffix in _FORMATS)
    is_known = answer.effort.is_known and all(path.is_file() for path in reports)
    earlier = Archive(store).find(stored.id) if is_known else None
    if earlier is None:
        return write_reports(store, stored)
    Archive(store).put(evolve(earlier, kept=stored.kept))
    return reports


def write_reports(store: Store, stored: StoredAnswer) -> tuple[Path, ...]:
    """Store an answer, replacing its record, and write its reports; returns their paths. Raises `NoSpace`."""
    stored = redacted(stored, Private(store.secrets))
    Archive(store).put(stored)
    return page_of(store, stored).write(store, f"reports/{stored.id}", *_FORMATS)


def page_of(store: Store, stored: StoredAnswer) -> Page:
    """The report of a stored answer, with the logs in this store and without private data."""
    # The history of the user's own project is nobody else's business.
    answer = everywhere(stored.answer, Culprit, lambda culprit: evolve(culprit, introduction=None))
    stored = evolve(stored, answer=answer)
    failing = next((step.observation for step in reversed(answer.steps) if step.verdict is Verdict.BAD), None)
    sides = [side for part in answers_by_culprit(answer) for side in part.sides]
    return report_page(
        stored,
        logs={side.key: store.log(side) for side in sides},
        failing=store.get(failing) if failing else None,
        private=private_of(store),
    )


def repositories_of(stored: StoredAnswer) -> dict[str, str]:
    """Each distribution's repository, from the metadata in the newer side's environment if it still exists."""
    sides = stored.answer.sides
    if not sides or (lock := sides[-1].lock) is None:
        return {}
    environment = Workspace.default().root / "environments" / lock.id
    return repositories_in(environment, [pin.name for pin in lock.pins])


def report_page(
    stored: StoredAnswer,
    *,
    logs: Mapping[str, str] | None = None,
    failing: Observation | None = None,
    private: Private = Private(),  # noqa: B008 - a frozen value
) -> Page:
    """Return the page of a report, without private data.

    `logs` maps observation keys to the output of these runs; `failing` is a run with the bug, for an answer without two
    sides.
    """
    answer = stored.answer
    parts = [evolve(stored, answer=part) for part in answers_by_culprit(answer)]
    contents = [_part(part, logs or {}, failing, is_one_of_many=len(parts) > 1) for part in parts]
    content = {
        "title": title_of(answer),
        "sentence": answer.sentence,
        "head": rows_of(sections_of(answer)[0]),
        "facts": facts_of(stored),
        "parts": contents,
        "shared": sections_of(evolve(answer, failures=_without_culprits(answer)))[1:] if len(parts) > 1 else (),
        "repro_file": f"{stored.repro.name}.py",
        "repro_source": stored.repro.source.rstrip("\n"),
        "not_tried": list(dict.fromkeys(limit for part in contents for limit in part["not_tried"])),
        "footer": f"{runs_made(answer)}; stored {stored.kept[:10]} as {stored.id}",
    }
    culprits = [_record(part.answer, content["sides"]) for part, content in zip(parts, contents, strict=True)]
    record = {**json_of(answer), "id": stored.id, "kept": stored.kept, "culprits": culprits}
    return Page("report", redacted(content, private), redacted(record, private))


def _part(
    stored: StoredAnswer, logs: Mapping[str, str], failing: Observation | None, *, is_one_of_many: bool
) -> dict[str, Any]:
    """What a page says about one culprit, whose part of the answer `stored` has."""
    answer = stored.answer
    sides = _sides(stored, logs, f"requirements-{answer.subject}" if is_one_of_many else "requirements")
    shows_bug = answer.boundary.by_verdict.get(Verdict.BAD) or failing
    head, *sections = sections_of(answer)
    steps = _steps(answer.steps)
    return {
        "title": title_of(answer),
        "certainty": certainty(answer),
        "recipient": recipient_of(answer),  # set if the culprit is not the subject
        "head": rows_of(head),
        "facts": failure_facts(stored),
        "sections": [section for section in sections if not section.is_folded],
        "folded": [section for section in sections if section.is_folded],
        "before": sides[0]["title"] if sides else "before",
        "after": sides[1]["title"] if sides else "after",
        "versions": _versions(stored),
        "traceback_title": f"{answer.subject} {_release_of(answer, shows_bug)}".strip(),
        "traceback": _trace(stored, shows_bug) if shows_bug else "",
        "cells": _cells(answer, steps),
        "steps": steps,
        "columns": _COLUMNS,
        "runs": len(answer.steps),
        "sides": sides,
        "how_to": how_to_reproduce(stored) if sides else [],
        "not_tried": not_tried(answer, shows_bug),
    }


def _record(answer: Answer, sides: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What the JSON report has on one culprit, besides what the JSON of the answer has."""
    return {
        "package": answer.subject,
        "certainty": certainty(answer),
        "recipient": recipient_of(answer),
        "releases": [cattrs.unstructure(release) for release in answer.boundary.candidates],
        "sides": [{name: side[name] for name in _SIDE_RECORD} for side in sides],
    }


def _without_culprits(answer: Answer) -> tuple[Failure, ...]:
    return tuple(failure for failure in answer.failures if not failure.culprits)


def _steps(steps: Iterable[Step]) -> list[dict[str, Any]]:
    """One row for each release in the order of their first runs, with how many runs had its verdict: bad if any was."""
    runs: dict[str, list[Step]] = {}
    for step in steps:
        runs.setdefault(step.release, []).append(step)
    rows = []
    for release, ran in runs.items():
        shown = next((step for step in ran if step.verdict is Verdict.BAD), ran[0])
        alike = sum(step.verdict is shown.verdict for step in ran)
        fresh = [step.seconds for step in ran if not step.cached]
        rows.append(
            {
                "release": release,
                "verdict": shown.verdict,
                "why": shown.reason,
                "runs": f"{alike} of {counted(len(ran), 'run')}" if len(ran) > 1 else "1",
                "time": f"{sum(fresh):.1f} s" if fresh else "known already",
                "observation": shown.observation,
            }
        )
    return rows


def _required(stored: StoredAnswer) -> set[str]:
    question = stored.answer.question
    named = required_names([*question.requirements, *question.holds, *stored.repro.dependencies])
    return named | {stored.answer.subject}


def _versions(stored: StoredAnswer) -> tuple[tuple[str, str, str, str], ...]:
    """The subject, the culprit, the repro's requirements, and the first few of the other changes.

    Each with its versions on both sides ("" if one lacks it) and why it is listed.
    """
    answer = stored.answer
    locks = [side.lock for side in answer.sides if side.lock is not None]
    if len(locks) != 2:
        return ()
    before, after = locks
    changed = {change.name for change in answer.lock_changes}
    culprits = {change.name for culprit in answer.culprits for change in culprit.packages}
    required = _required(stored)
    roles = dict.fromkeys(sorted(changed)[:_SHOWN_CHANGES], "changed")
    roles |= {name: "required, changed" if name in changed else "required" for name in sorted(required)}
    kind = package_kind(answer)
    roles |= dict.fromkeys(sorted(culprits), kind)
    roles[answer.subject] = f"bisected, {kind}" if answer.subject in culprits else "bisected"
    order = sorted(roles, key=lambda name: (name != answer.subject, name not in culprits, name not in required, name))
    rows = [(name, before.version_of(name) or "", after.version_of(name) or "", roles[name]) for name in order]
    return tuple(row for row in rows if row[1] or row[2])


def _release_of(answer: Answer, observation: Observation | None) -> str:
    if observation is None or observation.lock is None:
        return ""
    return observation.lock.version_of(answer.subject) or ""


def _trace(stored: StoredAnswer, observation: Observation) -> str:
    if observation.exception is None:
        return ""
    return trimmed_traceback(observation.exception, stored.about, f"{stored.repro.name}.py")


def _sides(stored: StoredAnswer, logs: Mapping[str, str], lock_name: str) -> tuple[dict[str, Any], ...]:
    """Both sides of the change, or none.

    `command` reproduces one with only uv and the repro. `lock` has requirement lines with hashes; `exact_command` runs
    with exactly these files after they are saved as `lock_file`, whose name begins with `lock_name`.
    """
    answer = stored.answer
    reasons = {step.observation: step.reason for step in answer.steps}
    pinned = _required(stored) | {change.name for change in answer.lock_changes}
    held = required_names(answer.question.holds)
    sides = []
    for verdict, observation in answer.boundary.by_verdict.items():
        lock, raised = observation.lock, observation.exception
        lock_file, repro = f"{lock_name}-{verdict.value}.txt", _repro_of(observation, stored)
        side = {
            "verdict": verdict.value,
            "title": f"{answer.subject} {_release_of(answer, observation)} ({verdict.value})",
            "reason": reasons.get(observation.key, observation.detail),
            "observation": observation.key,
            "command": side_command(observation, lock, pinned, held, repro, answer.signature) if lock else "",
            "exact_command": exact_command(lock, lock_file, repro) if lock else "",
            "lock_file": lock_file,
            "lock": lock_text(lock) if lock else "",
            "log": tail(logs.get(observation.key, "")),
            "metrics": dict(observation.metrics),
            "versions": {pin.name: pin.version for pin in (*lock.pins, *observation.installed)} if lock else {},
            "frames": cattrs.unstructure(raised.frames) if raised else (),
        }
        sides.append(side)
    return tuple(sides)


def _repro_of(observation: Observation, stored: StoredAnswer) -> Repro:
    """What shows a side: only the tests of its culprit, unless it ran all, since their results depend on others."""
    if observation.repro_digest.startswith(stored.repro.digest):
        return stored.repro
    tests = dict.fromkeys(test for failure in stored.answer.failures for test in failure.tests)
    return only_tests(stored.repro, tuple(tests))


def _cells(answer: Answer, steps: list[dict[str, Any]]) -> tuple[dict[str, str], ...]:
    """Return one cell for each candidate between the first and the last that was run."""
    by_release = {step["release"]: step for step in steps}
    candidates = {candidate.version: candidate.uploaded for candidate in answer.boundary.candidates}
    names = list(candidates) if by_release.keys() <= candidates.keys() else sorted(by_release, key=version_order)
    ran = [position for position, name in enumerate(names) if name in by_release]
    cells = []
    for name in names[min(ran, default=0) : max(ran, default=-1) + 1]:
        state = PositionState.UNTRIED if name in answer.suspects else PositionState.EXCLUDED
        text = "not run" if name in answer.suspects else "not run: its verdict can't matter"
        if name in by_release:
            state = PositionState(by_release[name]["verdict"].value)
            text = f"{by_release[name]['verdict'].word} ({by_release[name]['why']})"
        cells.append(range_cell(name, candidates.get(name, ""), state, text))
    return tuple(cells)


def repositories_in(environment: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the repository of each distribution (normalised names) whose installed METADATA names one.

    `environment` is the folder of an environment; missing distributions are left out.
    """
    wanted = set(names)
    if not environment.is_dir():
        return {}
    repositories = {}
    for metadata in sorted(site_packages(environment).glob("*.dist-info/METADATA")):
        name = normalized_name(metadata.parent.name.split("-")[0])
        if name in wanted and (repository := repository_url(metadata.read_text(encoding="utf-8", errors="replace"))):
            repositories[name] = repository
    return repositories
