"""Builds the content of a report from an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cattrs

from harness.bisect.answer import Answer
from harness.model import Lock, Observation, Verdict
from harness.model.release import version_order
from harness.model.text import counted, plain
from harness.redact import Private, redacted
from harness.report.altered import altered_rows
from harness.report.answer.commands import asked_for, exact_command, side_command
from harness.report.answer.content import ReportContent, ReportSide, StepRow, VersionRow
from harness.report.answer.culprit_rows import culprit_fields
from harness.report.answer.phrases import (
    certainty,
    facts_of,
    how_to_see_it,
    not_tried,
    package_kind,
    recipient_of,
    title_of,
)
from harness.report.answer.picture import cells_of
from harness.report.answer.traces import trimmed_traceback
from harness.report.links import compare_link
from harness.report.logs import tail

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.report.answer.archive import KeptAnswer

_SHOWN_CHANGES = 12


def make_content(
    kept: KeptAnswer,
    *,
    logs: Mapping[str, str] | None = None,
    failing: Observation | None = None,
    repositories: Mapping[str, str] | None = None,
    private: Private = Private(),  # noqa: B008 - a frozen value
) -> ReportContent:
    """Return the content of a report, without private data.

    `logs` maps observation keys to the output of these runs; `failing` is a run with the bug, for an answer without two
    sides; `repositories` maps distributions to the repositories that their metadata name.
    """
    answer = kept.answer
    sides = _sides(kept, logs or {})
    shows_bug = _with_the_bug(answer) or failing
    cells = cells_of(kept)
    content = ReportContent(
        id=kept.id,
        title=title_of(answer),
        sentence=answer.sentence,
        certainty=certainty(answer),
        recipient=recipient_of(answer),
        facts=tuple(facts_of(kept)),
        before=sides[0].title if sides else "before",
        after=sides[1].title if len(sides) == 2 else "after",
        versions=_versions(kept),
        **culprit_fields(answer.culprit),
        **_traceback_fields(kept, shows_bug),
        cells=cells,
        picture="".join(cell.letter for cell in cells),
        steps=tuple(_steps(answer)),
        left_out=tuple(sorted(answer.left_out.items(), key=lambda pair: version_order(pair[0]))),
        lock_changes=tuple(str(change) for change in answer.lock_changes),
        drift=tuple(f"{release}: {'; '.join(told)}" for release, told in answer.drift.items()),
        altered=altered_rows(answer.altered),
        sides=sides,
        how_to=tuple(how_to_see_it(kept)) if sides else (),
        repro_name=answer.repro,
        repro_file=f"{kept.repro.name}.py" if kept.repro.source else "",
        repro_source=kept.repro.source.rstrip("\n"),
        links=tuple(_links(answer, repositories or {})),
        not_tried=tuple(not_tried(answer, shows_bug)),
        footer=_footer(kept),
        record=_record(kept, sides),
    )
    return redacted(content, private)  # type: ignore[no-any-return]


def _traceback_fields(kept: KeptAnswer, shows_bug: Observation | None) -> dict[str, Any]:
    """The fields of `ReportContent` that show the traceback of a run with the bug."""
    trace = _trace(kept, shows_bug) if shows_bug else ""
    if not trace:
        return {"traceback_title": "", "traceback": ""}
    return {
        "traceback_title": f"{kept.answer.subject} {_release_of(kept.answer, shows_bug)}".strip(),
        "traceback": trace,
    }


def _record(kept: KeptAnswer, sides: tuple[ReportSide, ...]) -> dict[str, Any]:
    """The JSON report: the answer and the fields that only reports have."""
    return {
        **kept.answer.as_json(),
        "id": kept.id,
        "kept": kept.kept,
        "certainty": certainty(kept.answer),
        "recipient": recipient_of(kept.answer),
        "releases": [cattrs.unstructure(release) for release in kept.releases],
        "sides": [_side_record(side) for side in sides],
    }


def _locks(answer: Answer) -> tuple[Lock | None, Lock | None]:
    locks = [side.lock for side in answer.sides]
    return (locks[0], locks[1]) if len(locks) == 2 else (None, None)


def _asked(kept: KeptAnswer) -> set[str]:
    named = asked_for([*kept.requirements, *kept.holds, *kept.repro.dependencies])
    return named | {kept.answer.subject}


def _footer(kept: KeptAnswer) -> str:
    answer = kept.answer
    known = sum(step.cached for step in answer.steps)
    culprit = f"; {answer.culprit_probes} runs to find the culprit" if answer.culprit_probes else ""
    return (
        f"{counted(answer.probes, 'release')} run, {known} known before{culprit}; stored {kept.kept[:10]} as {kept.id}"
    )


def _versions(kept: KeptAnswer) -> tuple[VersionRow, ...]:
    """The rows for the subject, the culprit, the repro's requirements, and the first few of the other changes."""
    answer = kept.answer
    before, after = _locks(answer)
    if before is None or after is None:
        return ()
    changed = {change.name for change in answer.lock_changes}
    culprits = {change.name for change in answer.culprit.packages} if answer.culprit else set()
    asked = _asked(kept)
    roles = dict.fromkeys(sorted(changed)[:_SHOWN_CHANGES], "changed")
    roles |= {name: "required, changed" if name in changed else "required" for name in sorted(asked)}
    kind = package_kind(answer)
    roles |= dict.fromkeys(sorted(culprits), kind)
    roles[answer.subject] = f"bisected, {kind}" if answer.subject in culprits else "bisected"
    order = sorted(roles, key=lambda name: (name != answer.subject, name not in culprits, name not in asked, name))
    rows = [
        VersionRow(name, before.version_of(name) or "", after.version_of(name) or "", roles[name]) for name in order
    ]
    return tuple(row for row in rows if row.before or row.after)


def _steps(answer: Answer) -> list[StepRow]:
    return [
        StepRow(
            number,
            step.release + (f", run {step.attempt + 1}" if step.attempt else ""),
            step.verdict.value,
            step.reason,
            "known already" if step.cached else f"{step.seconds:.1f} s",
            step.observation,
        )
        for number, step in enumerate(answer.steps, 1)
    ]


def _verdicts(answer: Answer) -> tuple[Verdict, Verdict]:
    is_fix = answer.last_bad is not None or answer.first_good is not None
    return (Verdict.BAD, Verdict.GOOD) if is_fix else (Verdict.GOOD, Verdict.BAD)


def _with_the_bug(answer: Answer) -> Observation | None:
    if len(answer.sides) != 2:
        return None
    return answer.sides[_verdicts(answer).index(Verdict.BAD)]


def _release_of(answer: Answer, observation: Observation | None) -> str:
    if observation is None or observation.lock is None:
        return ""
    return observation.lock.version_of(answer.subject) or ""


def _trace(kept: KeptAnswer, observation: Observation) -> str:
    if observation.exception is None:
        return ""
    culprits = {change.name for change in kept.answer.culprit.packages} if kept.answer.culprit else set()
    names = culprits | {kept.answer.subject}
    return plain(trimmed_traceback(observation.exception, names, f"{kept.repro.name}.py"))


def _sides(kept: KeptAnswer, logs: Mapping[str, str]) -> tuple[ReportSide, ...]:
    answer = kept.answer
    if len(answer.sides) != 2:
        return ()
    reasons = {step.observation: step.reason for step in answer.steps}
    pinned = _asked(kept) | {change.name for change in answer.lock_changes}
    found = []
    for verdict, observation in zip(_verdicts(answer), answer.sides, strict=True):
        lock = observation.lock
        lock_file = f"requirements-{verdict.value}.txt"
        found.append(
            ReportSide(
                verdict=verdict.value,
                title=f"{answer.subject} {_release_of(answer, observation)} ({verdict.value})",
                reason=reasons.get(observation.key, observation.detail),
                observation=observation.key,
                command=side_command(observation, lock, pinned, asked_for(kept.holds), kept.repro, answer.signature)
                if lock
                else "",
                exact_command=exact_command(lock, lock_file, kept.repro) if lock else "",
                lock_file=lock_file,
                lock=lock.as_requirements().rstrip("\n") if lock else "",
                log=tail(logs.get(observation.key, "")),
                metrics=dict(observation.metrics),
                versions={pin.name: pin.version for pin in lock.pins} if lock else {},
                frames=tuple(
                    cattrs.unstructure(frame)
                    for frame in (observation.exception.frames if observation.exception else ())
                ),
            )
        )
    return tuple(found)


def _side_record(side: ReportSide) -> dict[str, Any]:
    record: dict[str, Any] = cattrs.unstructure(side)
    return {name: record[name] for name in record if name not in ("lock_file", "exact_command", "log", "title")}


def _links(answer: Answer, repositories: Mapping[str, str]) -> list[tuple[str, str]]:
    changes = {change.name: change for change in answer.lock_changes if change.name == answer.subject}
    if answer.culprit is not None:
        changes |= {change.name: change for change in answer.culprit.packages}
    return [
        (f"{change.name} {change.before} to {change.after}", address)
        for change in changes.values()
        if (address := compare_link(change, repositories))
    ]
