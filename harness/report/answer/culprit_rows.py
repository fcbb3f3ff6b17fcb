"""The rows of a report about a culprit: its lines, commits and proofs, and each level of the search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.model.text import plain
from harness.report.answer.content import CommitRow, Hunk, LevelRow, ProofRow
from harness.report.answer.phrases import state_of

if TYPE_CHECKING:
    from harness.model.culprit import Culprit, Finding

_DIFF_LINES = 160
_SUSPECT = "Suspect, not proved both ways"


def culprit_fields(culprit: Culprit | None) -> dict[str, Any]:
    """The fields of `ReportContent` that describe the culprit."""
    if culprit is None:
        return {"lines_title": _SUSPECT, "hunks": (), "files": (), "commits": (), "proofs": (), "levels": ()}
    return {
        "lines_title": "What made the difference" if culprit.finest.is_proved else _SUSPECT,
        "hunks": tuple(_hunks(culprit)),
        "files": culprit.finest.files,
        "commits": tuple(_commits(culprit)),
        "replay": culprit.finest.replay.rstrip("\n"),
        "proofs": tuple(_proofs(culprit)),
        "levels": tuple(_level(finding) for finding in culprit.findings),
    }


def _hunks(culprit: Culprit) -> list[Hunk]:
    found = []
    for region in culprit.finest.regions:
        lines = plain(region.diff).rstrip("\n").split("\n")
        if len(lines) > _DIFF_LINES:
            lines = [*lines[:_DIFF_LINES], f" ... {len(lines) - _DIFF_LINES} more lines"]
        found.append(Hunk(region.file, region.function or "module level", "\n".join(lines)))
    return found


def _proofs(culprit: Culprit) -> list[ProofRow]:
    return [
        ProofRow(
            finding.level.value,
            proof.sentence,
            proof.expected.value,
            proof.verdict.value if proof.observation or proof.holds else "not run",
            proof.reason,
            proof.observation.key if proof.observation else "",
            proof.holds,
        )
        for finding in culprit.findings
        for proof in finding.proofs
    ]


def _commits(culprit: Culprit) -> list[CommitRow]:
    return [
        CommitRow(
            commit.sha,
            commit.subject,
            commit.author,
            commit.date,
            commit.link,
            f"#{commit.pull_request}" if commit.pull_request else "",
            commit.pull_request_link,
        )
        for commit in culprit.finest.commits
    ]


def _level(finding: Finding) -> LevelRow:
    what = [f"commit {commit}" for commit in finding.commits]
    what = what or [f"{region.file}, {region.function or 'module level'}" for region in finding.regions]
    what = what or list(finding.files) or [str(change) for change in finding.packages]
    minimal = () if finding.is_minimal else ("not shown that nothing smaller is enough",)
    return LevelRow(
        finding.level.value,
        "; ".join(what),
        state_of(finding),
        finding.candidates,
        finding.runs,
        finding.unresolved,
        (*finding.notes, *minimal),
    )
