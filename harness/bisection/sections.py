"""An answer in sections of rows: the terminal, reports, notebooks and watches all show the same ones.

Each shows them as it can: a screen leaves out long rows and shows the first of many items, a page folds away sections.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import frozen

from harness.bisection.answer import Answer, Failure
from harness.bisection.wording import head_of, state_of, subject_of
from harness.model import Verdict
from harness.model.boundary import Boundary, Counts
from harness.model.culprit import Culprit, Finding, Introduction
from harness.model.release import version_order
from harness.model.text import counted, in_environment, listed, listed_in_order, plain, sentence_and_table, short_reason

_ON_SCREEN, _ON_PAGE = 6, 200  # of many items
_LINES_ON_SCREEN, _LINES_ON_PAGE = 40, 160  # of a diff


@frozen
class Row:
    """A label and what there is to say about it.

    `tone` is "good", "bad", "skip", "other" or "dim"; `link` is the web page of what is named, `code` are lines below.
    `detail` is for pages, and so is the whole row with `is_long`.
    """

    label: str
    items: tuple[str, ...]
    tone: str = ""
    detail: str = ""
    link: str = ""
    code: str = ""
    is_long: bool = False

    @property
    def text(self) -> str:
        """The first items, for a screen."""
        return listed(self.items, _ON_SCREEN)

    @property
    def whole(self) -> str:
        """All items, for a page."""
        return listed(self.items, _ON_PAGE)


@frozen
class Section:
    """Rows about one thing; a page folds away the section with `is_folded`."""

    title: str
    rows: tuple[Row, ...]
    is_folded: bool = False


def sections_of(answer: Answer) -> tuple[Section, ...]:
    """Return the head of an answer and its other sections that have rows; nothing is told twice."""
    head = Section("Answer", tuple(Row(label, (text,)) for label, text in head_of(answer) if text))
    sections: list[Section] = []
    shown: set[object] = set()
    for failure in answer.failures:
        sections += _of_failure(failure, answer, shown)
    sections.append(Section("The search", tuple(_of_search(answer))))
    return (head, *(section for section in sections if section.rows))


def html_of(answer: Answer) -> str:
    """Return the HTML of an answer for a notebook: its head, the rest folded away; every text is escaped."""
    head, *others = sections_of(answer)
    tables = [(section.title, sentence_and_table("", (), rows_of(section))) for section in others]
    runs = [(step.release, step.verdict.word, step.reason, f"{step.seconds:.1f}") for step in answer.steps]
    if runs:
        columns = ("release", "verdict", "reason", "seconds")
        tables.append((counted(len(runs), "run"), sentence_and_table("", columns, runs)))
    folded = (f"<details><summary>{title}</summary>{table}</details>" for title, table in tables)
    return sentence_and_table(answer.sentence, (), rows_of(head)) + "".join(folded)


def rows_of(section: Section) -> list[tuple[str, str]]:
    """Return label and text of each row, such as for a table."""
    return [(row.label, row.whole or row.code) for row in section.rows]


def _of_failure(failure: Failure, answer: Answer, shown: set[object]) -> Iterator[Section]:
    """Yield the sections of one failure; `shown` grows by what they tell."""
    rows = [Row("tests", failure.tests)] if failure.tests else []
    if failure.signature is not None and failure.tests:
        rows.append(Row("error", (short_reason(str(failure.signature)),)))
    if failure.note and failure.note not in answer.sentence:
        rows.append(Row("note", (short_reason(failure.note),), "skip"))
    if failure.fault:
        rows.append(Row("internal error", (failure.fault,), "skip"))
    for culprit in failure.culprits:
        boundary = culprit.boundary
        release = culprit.release
        is_new = release not in shown
        if is_new or culprit.findings or not boundary.is_certain:
            rows += _proofs(culprit)
        texts = [evidence.text.partition("; the release")[0] for evidence in culprit.evidence]
        rows += [Row("evidence", (text,), "other") for text in dict.fromkeys(texts) if text not in shown]
        yield Section("Proof", tuple(rows))
        rows = []
        shown |= {release, *texts}
        if is_new:
            yield from _introduction(culprit.introduction) if culprit.introduction is not None else ()
            yield from _below(culprit.findings) if culprit.findings else ()
            yield from _differences(boundary, {change.name for change in culprit.packages})
    if rows:
        yield Section("Failure", tuple(rows))
    if not failure.culprits and failure.boundary is not None:
        yield from _differences(failure.boundary, {failure.boundary.subject})


def _proofs(culprit: Culprit) -> Iterator[Row]:
    """Yield the proofs of all levels, or the two sides of the release without any, and the limits of the finest level.

    A screen has those of the finest level, and of the finest one that is proved.
    """
    boundary = culprit.boundary
    findings = culprit.findings
    brief = [*[finding for finding in findings if finding.is_proved][-1:], *findings[-1:]]
    rows: dict[object, Row] = {}
    for finding in findings:
        for proof in finding.proofs:
            verdict_word = proof.verdict.word if proof.observation is not None or proof.is_expected else "not run"
            if proof.is_expected and not proof.holds:
                verdict_word += f", but only with {counted(proof.besides, 'other change')}"
            run = proof.observation.key if proof.observation is not None else ""
            detail = "; ".join(filter(None, (finding.level.value, proof.reason, run)))
            is_long = not any(finding is other for other in brief)
            row = _proof(f"{proof.sentence}: {verdict_word}", holds=proof.holds, detail=detail, is_long=is_long)
            rows[proof.sentence, proof.verdict, proof.holds] = row
    if all(row.is_long for row in rows.values()):
        sides = [(Verdict.GOOD, boundary.certainty.good_side), (Verdict.BAD, boundary.certainty.bad_side)]
        for end, (verdict, counts) in zip(boundary.ends, sides[::-1] if boundary.is_fix else sides, strict=True):
            text = f"{subject_of(boundary)} {end or '(absent)'}: {_runs(verdict, counts)}"
            rows[text] = _proof(
                text, holds=len(boundary.sides) == 2 and (boundary.is_certain or bool(boundary.untried))
            )
    yield from rows.values()
    yield from (Row("note", (short_reason(note),), "dim") for finding in findings[-1:] for note in finding.notes)
    if culprit.fault:
        yield Row("internal error", (culprit.fault,), "skip")


def _proof(text: str, *, holds: bool, detail: str = "", is_long: bool = False) -> Row:
    label, tone = ("proved", "good") if holds else ("not shown", "skip")
    return Row(label, (text,), tone, detail, is_long=is_long)


def _runs(verdict: Verdict, counts: Counts | None) -> str:
    """The verdict on one side, and in how many runs it was seen if there were several."""
    if counts is None or counts.runs < 2:
        return verdict.word
    shown = counts.bad if verdict is Verdict.BAD else counts.runs - counts.bad
    return f"{verdict.word} in {shown} of {counts.runs} runs"


def _introduction(introduction: Introduction) -> Iterator[Section]:
    """Yield what the commit of the user's repository changed."""
    if introduction.commit is not None:
        rows = (
            Row(introduction.file, (introduction.commit.described,), code="\n".join(map(plain, introduction.lines))),
        )
        yield Section("In your repository", rows)


def _below(findings: tuple[Finding, ...]) -> Iterator[Section]:
    """Yield the commits and the lines of the finest level, and how each level was found."""
    finest = findings[-1]
    for commit in finest.commits:
        request = f"#{commit.pull_request}" if commit.pull_request else ""
        rows = (
            Row("commit", (commit.sha,), link=commit.link),
            Row("message", (commit.subject,)),
            Row("author", (f"{commit.author}, {commit.date}",)),
            *((Row("pull request", (request,), link=commit.pull_request_link),) if request else ()),
        )
        yield Section("Commit", rows)
    title = "What made the difference" if finest.is_proved else "Suspect, not proved both ways"
    yield Section(title, tuple(_lines(finest)) or tuple(Row("file", (file,), is_long=True) for file in finest.files))
    yield Section("From package to lines", tuple(map(_level, findings)), is_folded=True)


def _lines(finding: Finding) -> Iterator[Row]:
    """Yield a row with the diff of each region; a screen has room for a few lines."""
    diffs = [plain(region.diff).rstrip("\n").split("\n") for region in finding.regions]
    is_long = sum(map(len, diffs)) > _LINES_ON_SCREEN
    for region, lines in zip(finding.regions, diffs, strict=True):
        cut = [f" ... {len(lines) - _LINES_ON_PAGE} more lines"] if len(lines) > _LINES_ON_PAGE else []
        code = "\n".join([*lines[:_LINES_ON_PAGE], *cut])
        yield Row(f"{region.file}, {region.function or 'module level'}", (), code=code, is_long=is_long)


def _level(finding: Finding) -> Row:
    what: Iterable[str] = [f"commit {commit}" for commit in finding.commits]
    what = what or [f"{region.file}, {region.function or 'module level'}" for region in finding.regions]
    limits = [*finding.notes, *(() if finding.is_minimal else ("a smaller change may be enough",))]
    parts = (
        listed(what or finding.files or map(str, finding.packages)),
        state_of(finding),
        *limits,
        f"{counted(finding.candidates, 'candidate')}, {counted(finding.runs, 'run')}, {finding.unresolved} not judged",
    )
    return Row(finding.level.value, ("; ".join(parts),), is_long=True)


def _differences(boundary: Boundary, named: set[str]) -> Iterator[Section]:
    """Yield what else differs between the two sides, and the releases that were skipped or left out."""
    changes = tuple(str(change) for change in boundary.moved if change.name not in named)
    reasons: dict[str, str | None] = {}
    for step in boundary.steps:
        reasons[step.release] = reasons.get(step.release) or (step.reason if step.verdict is Verdict.SKIP else None)
    altered = {release: tuple(map(in_environment, files)) for release, files in boundary.altered.items()}
    rows = [
        *([Row("also installed differently", changes)] if changes else []),
        *skipped_rows(sorted(reasons.items(), key=lambda item: version_order(item[0]))),
        *(Row(f"also changed with {listed(names)}", lines, "dim") for lines, names in _grouped(boundary.drift)),
        *(
            Row(f"{listed(names)} changed files of the environment, which was thrown away", files, "dim")
            for files, names in _grouped(altered)
        ),
    ]
    yield Section("What else differs", tuple(rows), is_folded=True)
    left_out = sorted(boundary.left_out.items(), key=lambda item: version_order(item[0]))
    rows = [Row(release, (reason,), is_long=True) for release, reason in left_out]
    yield Section("Releases that were left out", tuple(rows), is_folded=True)


def _grouped(lines_of: Mapping[str, tuple[str, ...]]) -> list[tuple[tuple[str, ...], list[str]]]:
    """Group candidates with the same drift, or the same changed files."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, lines in lines_of.items():
        groups.setdefault(lines, []).append(name)
    return list(groups.items())


def skipped_rows(releases: Iterable[tuple[str, str | None]]) -> Iterator[Row]:
    """Yield the skipped releases (reason not None) of a range; releases with the same reason share a row."""
    rows = [
        (release, None if reason is None else short_reason(reason.replace(f"=={release}", "==VERSION")))
        for release, reason in releases
    ]
    for shared in dict.fromkeys(reason for _, reason in rows if reason is not None):
        # listed_in_order needs the other releases, too: they interrupt a sequence.
        line = listed_in_order((release, reason == shared) for release, reason in rows)
        yield Row("skipped", (f"{line}: {shared}",), "skip")


def _of_search(answer: Answer) -> Iterator[Row]:
    """Yield the choices that were made, and the tests and packages that are not part of the answer."""
    yield from (Row("", (short_reason(note),), "dim") for note in answer.notes)
    along = tuple(
        companion.constraint or companion.subject for culprit in answer.culprits for companion in culprit.companions
    )
    apart = {
        "fail at both ends": answer.comparison.failing_at_both,
        "passed at the good end, did not run at the bad end": answer.comparison.not_run,
        "flaky": answer.comparison.flaky,
    }
    yield from (Row(label, tests, "dim") for label, tests in apart.items() if tests)
    pages = {
        "held back alongside": along,
        "without the project's own": answer.comparison.lifted,
        "older packages tried": (f"back to {answer.comparison.back_to}",) if answer.comparison.back_to else (),
        "differ between the ends": tuple(map(str, answer.comparison.changes)),
    }
    yield from (Row(label, items, is_long=True) for label, items in pages.items() if items)
