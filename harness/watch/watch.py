"""One night of a watch: run the cells, compare them with earlier nights, confirm each change, ask what broke it."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

from attrs import define, evolve, field, frozen
from packaging.version import Version

from harness.bisection.answer import Status
from harness.bisection.ask import answer_question
from harness.bisection.baseline import run_again
from harness.bisection.wording import cause_of
from harness.errors import HarnessError, UserMistake
from harness.events import Judged, Note, Started
from harness.matrix.cells import PACKAGES
from harness.matrix.running import CellRun, run_cells
from harness.model import Judgement, Lock, Observation, Outcome, Signature, Verdict
from harness.model.signature import pattern_of
from harness.model.text import listed
from harness.probing import Judge, Probe
from harness.question.ends import End, EndKind
from harness.question.question import Question
from harness.question.request import Policy, QuestionKind
from harness.report.answer import write_reports
from harness.report.archive import stored_answer
from harness.watch.state import (
    CellState,
    CellStatus,
    Night,
    Past,
    baseline_of,
    came_between,
    compare,
    version_on,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harness.bisection.answer import Answer
    from harness.events import Event, Reporter
    from harness.matrix import Cell
    from harness.matrix.running import Sessions
    from harness.probing.lanes import Lanes


# The share of the budget for cells once one has changed. The rest is for finding the cause, which matters more.
_FOR_CELLS = 0.5
_CHANGES = 6  # are named where a cell is good again
_FAILED = frozenset({Outcome.RAISED, Outcome.EXITED, Outcome.CRASHED, Outcome.TIMED_OUT})
_NO_VERSION = Version("0")


class OutOfTimeError(HarnessError):
    """The time budget ran out. Finished runs are kept; the next night continues."""


@define
class Budget:
    """A reporter that counts runs, and lets none start once the time of a night is spent.

    `clock` is monotonic, in seconds; None minutes means no limit.
    """

    reporter: Reporter
    clock: Callable[[], float]
    minutes: float | None = None
    ran: int = 0
    _begun: float = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._begun = self.clock()

    @property
    def wall_s(self) -> float:
        """Seconds since it began."""
        return self.clock() - self._begun

    @property
    def share(self) -> float:
        """The used share, 1.0 for all of it."""
        if self.minutes is None:
            return 0.0
        return self.wall_s / (self.minutes * 60) if self.minutes > 0 else math.inf

    def report(self, event: Event) -> None:
        """Pass on an event. Raises `OutOfTimeError` instead of the start of a run."""
        if isinstance(event, Started) and self.share >= 1.0:
            raise OutOfTimeError("the time budget is spent")
        if isinstance(event, Judged) and not event.cached:
            self.ran += event.observation.outcome.ran
        self.reporter.report(event)


def in_order(cells: Iterable[Cell], past: Past, matrix: str) -> tuple[Cell, ...]:
    """Sort cells: those that the last night left first, those never judged last, with older releases before newer ones.

    So when a new release runs, the older release that it is compared with already has a verdict.
    """
    rank, judged = {name: position for position, name in enumerate(past.left(matrix))}, past.cells(matrix)

    def key(cell: Cell) -> tuple[int, bool, tuple[Version, ...]]:
        is_new = cell.name not in judged
        axes = sorted(axis for axis in cell.choice if axis.startswith(PACKAGES)) if is_new else []
        versions = tuple(version_on(cell.choice, axis) or _NO_VERSION for axis in axes)
        return rank.get(cell.name, len(rank)), is_new, versions

    return tuple(sorted(cells, key=key))


@frozen
class _Turn:
    """A cell that was good in an earlier run and failed tonight.

    `older` is the lock of the earlier run, None if its record is missing; `signature` is how the failure is recognised.
    """

    cell: Cell
    state: CellState
    probe: Probe
    older: Lock | None
    newer: Lock
    signature: Signature

    @property
    def distance(self) -> int:
        """The number of packages that differ between the two runs."""
        return len(self.older.diff(self.newer)) if self.older is not None else 0


@define
class Watch:
    """A night of one matrix in progress. `start` is ISO 8601 in UTC; the sessions report to `budget`.

    `night` is what it has so far, also after an exception.
    """

    matrix: str
    cells: tuple[Cell, ...]
    start: str
    past: Past
    sessions: Sessions
    lanes: Lanes
    budget: Budget
    states: dict[str, CellState] = field(factory=dict, init=False)
    _turned: list[_Turn] = field(factory=list, init=False)
    _has_ended: bool = field(default=False, init=False)

    def run(self) -> Night:
        """Run until all cells are judged or the budget is spent.

        Raises `BadRepro` and `UserMistake` before anything runs, and `Interrupted`, `NoNetwork`, `NoSpace`.
        """
        blocked = self.sessions.blocked(self.cells)
        for cell in self.cells:
            if cell.name in blocked:
                self._put(CellState(cell.name, dict(cell.choice), CellStatus.UNJUDGED, blocked[cell.name]))
        waiting = in_order([cell for cell in self.cells if cell.name not in blocked], self.past, self.matrix)
        while waiting and self.budget.share < 1.0:
            self._run(waiting)
            left = tuple(cell for cell in waiting if cell.name not in self.states)
            for turn in sorted(self._turned, key=lambda turn: turn.distance):
                self._put(self._settled(turn))
            self._turned.clear()
            if len(left) == len(waiting):
                break
            waiting = left
        for cell in waiting:
            self.states.setdefault(cell.name, CellState(cell.name, dict(cell.choice), CellStatus.LEFT))
        self._has_ended = True
        return self.night

    @property
    def night(self) -> Night:
        """The night with the cells that are judged so far."""
        cells = tuple(self.states[cell.name] for cell in self.cells if cell.name in self.states)
        return Night(self.matrix, self.start, self._has_ended, cells, self.budget.ran, round(self.budget.wall_s, 1))

    def _put(self, state: CellState) -> None:
        self.states[state.name] = state

    def _run(self, cells: tuple[Cell, ...]) -> None:
        def is_enough() -> bool:
            return self.budget.share >= (_FOR_CELLS if self._turned else 1.0)

        try:
            run_cells(cells, self.sessions, self.lanes, is_enough, self._absorb)
        except OutOfTimeError:
            return

    def _absorb(self, run: CellRun) -> None:
        """Record a cell's verdict, and queue the cell if it changed."""
        cell, store = run.cell, self.sessions.store
        captured = Judge(None, store).captured(run.observation)
        # The signature of tonight's failure is the repro's if it matched, else the one captured from the run.
        has_matched = run.judgement.verdict is Verdict.BAD and run.probe.repro.signature is not None
        signature = run.probe.repro.signature if has_matched else captured
        judged = {name: state for name, state in self.states.items() if state.standing.is_judged}
        shown = _shown(run, pattern_of(captured or signature))
        baseline = baseline_of(shown, self.past.cells(self.matrix), judged)
        state = compare(shown, baseline)
        if state.standing is CellStatus.GOOD and baseline is not None and baseline.broken_by:
            self._note(f"{state.name} is good again")
            state = evolve(state, changed=self._changed(baseline, run.observation.lock))
        self._put(state)
        if state.standing is CellStatus.TURNED and signature is not None and run.observation.lock is not None:
            older = store.get(state.good)
            lock = older.lock if older is not None else None
            self._turned.append(_Turn(cell, state, run.probe, lock, run.observation.lock, signature))

    def _changed(self, baseline: CellState, lock: Lock | None) -> str:
        """Say what changed since a cell was bad."""
        was = self.sessions.store.get(baseline.observation)
        if was is None or was.lock is None or lock is None:
            return ""
        return listed(map(str, was.lock.diff(lock)), _CHANGES) or "the same packages"

    # -- what broke a cell

    def _settled(self, turn: _Turn) -> CellState:
        """Return the state of a cell that was good and failed tonight; as it is if the time budget runs out."""
        try:
            return self._confirmed(turn)
        except OutOfTimeError:
            return turn.state

    def _confirmed(self, turn: _Turn) -> CellState:
        """Run both sides again, and find the cause if their verdicts are confirmed. Raises `OutOfTimeError`."""
        state, older = turn.state, turn.older
        if older is None:
            return _not_judged(state, "the record of its last good run is missing")
        self._note(f"{state.name} turned bad: {state.reason}; running it again")
        second, again = self._again(turn, turn.newer)
        if again.outcome is Outcome.MACHINE_FAILED:
            return _not_judged(state, f"run again, the machine failed: {again.detail}")
        if second.verdict is not Verdict.BAD:
            return evolve(state, standing=CellStatus.FLAKY, reason=f"{state.reason}; run again: {second.reason}")
        self._note(f"{state.name}: running its last good environment again")
        first, run = self._again(turn, older)
        is_gone = run.outcome is Outcome.UNINSTALLABLE  # its stored run is still evidence
        if (first.verdict is not Verdict.GOOD and not is_gone) or older.id == turn.newer.id:
            return _not_judged(state, _not_packages(first, run))
        if cause := self._known_cause(state.pattern, older, turn.newer):
            return evolve(state, standing=CellStatus.BROKEN, broken_by=cause)
        try:
            answer = self._ask(turn, older)
        except UserMistake as error:
            return _not_judged(state, f"the cause can't be searched: {error}")
        if not answer.failures or answer.status is Status.MACHINE:
            return _not_judged(state, answer.sentence.rstrip("."))
        if is_gone:
            sentence = f"{answer.sentence} The last good environment can't be built any more ({first.reason})."
            answer = evolve(answer, sentence=sentence)
        self._note(answer.sentence)
        if self.past.archive.find(answer.cause) is None:
            write_reports(self.sessions.store, evolve(stored_answer(answer, self.start), id=answer.cause))
        return evolve(state, standing=CellStatus.BROKEN, broken_by=answer.cause)

    def _known_cause(self, pattern: str, older: Lock, newer: Lock) -> str:
        """Return the id of a cause with this pattern whose culprit came between two locks, else of one without a
        culprit that is open; "" if there is none.
        """
        causes = self.past.after(self.night).causes.values()
        alike = [cause for cause in causes if cause.pattern == pattern]
        crossed = (cause.id for cause in alike if came_between(cause.culprit, older, newer))
        unknown = (cause.id for cause in alike if cause.is_open and not cause.culprit)
        return next(itertools.chain(crossed, unknown), "")

    def _ask(self, turn: _Turn, older: Lock) -> Answer:
        """Ask what broke a cell between its last good lock and tonight's. Raises `OutOfTimeError`."""
        cell, combination = turn.cell, turn.probe.combination
        session = self.sessions.by_python[cell.python]
        session = evolve(session, settings=evolve(session.settings, device=combination.device.value))
        good, bad = (
            End(EndKind.LOCK, text, moment=combination.as_of, lock=lock)
            for text, lock in (("the last good packages", older), ("tonight's packages", turn.newer))
        )
        question = Question(
            "",
            evolve(turn.probe.repro, signature=turn.signature),
            evolve(combination, as_of=None, prereleases=()),
            good=good,
            bad=bad,
            policy=Policy(prereleases=bool(combination.prereleases)),
        )
        answer = answer_question(session, question, QuestionKind.PACKAGES)
        below = [cause_of(culprit) for culprit in answer.culprits if culprit.findings]
        return evolve(answer, sentence=": ".join((answer.sentence.rstrip("."), *below)) + ".")

    def _again(self, turn: _Turn, lock: Lock) -> tuple[Judgement, Observation]:
        """Run a lock again, unless a repeated run of it is already from this night. Raises `OutOfTimeError`."""
        judge = Judge(turn.signature, self.sessions.store)
        probe = evolve(turn.probe, lock=lock, attempt=1)
        return run_again(self.sessions.probers, probe, judge, turn.state.name, self.start, self.budget)

    def _note(self, sentence: str) -> None:
        self.sessions.reporter.report(Note(sentence))


def _shown(run: CellRun, pattern: str) -> CellState:
    """Return what a run shows without an earlier one; another failure than the repro's is not judged, but compared."""
    verdict = run.judgement.verdict
    failed = verdict is Verdict.BAD or (verdict is Verdict.SKIP and run.observation.outcome in _FAILED)
    return CellState(
        name=run.cell.name,
        choice=dict(run.cell.choice),
        standing={Verdict.GOOD: CellStatus.GOOD, Verdict.BAD: CellStatus.BEFORE}.get(verdict, CellStatus.UNJUDGED),
        reason=run.judgement.reason,
        observation=run.observation.key,
        good=run.observation.key if verdict is Verdict.GOOD else "",
        pattern=pattern if failed else "",
    )


def _not_packages(judgement: Judgement, run: Observation) -> str:
    """Say why the last good packages, which do not pass now, are no baseline."""
    if run.outcome is Outcome.MACHINE_FAILED:
        return f"its last good packages can't be judged today, because the machine failed: {run.detail}"
    if judgement.verdict is Verdict.BAD:
        return f"not the packages: those of its last good run fail today, too: {judgement.reason}"
    how = "pass today, too" if judgement.verdict is Verdict.GOOD else f"can't be judged today ({judgement.reason})"
    return f"its last good packages {how}, so no package is the cause"


def _not_judged(state: CellState, why: str) -> CellState:
    return evolve(state, standing=CellStatus.UNJUDGED, reason=f"{state.reason}; {why}")
