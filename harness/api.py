"""The commands `harness bisect`, `harness probe`, `harness history` and `harness results` as functions::

    import harness
    answer = harness.bisect("transformers", repro="whisper_lora_checkpointing")
    answer.first_bad, answer.culprit

Each returns the answer that the command prints; a notebook shows it as a table. Probes whose observations are in the
results folder don't run again. The errors raised are those of `harness.errors`, with the `message` and `hint` that the
command line prints: `UserMistake` and its subclasses for wrong arguments, `NoNetwork` and `NoSpace` for this machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve

from harness.bisect import investigate
from harness.events import SILENT
from harness.history import scan
from harness.history.scan import Range
from harness.model.culprit import Level
from harness.planning.single import executed, prepared_probe
from harness.report.answer.keeping import keep_and_report
from harness.report.history.keeping import keep_history_report
from harness.request.question import Question
from harness.request.repros import chosen_repro, typed_words
from harness.session import local_session, open_session
from harness.settings import Settings
from harness.store import Store

if TYPE_CHECKING:
    import pandas as pd

    from harness.bisect.answer import Answer
    from harness.events import Reporter
    from harness.history import History
    from harness.planning.single import Probed


def bisect(
    subject: str,
    *,
    repro: str | None = None,
    run: str | None = None,
    good: str | None = None,
    bad: str | None = None,
    depth: str = Level.REGION.value,
    settings: Settings | None = None,
    reporter: Reporter = SILENT,
    **more: Any,
) -> Answer:
    """Return the release of `subject` that broke a repro, and the culprit; write reports to the results folder.

    What to run is a repro (`repro`, a name or a path; default: the repro that names the subject) or a command (`run`).
    `good` and `bad` are versions, by default those of the repro. `depth` is "release", "package", "file", "region" or
    "commit". `more` are fields of `Question`: `find_fix`, `prereleases`, `confirm` (a number of runs), `git`. Raises
    `BadRepro`, `UnknownProject`, `UnknownRelease`, `UserMistake`, `NoWorkers`, `NoNetwork`, `NoSpace`, and
    `Interrupted` on Ctrl-C.
    """
    settings = settings or Settings()
    question = _question(subject, repro, run, settings, {"good": good, "bad": bad, **more})
    with open_session(settings, reporter, requires_python=question.repro.requires_python) as session:
        plan, answer = investigate.ask(session, question, Level(depth))
    keep_and_report(session.store, plan, answer, settings.pass_env)
    return answer


def history(
    subject: str,
    *,
    repro: str | None = None,
    run: str | None = None,
    since: str | None = None,
    until: str | None = None,
    settings: Settings | None = None,
    reporter: Reporter = SILENT,
    **more: Any,
) -> History:
    """Return every window of releases of `subject` in which a repro was broken; write pages to the results folder.

    `since` and `until` are the oldest and newest version, by default the repro's older bound and the newest release.
    `more` may have `max_gap` (of that many neighbouring releases at least one is run) and `prereleases`. Raises the
    same errors as `bisect`.
    """
    settings = settings or Settings()
    wanted = Range(since, until, more.pop("max_gap", None))
    question = _question(subject, repro, run, settings, more)
    with open_session(settings, reporter, requires_python=question.repro.requires_python) as session:
        made, found = scan.ask(session, question, wanted)
    keep_history_report(session.store, made, found, settings.pass_env)
    return found


def probe(
    repro: str,
    *requirements: str,
    fresh: bool = False,
    settings: Settings | None = None,
    reporter: Reporter = SILENT,
) -> Probed:
    """Run a repro (a name or a path) once with these requirements, such as "transformers==4.53.0".

    With `fresh` it runs even if the store has the answer. Raises the same errors as `bisect`. If the environment can't
    be made or the run fails, that is the `Outcome` of the observation, not an exception.
    """
    settings = settings or Settings()
    settings = evolve(settings, with_=(*settings.with_, *requirements))
    chosen = chosen_repro(repro, None, None, settings.params)
    session = local_session(settings, reporter, requires_python=chosen.requires_python)
    return executed(session, prepared_probe(session, chosen, fresh=fresh))


def results(folder: str | Path | None = None) -> pd.DataFrame:
    """Return the observations of a results folder as a table, one row each, the oldest first.

    `folder` defaults to `HARNESS_RESULTS`, else "results". Among the columns are the key, times in seconds, memory in
    MiB, and one for each parameter, metric and installed distribution.
    """
    return Store.opened(Path(folder or Settings().results)).frame()


def _question(subject: str, repro: str | None, run: str | None, settings: Settings, more: dict[str, Any]) -> Question:
    chosen = chosen_repro(repro, run, subject, settings.params)
    typed = (*typed_words(repro, run, settings.params), *settings.typed)
    return Question.under(settings, subject, chosen, typed=typed, **more)
