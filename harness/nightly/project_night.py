"""The result of one night of `harness watch`, its report and its issue. Pure."""

from __future__ import annotations

import enum
import shlex
from typing import TYPE_CHECKING, Any

from attrs import asdict, field, frozen

from harness.nightly.tracker import Action, ActionKind, Issue
from harness.report.page import fence, paragraph, span

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SHOWN = 10
_MOST = 60_000  # GitHub's limit for an issue is 65,536 characters


class NightStatus(enum.StrEnum):
    """How a night ended."""

    PASSES = "passes"  # no test fails that passed before
    BROKEN = "broken"  # tests fail that passed with older packages
    NOT_PACKAGES = "not-packages"  # tests fail that passed with exactly the same packages
    UNKNOWN = "unknown"  # tests fail, and no packages are known with which they passed

    @property
    def exit_code(self) -> int:
        """0: nothing new broke, 1: an upgrade broke tests, 3: not sure."""
        return {NightStatus.PASSES: 0, NightStatus.BROKEN: 1}.get(self, 3)


@frozen
class ProjectNight:
    """One night. `name` tells several watches of one repository apart; `green` is the last green date or "".

    `answer` is the output of `harness bisect --json`, empty if no bisection was needed.
    """

    name: str
    command: str
    date: str
    status: NightStatus
    sentence: str
    green: str = ""
    constraints: tuple[str, ...] = ()
    answer: Mapping[str, Any] = field(factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the night as it is stored (schema 1)."""
        return {"schema": 1, **asdict(self, recurse=False), "status": self.status.value, "answer": dict(self.answer)}

    @property
    def title(self) -> str:
        """The title of the issue, at most 200 characters."""
        return f"{self.name}: {self.sentence.rstrip('.')}"[:200]


def marker(name: str) -> str:
    """Return the marker that identifies the issue of a watch."""
    return f"<!-- harness-watch: {name} -->"


def report_of(night: ProjectNight) -> str:
    """Return the report in Markdown: what broke, since which release, what to pin, and how to reproduce it."""
    found = f"Found by `harness watch` on {night.date} with the newest packages of that day."
    lines = [f"**{paragraph(night.sentence)}**", "", found]
    if night.green:
        lines[-1] += f" The tests last passed on {night.green}."
    for group in night.answer.get("groups", ()):
        lines += ["", *_group(group)]
    if night.constraints:
        shown = night.answer.get("constraints_verified")
        sure = "a run confirmed that the tests pass with these" if shown else "not confirmed by a run"
        lines += ["", f"Workaround ({sure}):", "", fence("\n".join(night.constraints))]
    for key, label in (("flaky", "Flaky"), ("failing_at_both", "Already failing before")):
        if tests := list(night.answer.get(key) or ()):
            lines += ["", f"{label}: {', '.join([*map(span, tests[:_SHOWN]), *_more(tests)])}"]
    if changes := night.answer.get("lock_changes"):
        lines += ["", "<details><summary>All packages that changed</summary>", "", "| package | before | now |"]
        lines += ["|---|---|---|", *map(_row, changes), "", "</details>"]
    lines += ["", "To reproduce it, in a checkout of this project:", "", fence(_command(night))]
    return "\n".join(lines) + "\n"


def issue_actions(night: ProjectNight, issues: Iterable[Issue]) -> tuple[Action, ...]:
    """Return the actions that bring the tracker up to date: one open issue while tests are broken, else none.

    An inconclusive night changes nothing.
    """
    mine = sorted((one for one in issues if marker(night.name) in one.body and one.is_open), key=lambda one: one.number)
    if night.status is NightStatus.PASSES:
        return tuple(Action(ActionKind.CLOSE, one.title, one.number) for one in mine)
    if night.status is not NightStatus.BROKEN:
        return ()
    body = f"{marker(night.name)}\n\n{report_of(night)}"
    if len(body) > _MOST:
        body = f"{body[:_MOST]}\n\n… truncated: the full report is in the state folder of the watch.\n"
    if not mine:
        return (Action(ActionKind.OPEN, night.title, body=body),)
    first, *others = mine
    found = [Action(ActionKind.CLOSE, one.title, one.number) for one in others]
    if first.title != night.title or first.body.replace("\r\n", "\n").strip() != body.strip():
        found.insert(0, Action(ActionKind.UPDATE, night.title, first.number, body))
    return tuple(found)


def _group(group: Mapping[str, Any]) -> list[str]:
    tests = list(group.get("tests") or ())
    signature = group.get("signature") or {}
    seen = ": ".join(str(signature[key]) for key in ("exception", "message") if signature.get(key))
    count = f"{len(tests)} test{'s' if len(tests) > 1 else ''}" if tests else "The command"
    lines = [f"### {count}: {span(seen or 'failed')}", ""]
    for culprit in group.get("culprits", ()):
        proved = "proved by running both" if culprit.get("proved") else "not proved"
        before, after = culprit.get("last_good") or "absent", culprit.get("first_bad") or "absent"
        lines.append(f"- **{paragraph(culprit['package'])}**: {before} is good, {after} is bad ({proved})")
        evidence = (
            one.get("text") or one.get("sentence") or one.get("name") or "" for one in culprit.get("evidence", ())
        )
        lines += [f"  - {paragraph(text)}" for text in evidence]
    if not group.get("culprits"):
        lines.append(paragraph(f"No culprit was found. {group.get('note') or ''}"))
    return [*lines, "", *(f"- {span(test)}" for test in tests[:_SHOWN]), *(f"- {text}" for text in _more(tests))]


def _row(change: Mapping[str, Any]) -> str:
    return f"| {paragraph(change['name'])} | {change.get('before') or '-'} | {change.get('after') or '-'} |"


def _more(tests: list[str]) -> list[str]:
    return [f"and {len(tests) - _SHOWN} more"] if len(tests) > _SHOWN else []


def _command(night: ProjectNight) -> str:
    words = ["harness", "bisect", "--run", night.command]
    return shlex.join([*words, *(["--good", night.green] if night.green else []), "--bad", night.date])
