"""The rows of a report, and its formats: HTML, JSON, and Markdown shortened for an issue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from harness.report.page import Page

if TYPE_CHECKING:
    from collections.abc import Callable

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


# What a text that is too long leaves out, by its name.
_DETAILS: dict[str, dict[str, Any]] = {
    "the full locks": {"locks": False},
    "the steps": {"steps": (), "levels": ()},
    "releases that were not tried": {"left_out": ()},
    "the difference of the locks": {"lock_changes": (), "drift": ()},
    "the files that runs changed": {"altered": ()},
    "the traceback": {"traceback": ""},
    "the changed lines": {"hunks": ()},
    "the table of versions": {"versions": ()},
}


def render_markdown(page: Page, limit: int = _WITH_ROOM) -> str:
    """Render Markdown for an upstream issue. If it is too long, details and at last the repro are left out."""
    return _shortened(page, limit, {**_DETAILS, "the repro": {"repro_source": ""}})


def render_issue(page: Page, limit: int = _ISSUE_LIMIT) -> str:
    """Render Markdown that fits into an issue: drops details, but never the answer, its proofs or the repro."""
    return _shortened(page, limit, _DETAILS)


RENDERERS: dict[str, Callable[[Page], str]] = {"markdown": render_markdown, "html": Page.html, "json": Page.json}


def _shortened(page: Page, limit: int, details: dict[str, dict[str, Any]]) -> str:
    """Return Markdown in at most `limit` characters, or longer if dropping all details is not enough.

    The text says what was left out.
    """
    text = page.markdown()
    gone: list[str] = []
    rest = dict(details)
    while len(text) > limit and rest:
        without = {name: evolve(page, content={**page.content, **empty}) for name, empty in rest.items()}
        lengths = {name: len(one.markdown()) for name, one in without.items()}
        name = min(rest, key=lambda name: lengths[name])
        del rest[name]
        if lengths[name] >= len(page.markdown()):
            continue
        page = without[name]
        gone.append(name)
        told = f"Left out for length: {', '.join(gone)}. The HTML report has everything."
        text = evolve(page, content={**page.content, "not_tried": (*page.content["not_tried"], told)}).markdown()
    return text
