"""A report as one frozen value, which every format renders without further logic, and shortened for an issue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from harness.report.excerpts import AlteredRow
from harness.report.page import Page

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.model.culprit import Commit, Region

_ISSUE_LIMIT = 65_536  # GitHub's limit in characters
_WITH_ROOM = 60_000  # for text that a person adds


@frozen
class VersionRow:
    """The versions of one distribution on both sides; "" if a side lacks it. `role` says why it is listed."""

    package: str
    before: str
    after: str
    role: str = ""


@frozen
class ProofRow:
    """One run of a counterfactual."""

    level: str
    sentence: str
    expected: str
    seen: str
    reason: str
    observation: str
    holds: bool


@frozen
class LevelRow:
    """One level of the search; `state` is proved, shown one way, or suspect."""

    level: str
    found: str
    state: str
    candidates: int
    runs: int
    unresolved: int
    notes: tuple[str, ...] = ()


@frozen
class RangeCell:
    """One release in the picture of the range.

    `state` is good, bad, skip, untried, excluded or left-out; in a history also between-good or between-bad. `href`
    links to the log in the page.
    """

    release: str
    letter: str
    state: str
    title: str
    href: str = ""


@frozen
class StepRow:
    """One release and its verdict. `took` is a duration, or says that the verdict was known already."""

    number: int
    release: str
    verdict: str
    reason: str
    took: str
    observation: str


@frozen
class ReportSide:
    """One side of the change.

    `command` reproduces it with only uv and the repro. `lock` has requirement lines with hashes; `exact_command` runs
    with exactly these files after they are saved as `lock_file`. `log` is the end of the output; `versions` maps each
    installed distribution to its version.
    """

    verdict: str
    title: str
    reason: str
    observation: str
    command: str
    exact_command: str
    lock_file: str
    lock: str
    log: str
    metrics: dict[str, float]
    versions: dict[str, str]
    frames: tuple[dict[str, Any], ...] = ()


@frozen
class ReportContent:
    """All content of a report. Texts are plain, not escaped for any format; empty parts are not rendered.

    `head` has the two sides, the culprits and the workaround, as label and text; `sentence` is the answer in words and
    `certainty` how sure it is; `recipient` is set if the culprit is not the subject;
    `before` and `after` are the headings of the two sides in version order; `facts` are label and text; `replay` is a
    log of the commits that were run, for `git bisect replay`; `left_out` are release and reason, `links` label and
    address; `altered` lists files that runs changed; `not_tried` has the limits of the answer; `record` is the report
    as JSON.
    """

    id: str
    title: str
    sentence: str
    certainty: str
    recipient: str = ""
    head: tuple[tuple[str, str], ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    before: str = "before"
    after: str = "after"
    versions: tuple[VersionRow, ...] = ()
    lines_title: str = ""
    hunks: tuple[Region, ...] = ()
    files: tuple[str, ...] = ()
    commits: tuple[Commit, ...] = ()
    replay: str = ""
    proofs: tuple[ProofRow, ...] = ()
    levels: tuple[LevelRow, ...] = ()
    traceback_title: str = ""
    traceback: str = ""
    cells: tuple[RangeCell, ...] = ()
    steps: tuple[StepRow, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    lock_changes: tuple[str, ...] = ()
    drift: tuple[str, ...] = ()
    altered: tuple[AlteredRow, ...] = ()
    sides: tuple[ReportSide, ...] = ()
    how_to: tuple[str, ...] = ()
    repro_file: str = ""
    repro_source: str = ""
    links: tuple[tuple[str, str], ...] = ()
    not_tried: tuple[str, ...] = ()
    footer: str = ""
    record: dict[str, Any] = field(factory=dict, repr=False)

    @property
    def picture(self) -> str:
        """The range as one letter for each release."""
        return "".join(cell.letter for cell in self.cells)


def render_markdown(content: ReportContent, limit: int = _WITH_ROOM) -> str:
    """Render Markdown for an upstream issue. If it is too long, details and at last the repro are left out."""
    return _shortened(content, limit, {**_DETAILS, "the repro": lambda content: evolve(content, repro_source="")})


def render_issue(content: ReportContent, limit: int = _ISSUE_LIMIT) -> str:
    """Render Markdown that fits into an issue: drops details, but never the answer, its proofs or the repro."""
    return _shortened(content, limit, _DETAILS)


def render_html(content: ReportContent) -> str:
    """Render one HTML file without external resources."""
    return Page("report", content).html()


def render_json(content: ReportContent) -> str:
    """Render JSON (schema 1): the answer with both sides' versions and traceback; NaN and infinities are null."""
    return Page("report", content, content.record).json()


RENDERERS = {"markdown": render_markdown, "html": render_html, "json": render_json}

_DETAILS: dict[str, Callable[[ReportContent], ReportContent]] = {
    "the full locks": lambda content: evolve(content, sides=tuple(evolve(side, lock="") for side in content.sides)),
    "the steps": lambda content: evolve(content, steps=(), levels=()),
    "releases that were not tried": lambda content: evolve(content, left_out=()),
    "the difference of the locks": lambda content: evolve(content, lock_changes=(), drift=()),
    "the files that runs changed": lambda content: evolve(content, altered=()),
    "the traceback": lambda content: evolve(content, traceback=""),
    "the changed lines": lambda content: evolve(content, hunks=()),
    "the table of versions": lambda content: evolve(content, versions=()),
}


def _shortened(content: ReportContent, limit: int, details: dict[str, Callable[[ReportContent], ReportContent]]) -> str:
    """Return Markdown in at most `limit` characters, or longer if dropping all details is not enough.

    The text says what was left out.
    """
    text = Page("report", content).markdown()
    gone: list[str] = []
    rest = dict(details)
    while len(text) > limit and rest:
        without = {name: leave_out(content) for name, leave_out in rest.items()}
        lengths = {name: len(Page("report", one).markdown()) for name, one in without.items()}
        name = min(rest, key=lambda name: lengths[name])
        del rest[name]
        if lengths[name] >= len(Page("report", content).markdown()):
            continue
        content = without[name]
        gone.append(name)
        told = f"Left out for length: {', '.join(gone)}. The HTML report has everything."
        text = Page("report", evolve(content, not_tried=(*content.not_tried, told))).markdown()
    return text
