"""Runs a project's tests with the newest packages and, if a new test fails, finds the upgrade that broke it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.bisect.answer import Status
from harness.bisect.ask_upgrade import UpgradeQuestion, ask_upgrade
from harness.errors import NoSpace
from harness.events import SearchBegan
from harness.model import Outcome
from harness.nightly.last_green import FILE, failing_tests, keep_last_green, read_last_green
from harness.nightly.project_night import NightStatus, ProjectNight
from harness.planning.plan import merged_requirements
from harness.planning.world import WorldRequest
from harness.planning.worlds import Worlds
from harness.request.ends import Ends, parse_end

if TYPE_CHECKING:
    from pathlib import Path

    from harness.bisect.upgrade_answer import UpgradeAnswer
    from harness.model import Lock, Observation
    from harness.nightly.last_green import LastGreen
    from harness.session import Session

_SHOWN = 3


@frozen
class ProjectWatch:
    """A watched project: the question without its good end, and the folder with the last green packages.

    `question.ends.bad` is the day whose newest packages are tested; `name` and `command` appear in the report.
    """

    session: Session
    question: UpgradeQuestion
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
        observation = self._observe()
        lock = observation.lock
        if lock is None or not observation.outcome.ran or observation.mistake:
            why = observation.mistake or observation.detail
            return self._night(NightStatus.UNKNOWN, f"The tests could not be run: {why.rstrip('.')}.", green)
        if _passes(observation, green):
            self._keep_green(lock, observation)
            passed = "The tests pass" if observation.outcome is Outcome.COMPLETED else "Nothing new fails"
            return self._night(NightStatus.PASSES, f"{passed} with the newest packages.", green)
        if green is not None and green.is_same(lock):
            failed = green.news(observation)
            shown = ", ".join(failed[:_SHOWN]) + (f" and {len(failed) - _SHOWN} more" if len(failed) > _SHOWN else "")
            sentence = (
                f"Not caused by an upgrade: {shown or self.command} failed with the same packages it passed with."
            )
            return self._night(NightStatus.NOT_PACKAGES, sentence, green)
        answer = self._bisect(green)
        night = self._broken(answer, green)
        if (
            green is None
            and night.status is NightStatus.UNKNOWN
            and len(failing_tests(observation)) < len(observation.tests)
        ):
            # Later nights do not report tests that never passed.
            self._keep_green(lock, observation)
            return evolve(night, sentence=f"{night.sentence} From now on, only other failures are reported.")
        return night

    def _observe(self) -> Observation:
        """Run the tests with the newest packages. A bisection that follows finds this run in the store."""
        question, session = self.question, self.session
        device, why = session.device_for(question.repro)
        session.reporter.report(SearchBegan(f"{self.command} with the newest packages", (*question.told, why)))
        requirements = merged_requirements(question.repro.dependencies, question.requirements)
        settings, python = session.settings, session.interpreter.version
        request = WorldRequest(question.repro, python, requirements, settings.held, device, settings.from_source)
        newest = question.ends.bad
        worlds = Worlds(request, session.prober, session.index, session.interpreter, question.subject, newest)
        return session.prober.execute(session.prober.prepare(worlds.of(newest).itself()))

    def _bisect(self, green: LastGreen | None) -> UpgradeAnswer:
        good = parse_end(str(self.state / FILE), "--state", now=datetime.now(UTC)) if green is not None else None
        return ask_upgrade(self.session, evolve(self.question, ends=Ends(good, self.question.ends.bad)))

    def _broken(self, answer: UpgradeAnswer, green: LastGreen | None) -> ProjectNight:
        is_broken = answer.status is Status.FOUND or bool(answer.groups)
        night = self._night(NightStatus.BROKEN if is_broken else NightStatus.UNKNOWN, answer.sentence, green)
        good = answer.good.text if answer.good is not None else ""
        return evolve(night, green=night.green or good, constraints=answer.constraints, answer=answer.as_json())

    def _night(self, status: NightStatus, sentence: str, green: LastGreen | None) -> ProjectNight:
        since = green.date if green is not None else ""
        return ProjectNight(self.name, self.command, self._date(), status, sentence, since)

    def _keep_green(self, lock: Lock, observation: Observation) -> None:
        try:
            keep_last_green(self.state, lock, failing_tests(observation), self._date())
        except OSError as error:
            raise NoSpace(f"can't write to {self.state}: {error.strerror}") from error

    def _date(self) -> str:
        """Return the day of the newest packages. A day without a time ends at midnight, which is in the next day."""
        moment = self.question.ends.bad.moment or datetime.now(UTC)
        return (moment - timedelta(seconds=1)).date().isoformat()


def _passes(observation: Observation, green: LastGreen | None) -> bool:
    """Whether the tests pass, or every failing test also failed in the last green night."""
    if observation.outcome is Outcome.COMPLETED:
        return True
    return green is not None and bool(observation.tests) and not green.news(observation)
