"""Whether forks are believed: as long as they agree with fresh processes.

Each fresh run is compared with the fork of the same probe. After the first disagreement every run is fresh, and what
forks have shown is judged again. A fork that dies or hangs, for example because a lock was held when it was forked, is
repeated in a fresh process. So is one that can't import something, until enough fresh ones have agreed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from attrs import define, field

from harness.errors import HarnessError
from harness.events import Note, Reporter
from harness.model import Observation, Outcome
from harness.probing.judge import Judge

if TYPE_CHECKING:
    from harness.model import Repro
    from harness.store import Store

# Not conclusive in a fork: an import may fail because of the modules that were or were not imported before. Once so
# many fresh processes in a row, from the first on, have failed like their forks, the next ones are not asked.
_IMPORT_ERRORS = frozenset({"ImportError", "ModuleNotFoundError"})
_ENOUGH = 8


class ForksDisagree(HarnessError):
    """A fork and a fresh process disagree, so what forks have shown has to be judged again by fresh processes."""


@define
class Trust:
    """Whether forks are believed. `store` has the logs of runs, and `reporter` is told once why they are not.

    `stopped` is the reason why runs are not forked any more, "" if they are; `was_wrong`: a fork and a fresh process
    disagreed. `forks` and `compared` count the forks that were believed, and those of them with a fresh run.
    """

    store: Store
    reporter: Reporter
    stopped: str = field(default="", init=False)
    was_wrong: bool = field(default=False, init=False)
    compared: int = field(default=0, init=False)
    _forks: dict[str, Observation] = field(factory=dict, init=False)  # by the key of a fresh run
    _do_hang: bool = field(default=False, init=False)  # fresh processes hang where forks do
    _alike: float = field(default=0, init=False)  # fresh processes that failed to import like their forks; all did

    @property
    def forks(self) -> int:
        """How many forks were believed."""
        return len(self._forks)

    def stop(self, why: str) -> None:
        """Run everything in fresh processes from now on, for the reason `why`."""
        if not self.stopped:
            self.stopped = why
            self.reporter.report(Note(f"forks don't work here: {why}; each run is a fresh process"))

    def check(self) -> None:
        """Raise `ForksDisagree` if a fork that was believed was wrong."""
        if self.was_wrong:
            raise ForksDisagree(self.stopped)

    def note(self, key: str, forked: Observation) -> None:
        """Note a fork, with which fresh runs have to agree; `key` is that of its first fresh run."""
        self._forks[key] = forked
        if self.was_wrong:  # meanwhile, on another lane
            self.store.forget(forked.key)

    def compare(self, key: str, repro: Repro, fresh: Observation) -> None:
        """Compare a fresh run with the fork of the same probe, if there was one. Raises `ForksDisagree`."""
        forked = self._forks.get(key)
        if forked is None:
            return
        self.compared += 1
        if not self.agree(repro, forked, fresh):
            self.disagree()

    def disagree(self) -> None:
        """Stop, because a fork has another verdict than it must have, and forget the forks that were believed.

        Raises `ForksDisagree` if there are any.
        """
        self.stop("a fork and a fresh process disagree")
        forks = list(self._forks.values())  # other lanes may note some
        self.was_wrong = bool(forks)
        for forked in forks:
            self.store.forget(forked.key)
        self.check()

    def agree(self, repro: Repro, forked: Observation, fresh: Observation) -> bool:
        """Whether a fork has the verdict of a fresh run, and failed in the same way if both failed."""
        if forked.tests or fresh.tests:
            return failed_tests(forked) == failed_tests(fresh)
        judge = Judge(repro.signature, self.store).or_captured(fresh)
        return judge(forked).verdict is judge(fresh).verdict and name_in(forked) == name_in(fresh)

    def is_conclusive(self, forked: Observation) -> bool:
        """Whether the result of a fork is that of a fresh process, as far as the runs until now can say."""
        if not is_unsettled(forked):
            return True
        if forked.outcome in (Outcome.RAISED, Outcome.EXITED):
            return self._alike >= _ENOUGH
        return forked.outcome is Outcome.TIMED_OUT and self._do_hang

    def learn(self, forked: Observation, fresh: Observation) -> None:
        """Compare a fork that was not conclusive with the fresh run."""
        if forked.outcome in (Outcome.RAISED, Outcome.EXITED):
            is_alike = (fresh.outcome, name_in(fresh)) == (forked.outcome, name_in(forked))
            is_alike = is_alike and failed_tests(fresh) == failed_tests(forked)
            self._alike = self._alike + 1 if is_alike else -math.inf
        elif forked.outcome is Outcome.TIMED_OUT:
            self._do_hang = fresh.outcome is Outcome.TIMED_OUT
            if not self._do_hang:
                self.stop("a fork hung, a fresh process did not")
        elif forked.outcome is not fresh.outcome:
            self.stop(f"a fork ended otherwise ({forked.detail or forked.outcome}) than a fresh process")


def name_in(observation: Observation) -> str:
    """The name of the exception that ended a run, "" if none did."""
    return observation.exception.name if observation.exception is not None else ""


def failed_tests(observation: Observation) -> frozenset[str]:
    """The tests that failed in a run."""
    return frozenset(test.id for test in observation.tests if test.outcome.is_failure)


def is_unsettled(observation: Observation) -> bool:
    """Whether a fork may have failed because of the modules that were or were not imported before it."""
    raised = [observation.exception, *(test.exception for test in observation.tests)]
    if any(error is not None and error.name in _IMPORT_ERRORS for error in raised):
        return True
    has_ended = observation.outcome in (Outcome.COMPLETED, Outcome.RAISED)
    return not has_ended and not (observation.outcome is Outcome.EXITED and observation.tests)
