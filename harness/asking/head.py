"""The head of an answer: the two sides, each culprit in one sentence, and how to work around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve

from harness.asking.answer import Answer, Guilty, Status
from harness.asking.boundary import Boundary
from harness.asking.wording import culprit_sentence, lead_of, lines_of, packages_of
from harness.model.culprit import Culprit
from harness.model.text import counted, listed, listed_in_order, sentence_and_table

if TYPE_CHECKING:
    from harness.model.culprit import Finding, Region


def head_of(answer: Answer) -> list[tuple[str, str]]:
    """Return label and text of each row; last good and first bad only if there are not several culprits."""
    if answer.status not in (Status.FOUND, Status.FIXED, Status.INCONCLUSIVE):
        return []
    culprits, boundary = answer.culprits, answer.boundary
    rows: list[tuple[str, str]] = []
    if len(culprits) < 2:
        labels = ("Last bad", "Fixed in") if boundary.is_fix else ("Last good", "First bad")
        absent = f"{boundary.subject} (absent)" if culprits else ""
        rows = [
            (label, f"{subject_of(boundary)} {candidate}" if candidate else absent)
            for label, candidate in zip(labels, boundary.ends, strict=True)
        ]
    if len(culprits) < 2 and len(boundary.suspects) > 1:
        rows.append(("Suspects", listed_in_order((candidate, True) for candidate in boundary.suspects)))
    else:
        rows += [row for culprit in culprits for row in _rows_of(culprit)]
    rows += [(f"{step.replace('_', ' ').capitalize()}", by) for step, by in answer.asked.files.items() if step != "run"]
    is_written = "read_by" in answer.asked.files and answer.constraints
    rows.append(("Workaround", f"write with {_workaround(answer)}" if is_written else _workaround(answer)))
    advice = _advice_of(answer)
    return [*rows, *(("Advice", said if len(advice) == 1 else f"{name}: {said}") for name, said in advice.items())]


def subject_of(boundary: Boundary) -> str:
    """Return what the candidates of a search are candidates of, in words."""
    return boundary.unit if boundary.unit == "Python" else boundary.subject


def _rows_of(culprit: Guilty) -> list[tuple[str, str]]:
    """Return the rows of a culprit: what is proved, and files or lines that are only suspected apart from it."""
    findings = culprit.deeper.findings if culprit.deeper is not None else ()
    proved = tuple(finding for finding in findings if finding.is_proved)
    if culprit.is_proved or not proved:
        return [(_label(culprit), cause_of(culprit))]
    known = evolve(culprit, deeper=Culprit(proved))
    return [(_label(known), cause_of(known)), ("Suspect", f"its change of {_places(findings[-1])}")]


def _places(finding: Finding) -> str:
    """Name the regions of a finding, or its files."""
    return listed([_function_and_lines(region, finding) for region in finding.regions] or finding.files)


def _label(culprit: Guilty) -> str:
    if not culprit.is_proved:
        return "Suspect"
    return "Fix" if culprit.boundary.is_fix else "Culprit"


def _workaround(answer: Answer) -> str:
    """The constraints; between two worlds also whether the newest packages that they allow were run."""
    if not answer.constraints or not answer.ends:
        return answer.constraint
    sure = "a run with it passed" if len(answer.constraints) == 1 else "a run with them passed"
    if answer.failing_at_both:
        sure = (
            "nothing else newly fails with it" if len(answer.constraints) == 1 else "nothing else newly fails with them"
        )
    return f"{answer.constraint} ({sure if answer.constraints_verified else 'not confirmed by a run'})"


def cause_of(culprit: Guilty) -> str:
    """Say in one sentence what the culprit did: "shop 1.2 changed sell (shop/money.py, lines 10-11)"."""
    boundary = culprit.boundary
    did = next((evidence.did for evidence in culprit.evidence if evidence.did), "")
    if culprit.deeper is None:
        if len(boundary.suspects) > 1:
            return f"{boundary.subject}, one of {listed(boundary.suspects)}"
        who = f"{boundary.unit if boundary.unit == 'Python' else culprit.package} {boundary.ends[1] or '(removed)'}"
        along = f" together with {listed(culprit.together_with)}" if culprit.together_with else ""
        return f"{who} {did}{along}".rstrip()
    finest = culprit.deeper.finest
    who = packages_of(finest)
    if finest.commits:
        return f"{who}, commit {listed(commit.described for commit in finest.commits)}"
    if finest.regions:
        where = _places(finest)
        region = finest.regions[0]
        if did and len(finest.regions) == 1 and did.endswith(f".{region.function}"):
            return f"{who} {did} ({region.file}, {lines_of(region, finest)})"
        return f"{who} {did}: {where}" if did else f"{who} changed {where}"
    if did:
        return f"{who} {did}"
    return f"{who} changed {_places(finest)}" if finest.files else who


def _advice_of(answer: Answer) -> dict[str, str]:
    """What the releases themselves say to use instead, by the release."""
    found: dict[str, str] = {}
    for culprit in answer.culprits:
        said = next((evidence.advice for evidence in culprit.evidence if evidence.advice), "")
        if said and not culprit.boundary.is_fix:
            found.setdefault(listed(change.name for change in culprit.packages), said)
    return found


def beyond_head(answer: Answer) -> str:
    """Return what the answer's sentence says besides the two sides and the culprit."""
    rest = answer.sentence
    for lead in (lead_of(answer), lead_of(answer, is_elsewhere=True)):
        rest = rest.removeprefix(lead)
    if answer.culprit is not None:
        rest = rest.removesuffix(culprit_sentence(answer, answer.culprit))
    return rest.strip()


def _function_and_lines(region: Region, finding: Finding) -> str:
    """Name the function of a region, with its file and lines in brackets."""
    lines = lines_of(region, finding)
    return f"{region.function} ({region.file}, {lines})" if region.function else f"{region.file}, {lines}"


def html_of(answer: Answer) -> str:
    """Return the HTML of an answer for a notebook: the head, and the runs folded away; every text is escaped."""
    head = sentence_and_table(answer.sentence, (), tuple(head_of(answer)))
    if not answer.steps:
        return head
    runs = [(step.release, step.verdict.word, step.reason, f"{step.seconds:.1f}") for step in answer.steps]
    table = sentence_and_table("", ("release", "verdict", "reason", "seconds"), runs)
    return f"{head}<details><summary>{counted(len(runs), 'run')}</summary>{table}</details>"
