"""The content of a report, as one frozen value, which every format renders without further logic."""

from __future__ import annotations

from typing import Any

from attrs import field, frozen

from harness.report.altered import AlteredRow


@frozen
class VersionRow:
    """The versions of one distribution on both sides; "" if a side lacks it. `role` says why it is listed."""

    package: str
    before: str
    after: str
    role: str = ""


@frozen
class Hunk:
    """One changed region of the culprit: its place and its unified diff."""

    file: str
    place: str
    diff: str


@frozen
class CommitRow:
    """The commit that made the difference; links are "" if unknown."""

    sha: str
    subject: str
    author: str
    date: str
    link: str = ""
    pull_request: str = ""
    pull_request_link: str = ""


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

    `sentence` is the answer and `certainty` how sure it is; `recipient` is set if the culprit is not the subject;
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
    facts: tuple[tuple[str, str], ...] = ()
    before: str = "before"
    after: str = "after"
    versions: tuple[VersionRow, ...] = ()
    lines_title: str = ""
    hunks: tuple[Hunk, ...] = ()
    files: tuple[str, ...] = ()
    commits: tuple[CommitRow, ...] = ()
    replay: str = ""
    proofs: tuple[ProofRow, ...] = ()
    levels: tuple[LevelRow, ...] = ()
    traceback_title: str = ""
    traceback: str = ""
    cells: tuple[RangeCell, ...] = ()
    picture: str = ""
    steps: tuple[StepRow, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    lock_changes: tuple[str, ...] = ()
    drift: tuple[str, ...] = ()
    altered: tuple[AlteredRow, ...] = ()
    sides: tuple[ReportSide, ...] = ()
    how_to: tuple[str, ...] = ()
    repro_name: str = ""
    repro_file: str = ""
    repro_source: str = ""
    links: tuple[tuple[str, str], ...] = ()
    not_tried: tuple[str, ...] = ()
    footer: str = ""
    record: dict[str, Any] = field(factory=dict, repr=False)
