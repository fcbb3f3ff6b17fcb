"""The commands `harness bisect`, `harness probe`, `harness history` and `harness results` as functions::

    import harness
    answer = harness.bisect("transformers", repro="whisper_lora_checkpointing")
    answer.first_bad, answer.culprits

Each returns the answer that the command prints; a notebook shows it as a table. Probes whose observations are in the
results folder don't run again. The errors raised are those of `harness.errors`, with the `message` and `hint` that the
command line prints: `UserMistake` and its subclasses for wrong arguments, `NoNetwork` and `NoSpace` for this machine.
An argument of a wrong type raises a `UserMistake` that names it.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from attrs import evolve

from harness.arguments import check_kind, check_known
from harness.bisection import ask as asking
from harness.bisection.showing import ShownAnswer
from harness.errors import UserMistake
from harness.events import SILENT, Reporter
from harness.question.commands import ChosenProject
from harness.question.repros import chosen_repro, required_python
from harness.question.request import Policy, PolicyOptions, Request
from harness.question.single import Probed, executed, prepared_probe
from harness.report.answer import store_and_report
from harness.session import local_session, open_session
from harness.settings import Settings
from harness.store import Store

if TYPE_CHECKING:
    from collections.abc import Collection

    import pandas as pd

    from harness.arguments import Option
    from harness.bisection.answer import Answer
    from harness.bisection.history import History
    from harness.bisection.history_scan import HistoryRange
    from harness.probing.judge import Person


def ask(request: Request, *, settings: Settings | None = None, reporter: Reporter | None = None) -> ShownAnswer:
    """Answer a question of any kind, and write reports to the results folder: the function behind `harness bisect`.

    Raises `BadRepro`, `UnknownProject`, `UnknownRelease`, `UserMistake`, `NoWorkers`, `NoNetwork`, `NoSpace`, and
    `Interrupted` on Ctrl-C.
    """
    check_kind("ask()", request, Request, "a Request")
    with _reporting(reporter) as shown:
        return ShownAnswer.of(reported_answer(request, _checked(settings), shown)[0])


def _checked(settings: Settings | None) -> Settings:
    check_kind("settings=...", settings, (Settings, type(None)), "a Settings")
    return settings or Settings()


def _reporting(reporter: Reporter | None) -> contextlib.AbstractContextManager[Reporter]:
    """The reporter of a call: the one that is given, else one that prints progress in a notebook, and nothing else."""
    if reporter is not None:
        return contextlib.nullcontext(reporter)
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is None:
        return contextlib.nullcontext(SILENT)
    # Imported only here: a script draws nothing.
    from harness.terminal.console import Console
    from harness.terminal.live import reporting

    return reporting(Console(file=sys.stdout, force_jupyter=False), quiet=False)


def reported_answer(
    request: Request,
    settings: Settings,
    reporter: Reporter,
    typed: Collection[Option] = (),
    person: Person | None = None,
) -> tuple[Answer, tuple[Path, ...]]:
    """Return an answer and the reports that were written; `typed` and `person` are those of `harness.bisection.ask`."""
    answer = asking.ask(request, settings, reporter, typed, person)
    return answer, store_and_report(Store.opened(settings.results, settings.pass_env), answer)


def bisect(  # noqa: PLR0913 - the arguments are the options of the command
    subject: str | None = None,
    *,
    repro: str | None = None,
    run: str | None = None,
    good: str | None = None,
    bad: str | None = None,
    depth: str | None = None,
    project: str | Path | None = None,
    settings: Settings | None = None,
    reporter: Reporter | None = None,
    **policy: Unpack[PolicyOptions],
) -> ShownAnswer:
    """Return what broke a repro or a command, with its culprits; the arguments are those of `harness bisect`.

    `subject` is the package to look at, None to find it. What runs is a `repro` (a name or a path; default: the repro
    that names the subject) or the command `run` in a copy of its `project`. `good` and `bad` are ends of any kind, by
    default those of the repro; `depth` is how deep to go. `policy` are fields of `Policy`, such as `find_fix`,
    `confirm` and `flaky`. A notebook shows progress without a `reporter`. Raises the same errors as `ask`.
    """
    check_known("bisect()", policy, PolicyOptions.__annotations__)
    check_kind("bisect(project=...)", project, (str, Path, type(None)), "a folder")
    chosen = ChosenProject(folder=Path(project) if project is not None else None)
    request = Request(subject, repro, run, good, bad, depth, Policy(**policy), chosen)
    return ask(request, settings=settings, reporter=reporter)


class HistoryOptions(TypedDict, total=False):
    """The keyword arguments of `history` that say which releases run."""

    max_gap: int
    prereleases: bool
    made: bool


def history(
    subject: str,
    *,
    repro: str | None = None,
    run: str | None = None,
    since: str | None = None,
    until: str | None = None,
    settings: Settings | None = None,
    reporter: Reporter | None = None,
    **options: Unpack[HistoryOptions],
) -> History:
    """Return every window of releases of `subject` in which a repro was broken; write pages to the results folder.

    `since` and `until` are the oldest and newest version, by default the repro's older bound and the newest release.
    `options` may have `max_gap` (of that many neighbouring releases at least one is run), `prereleases` and `made`.
    Raises the same errors as `bisect`.
    """
    from harness.bisection.history_scan import HistoryRange

    check_known("history()", options, HistoryOptions.__annotations__)
    wanted = HistoryRange(since, until, options.get("max_gap"))
    policy = Policy(prereleases=options.get("prereleases", False), made=options.get("made", False))
    request = Request(subject, repro, run, policy=policy)
    with _reporting(reporter) as shown:
        return reported_history(request, wanted, _checked(settings), shown)[0]


def reported_history(
    request: Request, wanted: HistoryRange, settings: Settings, reporter: Reporter
) -> tuple[History, tuple[Path, ...]]:
    """Return a history and the pages that were written: the function behind `harness history`."""
    # Imported only here: an answer that is known needs no search.
    from harness.bisection import history_scan as scan
    from harness.report.history import store_history_report

    required = required_python(request.repro, request.run, request.subject)
    settings = settings.with_index_of(request.subject)
    with open_session(settings, reporter, requires_python=required) as session:
        session, question = asking.looked_up(session, request)
        result = scan.ask(session, question, wanted)
        return result, store_history_report(session.store, result)


def probe(
    repro: str,
    *requirements: str,
    fresh: bool = False,
    settings: Settings | None = None,
    reporter: Reporter | None = None,
) -> Probed:
    """Run a repro (a name or a path) once with these requirements, such as "transformers==4.53.0".

    With `fresh` it runs even if the store has the answer. Raises the same errors as `bisect`. If the environment can't
    be made or the run fails, that is the `Outcome` of the observation, not an exception.
    """
    check_kind("probe()", repro, (str, Path), "a name or a path")
    settings = _checked(settings)
    settings = evolve(settings, with_=(*settings.with_, *requirements))
    chosen = chosen_repro(os.fspath(repro), None, None, settings.params, settings.timeout)
    with _reporting(reporter) as shown:
        session = local_session(settings, shown, requires_python=chosen.requires_python)
        return executed(session, prepared_probe(session, chosen, fresh=fresh))


def results(folder: str | Path | None = None) -> pd.DataFrame:
    """Return the observations of a results folder as a table, one row each, the oldest first.

    `folder` defaults to that of `Settings`. Among the columns are the key, times in seconds, memory in
    MiB, and one for each parameter, metric and installed distribution. Raises `UserMistake` if there is no such folder,
    or no pandas.
    """
    check_kind("results()", folder, (str, Path, type(None)), "a folder")
    path = Path(folder or Settings().results)
    if folder is not None and not path.is_dir():
        raise UserMistake(f"there is no folder of results at {path}", hint="harness bisect and harness probe make one")
    try:
        import pandas as pd  # which takes a while to import
    except ImportError as error:
        raise UserMistake("results() needs pandas", hint="pip install pandas") from error
    return pd.DataFrame(Store.opened(path).rows())
