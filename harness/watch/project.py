"""The watch of a project: its tests with the newest packages, and if an upgrade broke them, which one.

The project is one cell. The packages with which its tests last passed are kept in a file from night to night. It is a
requirements file with exact versions, so pip, uv and `harness bisect --good` can all read it. Its header lists the
tests that failed even then, which are not reported again.
"""

from __future__ import annotations

import enum
import json
import re
import shlex
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.atomic import write_whole
from harness.bisection.answer import Answer, Status
from harness.bisection.ask import answer_question
from harness.bisection.by_culprit import answers_by_culprit
from harness.bisection.flow import snapshots_of
from harness.bisection.sections import sections_of
from harness.errors import NoSpace, UserMistake
from harness.events import SearchBegan
from harness.model import Lock, Observation, Outcome
from harness.model.text import listed
from harness.question.ends import End, EndKind
from harness.question.request import QuestionKind
from harness.redact import redacted
from harness.report.page import Page
from harness.report.phrases import title_of
from harness.report.privacy import private_of
from harness.settings import Settings
from harness.watch.tracker import MOST, DesiredIssue, issue_on_unjudged, marker_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from harness.question.question import Question
    from harness.session import Session


SCHEMA = 2  # of night.json
FILE = "green.txt"
_HEAD = re.compile(r"^# harness watch: (\{.*\})$", re.MULTILINE)
_PIN = re.compile(r"^([A-Za-z0-9][\w.-]*)==(\S+)$", re.MULTILINE)
_IN_A_SENTENCE = 4


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
class ProjectCause:
    """What broke the tests, with its id: the title of its issue, and the report in Markdown."""

    id: str
    title: str
    report: str


@frozen
class ProjectNight:
    """One night. `name` tells several watches of one repository apart; `causes` are those that it found.

    `unjudged` are the days of the last nights in a row that judged nothing, with this one.
    """

    name: str
    status: NightStatus
    sentence: str
    constraints: tuple[str, ...] = ()
    causes: tuple[ProjectCause, ...] = ()
    unjudged: tuple[str, ...] = ()

    @property
    def report(self) -> str:
        """The report in Markdown: what broke, since which release, what to pin, and how to reproduce it."""
        return "\n---\n\n".join(cause.report for cause in self.causes)

    @property
    def marker(self) -> str:
        """What the issues of this watch begin with."""
        return f"<!-- harness-watch: {self.name} -->"

    @property
    def issues(self) -> tuple[DesiredIssue, ...]:
        """One issue for each cause."""
        return tuple(map(self._issue, self.causes))

    def after(self, last: ProjectNight | None, day: str) -> ProjectNight:
        """Return the night of a day after the last one, None for a first night."""
        before = tuple(known for known in last.unjudged if known != day) if last is not None else ()
        return evolve(self, unjudged=(*before, day) if self.status is NightStatus.UNKNOWN else ())

    @property
    def issue_on_unjudged(self) -> DesiredIssue:
        """The issue that the nights judge nothing."""
        title = f"{self.name}: nothing was judged since {self.unjudged[0]}"
        return issue_on_unjudged(f"{self.marker}<!-- unjudged -->", title, [self.sentence])

    def _issue(self, cause: ProjectCause) -> DesiredIssue:
        marker = f"{self.marker}{marker_of(cause.id)}"
        body = f"{marker}\n\n{cause.report}"
        if len(body) > MOST:
            body = f"{body[:MOST]}\n\n… truncated: the full report is in the state folder of the watch.\n"
        return DesiredIssue(marker, f"{self.name}: {cause.title}"[:200], body, is_open=True)

    @property
    def is_sure(self) -> bool:
        """Whether its issues are up to date. An inconclusive night changes nothing."""
        return self.status in (NightStatus.PASSES, NightStatus.BROKEN)


@frozen
class ProjectWatch:
    """A watched project: the question without its good end, and the folder with the last green packages.

    `newest` is the day whose newest packages are tested, the bad end of the question; `name` and `command` appear in
    the report.
    """

    session: Session
    question: Question
    newest: End
    state: Path
    name: str
    command: str

    def run(self) -> ProjectNight:
        """Run one night. If no new test fails, its packages become the last green ones.

        They also do in a first night in which no older packages make the failing tests pass, if other tests pass. Later
        nights do not report these failures again.

        Raises `UserMistake`, `NoWorkers`, `Interrupted`, `NoNetwork`, `NoSpace`.
        """
        green = read_last_green(self.state)
        run = self._newest_run()
        if run.lock is None or not run.outcome.ran or run.mistake or run.outcome is Outcome.MACHINE_FAILED:
            why = run.mistake or run.detail
            return self._night(NightStatus.UNKNOWN, f"The tests could not be run: {why.rstrip('.')}.")
        failing = failing_tests(run)
        new = tuple(test for test in failing if green is None or test not in green.failing)
        if run.outcome is Outcome.COMPLETED or (green is not None and run.tests and not new):
            self._keep_green(run.lock, failing)
            passed = "The tests pass" if run.outcome is Outcome.COMPLETED else "Nothing new fails"
            return self._night(NightStatus.PASSES, f"{passed} with the newest packages.")
        if green is not None and green.versions == {pin.name: pin.version for pin in run.lock.pins}:
            shown = listed(new, _IN_A_SENTENCE) or self.command
            sentence = f"Not caused by an upgrade: {shown} failed with the same packages it passed with."
            return self._night(NightStatus.NOT_PACKAGES, sentence)
        path = self.state / FILE
        good = End(EndKind.LOCK, str(path), path=path) if green is not None else None
        question = evolve(self.question, good=good)
        answer = answer_question(self.session, question, QuestionKind.PACKAGES, is_night=True)
        night = self._broken(answer, green)
        if green is None and night.status is NightStatus.UNKNOWN and len(failing) < len(run.tests):
            # Later nights do not report tests that never passed.
            self._keep_green(run.lock, failing)
            return evolve(night, sentence=f"{night.sentence} From now on, only other failures are reported.")
        return night

    def _newest_run(self) -> Observation:
        """Run the tests with the newest packages; a bisection that follows finds this run in the store."""
        session, repro = self.session, self.question.repro
        snapshots = snapshots_of(session, self.question)
        session.reporter.report(SearchBegan(f"{repro.name} with the newest packages", self.question.notes))
        return session.prober.execute(session.prober.prepare(snapshots.of(self.newest).itself()))

    def _broken(self, answer: Answer, green: LastGreen | None) -> ProjectNight:
        """Return the night of an answer; tests that newly fail are broken by an upgrade, whichever it was."""
        if answer.status is Status.MACHINE or (answer.status is not Status.FOUND and not answer.failures):
            return self._night(NightStatus.UNKNOWN, answer.sentence)
        answer = redacted(answer, private_of(self.session.store))
        parts = answers_by_culprit(answer)
        titles = [title_of(part) if len(parts) > 1 else answer.sentence.rstrip(".") for part in parts]
        causes = tuple(
            ProjectCause(part.cause, title, self._report(part, green))
            for part, title in zip(parts, titles, strict=True)
        )
        night = self._night(NightStatus.BROKEN, answer.sentence)
        return evolve(night, constraints=answer.constraints, causes=causes)

    def _report(self, answer: Answer, green: LastGreen | None) -> str:
        """Return the report of one cause: what broke, since which release, what to pin, and how to reproduce it."""
        end = answer.question.ends.get("good") or {}
        # An older release beside today's other packages is no end that can be typed; it is found again.
        good = green.date if green is not None else end["text"] if end.get("kind") == EndKind.DAY.value else ""
        results = Settings.words_of(self.question.typed)  # of this machine
        typed = [word for word in self.question.typed if word not in results] or ["--run", shlex.quote(self.command)]
        command = " ".join(["harness bisect", *typed, *(["--good", good] if good else []), "--bad", self._date])
        return Page(
            "watch",
            {"answer": answer, "sections": sections_of(answer), "date": self._date, "good": good, "command": command},
        ).markdown()

    def _night(self, status: NightStatus, sentence: str) -> ProjectNight:
        return ProjectNight(self.name, status, sentence)

    def _keep_green(self, lock: Lock, failing: Iterable[str]) -> None:
        try:
            keep_last_green(self.state, lock, failing, self._date)
        except OSError as error:
            raise NoSpace(f"can't write to {self.state}: {error.strerror}") from error

    @property
    def _date(self) -> str:
        """The day of the newest packages. A day without a time ends at midnight, which is in the next day."""
        moment = self.newest.moment or datetime.now(UTC)
        return (moment - timedelta(seconds=1)).date().isoformat()


@frozen
class LastGreen:
    """Versions by project, the ISO date of the night, and the tests that failed that night."""

    versions: dict[str, str]
    date: str
    failing: tuple[str, ...] = ()


def failing_tests(run: Observation) -> tuple[str, ...]:
    """Return the tests of a run that failed or could not be set up, sorted."""
    return tuple(sorted(result.id for result in run.tests if result.outcome.is_failure))


def read_last_green(folder: Path) -> LastGreen | None:
    """Read the last green packages from a folder, or None if there are none.

    Raises `UserMistake` if the file can't be read or was not written by `harness watch`.
    """
    path = folder / FILE
    try:
        text = path.read_text(encoding="utf-8")
        head = json.loads(match[1]) if (match := _HEAD.search(text)) else {}
        return LastGreen(dict(_PIN.findall(text)), str(head["date"]), tuple(map(str, head.get("failing", ()))))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserMistake(
            f"can't read {path}, or harness watch did not write it: {error}",
            hint="delete it to start over, or choose another --state folder",
        ) from error


def keep_last_green(folder: Path, lock: Lock, failing: Iterable[str], date: str) -> None:
    """Write a lock as the last green one. Raises `OSError`."""
    head = json.dumps({"date": date, "python": lock.python, "failing": sorted(failing)})
    lines = [
        f"# The packages with which the tests passed on {date}, on Python {lock.python}.",
        f"# harness watch: {head}",
    ]
    lines += [f"{pin.name}=={pin.version}" for pin in sorted(lock.pins, key=lambda pin: pin.name)]
    write_whole(folder / FILE, "\n".join(lines) + "\n")
