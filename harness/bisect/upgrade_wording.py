"""The sentences of an answer between two worlds."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from harness.bisect.answer import Status
from harness.bisect.groups import failing_of
from harness.model.observation import WHOLE_RUN
from harness.model.text import listed, one_line
from harness.planning.world import end_words
from harness.request.ends import EndKind

_NO_MODULE = re.compile(r"No module named '([\w.]+)'")
_RAISED = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Exit|Warning)\b")
_SETUPTOOLS = "setuptools<81"  # later releases have no pkg_resources

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.bisect.upgrade_answer import GroupAnswer, PackageCulprit, UpgradeAnswer
    from harness.model import Observation, RaisedException
    from harness.request.ends import End


def sentence_of(answer: UpgradeAnswer) -> str:
    """Return one sentence that answers the question."""
    match answer.status:
        case Status.NO_FAILURE:
            return f"No failure: {answer.command} passes {_end(answer.bad, answer)}."
        case Status.NOT_A_REGRESSION if answer.flaky:
            return f"Only flaky tests newly fail {_end(answer.bad, answer)}: {listed(answer.flaky)}."
        case Status.NOT_A_REGRESSION if answer.good is None:
            return (
                f"No older packages were found with which {answer.command} passes where it fails now: "
                "it may never have worked, or needs something that is not there."
            )
        case Status.NOT_A_REGRESSION if answer.good is not None:
            return (
                f"Nothing that fails {_end(answer.bad, answer)} passes {_end(answer.good, answer)}: "
                f"{listed(answer.failing_at_both) or answer.command} fails at both ends."
            )
        case Status.FOUND:
            return _found(answer)
        case _:
            notes = "; ".join(dict.fromkeys(group.note for group in answer.groups if group.note))
            return f"Not sure which package it is: {notes or 'no culprit could be shown'}."


def advice_on(*runs: Observation) -> str:
    """Advise which missing packages to install; else say how most tests of the first run failed; "" if none did."""
    found = dict.fromkeys(name for run in runs for name in _missing(run))
    if found:
        wanted = [_SETUPTOOLS if name == "pkg_resources" else name for name in found]
        options = " ".join(f"--with '{one}'" if "<" in one else f"--with {one}" for one in wanted)
        return f"Not installed: {listed(found)}. {options} adds what is missing; a package may be called otherwise."
    titles = Counter(f"{one.name}: {one_line(one.message, 200)}".strip(": ") for one in _raised(runs[0]))
    if not titles:
        return ""
    title = titles.most_common(1)[0][0]
    if [test.id for test in runs[0].tests] == [WHOLE_RUN]:
        return f"No test ran, but {title}. Packages of an early day may not run with this Python (--python changes it)."
    return f"Most tests fail by {title}"


def _raised(run: Observation) -> list[RaisedException]:
    raised = [run.exception, *(test.exception for test in run.tests if test.outcome.is_failure)]
    return [one for one in raised if one is not None]


def _missing(run: Observation) -> Iterator[str]:
    """Yield the top-level modules that a run could not import."""
    for raised in _raised(run):
        one: RaisedException | None = raised
        while one is not None:
            is_import = one.name == "ModuleNotFoundError" or "ModuleNotFoundError" in one.message
            named = _NO_MODULE.search(one.message) if is_import else None
            if named is not None and "." not in named[1]:
                yield named[1]
            one = one.cause


def advice_on_command(good: str, bad: str) -> str:
    """Return a sentence that says how a whole command failed at each end."""
    return f"The good end fails by {one_line(good, 200)}; the bad end by {one_line(bad, 200)}"


def last_words(log: str) -> str:
    """Return the last line of a log that starts with an exception, else its last line; "" for an empty log."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return next((line for line in reversed(lines) if _RAISED.match(line)), lines[-1] if lines else "")


def advice_on_limits(limits: Sequence[str]) -> str:
    """Advise how to lift the requirements that hold back newer releases, "" if there are none."""
    if not limits:
        return ""
    told = f"The project's own requirements hold back {listed(limits)}"
    pinned = [text for text in limits if "==" in text]
    others = [re.split(r"[^\w.-]", text, maxsplit=1)[0] for text in limits if "==" not in text]
    ways = ["--unpin lifts exact pins"] if pinned else []
    ways += [f"{' '.join(f'--with {name}' for name in others)} asks for the newest"] if others else []
    return f"{told}: {', '.join(ways)}."


def _end(end: End, answer: UpgradeAnswer) -> str:
    return f"with {answer.subject} {end.text}" if end.kind is EndKind.RELEASE else end_words(end)


def _found(answer: UpgradeAnswer) -> str:
    """`14 tests fail: 9 since numpy 2.0.0 (np.asfarray was removed), 3 since pandas 2.2.0, 2 are flaky`."""
    alike: dict[object, list[GroupAnswer]] = {}
    for group in answer.groups:
        releases = frozenset((one.package, one.boundary.first_bad) for one in group.culprits if not one.is_companion)
        alike.setdefault(releases or group.note, []).append(group)
    told = [(max(map(_since, groups), key=len), sum(len(one.tests) for one in groups)) for groups in alike.values()]
    count = sum(number for _, number in told)
    if not count:
        return f"{answer.command} fails {' and '.join(since for since, _ in told)}."
    parts = [f"{number} {since}" if len(told) > 1 else since for since, number in told]
    if answer.flaky:
        parts.append(f"{len(answer.flaky)} are flaky")
    subject = "1 test fails" if count == 1 else f"{count} tests fail"
    return f"{subject}{': ' if len(parts) > 1 else ' '}{', '.join(parts)}."


def _since(group: GroupAnswer) -> str:
    if not group.culprits:
        return f"for a reason that was not found ({group.note})"
    main = [culprit for culprit in group.culprits if not culprit.is_companion]
    joined: dict[str, None] = {}
    told: set[str] = set()
    for culprit in main:
        if culprit.package in told:
            continue
        told |= {culprit.package, *culprit.together_with}
        joined[_culprit(culprit, main, group.tests)] = None
    return f"since {' and '.join(joined)}"


def _culprit(culprit: PackageCulprit, others: list[PackageCulprit], tests: tuple[str, ...]) -> str:
    boundary = culprit.boundary
    if boundary.first_bad is None:
        text = f"{culprit.package} {boundary.last_good} is no longer installed"
    elif len(boundary.suspects) > 1:
        text = f"one of {culprit.package} {', '.join(boundary.suspects)}"
    else:
        text = f"{culprit.package} {boundary.first_bad}"
    if culprit.together_with:
        names = {other.package: other.boundary.first_bad or "" for other in others}
        along = [f"{name} {names.get(name, '')}".strip() for name in culprit.together_with]
        text += f" together with {' and '.join(along)}"
    notes = [evidence.short for evidence in culprit.evidence[:1] if evidence.short]
    if boundary.yanked:
        notes.append(f"not run because yanked: {listed(boundary.yanked)}")
    if boundary.since is not None:
        failing = failing_of(boundary.sides[-1], tests) if boundary.sides else tests
        some = f", {len(failing)} of them" if len(failing) < len(tests) else ""
        notes.append(f"with today's message since {boundary.since}; before{some}: {one_line(boundary.message, 120)}")
    return f"{text} ({'; '.join(notes)})" if notes else text
