"""One night: run the cells, compare them with earlier nights, confirm each change, find its cause, report it once."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from attrs import define, evolve, field

from harness.culprit.proofs import Trials
from harness.events import Note
from harness.matrix.cells import PACKAGES
from harness.matrix.running import CellRun, run_cells
from harness.model import Lock, Observation, Outcome, Signature, Verdict, normalized_name
from harness.model.text import listed
from harness.probing import Judge, Prepared, Probe
from harness.report.answer import write_reports
from harness.report.archive import Archive, KeptAnswer, kept_answer
from harness.report.phrases import title_of
from harness.watch.cause import Cause, CellChange
from harness.watch.news import facts_of_break
from harness.watch.record import (
    Break,
    CellRecord,
    CellStatus,
    Fix,
    Night,
    Past,
    break_id,
    came_between,
    compare,
    differing_axis,
    is_superseded,
    pattern_of,
)
from harness.watch.tonight import Budget, BudgetedLanes, OutOfTimeError, in_order

if TYPE_CHECKING:
    from harness.bisection.answer import Answer
    from harness.culprit.sides import Sides
    from harness.matrix import Cell
    from harness.matrix.running import Sessions
    from harness.probing.lanes import Lanes
    from harness.question.inquiry import Scope


# The share of the budget for cells once one has changed. The rest is for finding the cause, which matters more.
_FOR_CELLS = 0.5
_CHANGES = 6  # are named where a cell is good again
_FAILED = frozenset({Outcome.RAISED, Outcome.EXITED, Outcome.CRASHED, Outcome.TIMED_OUT})


@define
class Nightly:
    """A night of one matrix in progress. `start` is ISO 8601 in UTC; `changed` are the breaks that changed."""

    matrix: str
    cells: tuple[Cell, ...]
    start: str
    past: Past
    sessions: Sessions
    lanes: Lanes
    budget: Budget
    records: dict[str, CellRecord] = field(factory=dict, init=False)
    changed: dict[str, Break] = field(factory=dict, init=False)
    _turned: list[CellChange] = field(factory=list, init=False)

    def run(self) -> Night:
        """Run until all cells are judged or the budget is spent.

        Raises `BadRepro` and `UserMistake` before anything runs, and `Interrupted`, `NoNetwork`, `NoSpace`.
        """
        budget, past, sessions = self.budget, self.past, self.sessions
        blocked = sessions.blocked(self.cells)
        for cell in self.cells:
            if cell.name in blocked:
                reason = blocked[cell.name]
                self.records[cell.name] = CellRecord(cell.name, dict(cell.choice), CellStatus.UNJUDGED, reason)
        waiting = in_order([cell for cell in self.cells if cell.name not in blocked], past)
        probes = {cell.name: sessions.probe(cell) for cell in waiting}
        while batch := tuple(cell for cell in waiting if not budget.is_spent(probes[cell.name].combination.device)):
            self._run(batch, probes)
            left = tuple(cell for cell in waiting if cell.name not in self.records)
            self._settle()
            if len(left) == len(waiting):
                break
            waiting = left
        self._close()
        for cell in waiting:
            self.records.setdefault(cell.name, CellRecord(cell.name, dict(cell.choice), CellStatus.LEFT))
        return self._ended()

    def _ended(self) -> Night:
        budget = self.budget
        cells = tuple(self.records[cell.name] for cell in self.cells if cell.name in self.records)
        return Night(
            matrix=self.matrix,
            start=self.start,
            ended=True,
            cells=cells,
            breaks=tuple(self.changed.values()),
            ran=budget.ran,
            wall_s=round(budget.wall_s, 1),
            gpu_s=round(budget.gpu_s, 1),
        )

    def _run(self, batch: tuple[Cell, ...], probes: dict[str, Probe]) -> None:
        budget = self.budget
        devices = {probes[cell.name].combination.device for cell in batch}

        def enough() -> bool:
            limit = _FOR_CELLS if self._turned else 1.0
            return any(budget.share(device) >= limit for device in devices)

        run_cells(batch, self.sessions, BudgetedLanes(self.lanes, budget), enough, self._absorb)

    def _absorb(self, run: CellRun) -> None:
        """Record a cell's verdict, and queue the cell if it changed."""
        cell, probe, past, sessions = run.cell, run.probe, self.past, self.sessions
        captured = Judge(None, sessions.store).captured(run.observation)
        # The signature of tonight's failure is the repro's if it matched, else the one captured from the run.
        has_matched = run.judgement.verdict is Verdict.BAD and probe.repro.signature is not None
        signature = probe.repro.signature if has_matched else captured
        compared = compare(_seen(run, captured, signature), past.cells, self._judged())
        record, baseline = compared.record, compared.baseline
        self.records[cell.name] = record
        if baseline is None:
            return
        if compared.is_fixed:
            self._good_again(record, baseline, run.observation)
        elif record.standing is CellStatus.TURNED and signature is not None:
            combination = probe.combination
            # The stored observation may come from a question with other requirements or another date.
            as_of = combination.as_of.isoformat() if combination.as_of else None
            newer = evolve(run.observation, requirements=combination.requirements, as_of=as_of)
            older, subject = sessions.store.get(record.good), _subject(cell, probe, baseline)
            self._turned.append(CellChange(record, probe, older, newer, signature, subject))
        elif record.standing is CellStatus.BROKEN and baseline.name != cell.name:
            self._join(past.breaks[baseline.broken_by], record)

    def _judged(self) -> dict[str, CellRecord]:
        return {name: record for name, record in self.records.items() if record.standing.is_judged}

    def _settle(self) -> None:
        """Handle the cells that broke, smallest difference first."""
        for change in sorted(self._turned, key=lambda change: change.distance):
            self.records[change.record.name] = self._settle_turned(change)
        self._turned.clear()

    def _close(self) -> None:
        """Close the breaks by which no cell is broken any more."""
        for known in self.known().values():
            if known.is_open and known.first_seen < self.start and self._is_over(known):
                self._change(evolve(known, closed=self.start))

    def _is_over(self, known: Break) -> bool:
        """Whether no cell is broken by it any more.

        Each cell of this matrix is good, no longer in it, or superseded by a good release; each of another is fixed.
        """
        prefix = f"{self.matrix}: "
        fixed = {fix.cell for fix in known.fixes}
        mine = [label.removeprefix(prefix) for label in known.cells if label.startswith(prefix)]
        if not mine or any(label not in fixed and not label.startswith(prefix) for label in known.cells):
            return False
        state = {**self.past.cells, **self._judged()}
        tonight = {cell.name for cell in self.cells}
        packages = [change.name for change in known.culprit]
        return all(
            name not in tonight
            or (name in state and state[name].standing is CellStatus.GOOD)
            or (name in state and is_superseded(state[name], self._judged().values(), packages))
            for name in mine
        )

    # -- what broke a cell

    def known(self) -> dict[str, Break]:
        """Return every break in its current state, by id."""
        return {**self.past.breaks, **self.changed}

    def _settle_turned(self, change: CellChange) -> CellRecord:
        """Settle a cell that was good and failed tonight; returns its record.

        It stays as it is if the time budget runs out.
        """
        try:
            return self._confirmed(change)
        except OutOfTimeError:
            return change.record

    def _confirmed(self, change: CellChange) -> CellRecord:
        """Run both sides again, and find the cause if their verdicts are confirmed. Raises `OutOfTimeError`."""
        record, sides = change.record, change.sides
        if sides is None:
            return _not_judged(record, "the record of its last good run is missing")
        judge = Judge(change.signature, self.sessions.store)
        self.budget.check(change.probe.combination.device)
        self._note(f"{record.name} turned bad: {record.reason}; running it again")
        again = self._again(change.probe, sides.after.lock)
        second = judge(again)
        if second.verdict is not Verdict.BAD:
            return evolve(record, standing=CellStatus.FLAKY, reason=f"{record.reason}; run again: {second.reason}")
        if known := self._known(change, sides):
            return self._join(known, record)
        self._note(f"{record.name}: running its last good environment again")
        baseline_run = self._again(change.probe, sides.before.lock)
        first = judge(baseline_run)
        is_gone = baseline_run.outcome is Outcome.UNINSTALLABLE  # the stored runs are still evidence
        is_same = sides.before.lock.id == sides.after.lock.id
        if (first.verdict is not Verdict.GOOD and not is_gone) or is_same:
            why = f"its last good environment is {first.verdict.value} now ({first.reason}), so no package is the cause"
            return _not_judged(record, why)
        return self._new(change, self._find(change, sides, again=(baseline_run, again)))

    def _join(self, known: Break, record: CellRecord) -> CellRecord:
        """Add a cell to a known break, and reopen the break if it was closed."""
        label = self._label(record)
        known = self.known().get(known.id, known)
        if label not in known.cells or not known.is_open or any(fix.cell == label for fix in known.fixes):
            cells = known.cells if label in known.cells else (*known.cells, label)
            fixes = tuple(fix for fix in known.fixes if fix.cell != label)
            self._change(evolve(known, cells=cells, fixes=fixes, closed="", last_seen=self.start))
        return evolve(record, standing=CellStatus.BROKEN, broken_by=known.id)

    def _good_again(self, record: CellRecord, baseline: CellRecord, run: Observation) -> None:
        """Note that a cell of a known break is good again, and what changed since it was bad."""
        known, label = self.known().get(baseline.broken_by), self._label(baseline)
        if known is None or any(fix.cell == label for fix in known.fixes):
            return
        self._note(f"{record.name} is good again")
        was = self.sessions.store.get(baseline.observation)
        changed: tuple[str, ...] = ()
        if was is not None and was.lock is not None and run.lock is not None:
            changed = tuple(map(str, was.lock.diff(run.lock)))
        fix = Fix(label, listed(changed, _CHANGES) or "the same packages", self.start)
        self._change(evolve(known, fixes=(*known.fixes, fix)))

    def _new(self, change: CellChange, answer: Answer) -> CellRecord:
        record = change.record
        culprit = answer.culprit.packages if answer.culprit is not None else ()
        id_ = break_id(record.pattern, culprit or answer.lock_changes)
        if (known := self.known().get(id_)) is not None:
            return self._join(known, record)
        new = Break(
            id=id_,
            pattern=record.pattern,
            title=title_of(answer),
            sentence=answer.sentence,
            repro=answer.repro,
            cells=(self._label(record),),
            first_seen=self.start,
            last_seen=self.start,
            culprit=culprit or (answer.lock_changes if len(answer.lock_changes) == 1 else ()),
        )
        self._change(new, evolve(kept_answer(answer, self.start), id=id_))
        self._note(answer.sentence)
        return evolve(record, standing=CellStatus.BROKEN, broken_by=id_)

    def _change(self, known: Break, kept: KeptAnswer | None = None) -> None:
        """Keep a break's new state, and rewrite its report."""
        self.changed[known.id] = known
        kept = kept or Archive(self.sessions.store).known(known.id)
        if kept is not None:
            write_reports(self.sessions.store, evolve(kept, facts=facts_of_break(known)))

    def _find(self, change: CellChange, sides: Sides, *, again: tuple[Observation, ...] = ()) -> Answer:
        """Find the cause. Raises `OutOfTimeError`."""
        sessions, probe = self.sessions, change.probe
        self.budget.check(probe.combination.device)
        prober = sessions.probers.prober_of(probe)
        lanes = BudgetedLanes(self.lanes, self.budget, probe.combination.device)
        judge = Judge(change.signature, sessions.store)

        def trials_of(scope: Scope) -> Trials:
            return Trials(scope, prober, lanes, sessions.first.index, judge, sessions.reporter)

        return Cause(trials_of, change, sides, again).answer()

    def _again(self, probe: Probe, lock: Lock) -> Observation:
        """Run a lock again, unless a repeated run of it is already from this night. Raises `OutOfTimeError`."""
        prepare = self.sessions.probers.prepare
        attempts = (prepare(evolve(probe, lock=lock, attempt=attempt)) for attempt in itertools.count(1))
        prepared = (
            one for one in attempts if not one.cached or (one.observation and one.observation.started >= self.start)
        )
        return self._execute(next(prepared))

    def _execute(self, prepared: Prepared) -> Observation:
        if not prepared.cached:
            self.budget.check(prepared.probe.combination.device)
        observation = self.sessions.probers.execute(prepared)
        if not prepared.cached:
            self.budget.used(observation)
        return observation

    def _known(self, change: CellChange, sides: Sides) -> Break | None:
        """Return a break with this pattern whose culprit came between two runs, else an open one without a culprit."""
        locks = sides.before.lock, sides.after.lock
        same = [known for known in self.known().values() if known.pattern == change.record.pattern]
        crossed = next((known for known in same if came_between(known.culprit, *locks)), None)
        return crossed or next((known for known in same if known.is_open and not known.culprit), None)

    def _note(self, sentence: str) -> None:
        self.sessions.reporter.report(Note(sentence))

    def _label(self, record: CellRecord) -> str:
        return f"{self.matrix}: {record.name}"


def _seen(run: CellRun, captured: Signature | None, signature: Signature | None) -> CellRecord:
    """Return what a run shows without an earlier one; another failure than the repro's is not judged, but compared."""
    cell, verdict = run.cell, run.judgement.verdict
    is_good = verdict is Verdict.GOOD
    failed = verdict is Verdict.BAD or (verdict is Verdict.SKIP and run.observation.outcome in _FAILED)
    return CellRecord(
        name=cell.name,
        choice=dict(cell.choice),
        standing={Verdict.GOOD: CellStatus.GOOD, Verdict.BAD: CellStatus.BEFORE}.get(verdict, CellStatus.UNJUDGED),
        reason=run.judgement.reason,
        observation=run.observation.key,
        good=run.observation.key if is_good else "",
        pattern=pattern_of(captured, signature) if failed else "",
    )


def _subject(cell: Cell, probe: Probe, baseline: CellRecord) -> str:
    """Return the package that the question is about: the one that differs from the baseline, else the cell's first."""
    axis = differing_axis(cell.choice, baseline.choice)
    packages = [axis] if axis else [axis for axis in cell.choice if axis.startswith(PACKAGES)]
    names = [axis.removeprefix(PACKAGES) for axis in packages] or probe.repro.subjects or probe.repro.dependencies
    return normalized_name(next(iter(names), probe.repro.name))


def _not_judged(record: CellRecord, why: str) -> CellRecord:
    return evolve(record, standing=CellStatus.UNJUDGED, reason=f"{record.reason}; {why}")
