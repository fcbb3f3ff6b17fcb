"""Tells mistakes of the user: a repro that fails wherever it runs, as no bug does, and a misspelled package."""

from __future__ import annotations

import difflib
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from harness.asking.answer import Answer, Status
from harness.errors import UnknownProject, UserMistake
from harness.model import normalized_name
from harness.model.signature import last_exception
from harness.request.repros import similar_package

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.model import Observation, RaisedException
    from harness.planning.inquiry import Inquiry
    from harness.store import Store

_MODULE = re.compile(r"No module named '(?P<name>\w+)'")
_NAME = re.compile(r"cannot import name '(?P<name>\w+)' from '(?P<module>[\w.]+)'")
_FIXTURE = re.compile(r"fixture '(?P<name>\w+)' not found")


@contextmanager
def names_meant(inquiry: Inquiry) -> Iterator[None]:
    """Say which package was probably meant where the index has no project of a name.

    Raises `UnknownProject` again, with a name that is required or is the subject of some repro.
    """
    try:
        yield
    except UnknownProject as error:
        close = similar_package(error.project, (*inquiry.repro.dependencies, *inquiry.with_))
        if close in (None, normalized_name(error.project)):
            raise
        raise UnknownProject(error.project, hint=f"did you mean {close}?") from error


def refuse_own_mistake(answer: Answer, store: Store) -> None:
    """Raise `UserMistake` if all runs of an answer failed by the same misspelled import, or a fixture that is missing.

    One run does not show that: a release may have removed the module or the plugin.
    """
    if answer.status not in (Status.NOT_A_REGRESSION, Status.NOT_FIXED, Status.INCONCLUSIVE):
        return
    keys = dict.fromkeys(step.observation for step in answer.steps)
    runs = answer.ends or [run for key in keys if (run := store.get(key)) is not None]
    reasons = [_reasons(run, store.log(run)) for run in runs]
    if len(runs) < 2 or not all(reasons) or len(set().union(*reasons)) != 1:
        return
    (reason,) = reasons[0]
    raise UserMistake(
        f"this is a mistake in the repro, not a bug: {reason}, in each of {len(runs)} runs",
        hint=_hint(reason, [pin.name for run in runs if run.lock is not None for pin in run.lock.pins]),
    )


def _reasons(run: Observation, log: str) -> set[str]:
    """The mistakes by which a run failed; empty if some failure has another reason."""
    if run.mistake:
        return {run.mistake}
    failed = [test.exception for test in run.tests if test.outcome.is_failure]
    raised = failed or [run.exception or last_exception(log)]
    found = [next(_mistakes(one), "") if one is not None else "" for one in raised]
    return set(found) if all(found) else set()


def _mistakes(raised: RaisedException) -> Iterator[str]:
    for one in raised.chain():
        for pattern in (_MODULE, _NAME, _FIXTURE):
            if match := pattern.search(one.message):
                yield match[0]


def _hint(reason: str, installed: Sequence[str]) -> str:
    """What to do: the name that is probably meant, or the package to add."""
    if match := _FIXTURE.search(reason):
        return f"define the fixture {match['name']}, or add the plugin that has it: --with PLUGIN"
    if match := _NAME.search(reason):
        return f"check the spelling: {match['module']} has no {match['name']} in any release that was tried"
    name = _MODULE.search(reason)
    if name is None:
        return ""
    close = difflib.get_close_matches(name["name"], sorted(set(installed)), n=1, cutoff=0.7)
    meant = f"did you mean {close[0]}? " if close else ""
    return f"{meant}--with PACKAGE adds a package that is missing"
