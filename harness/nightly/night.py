"""One night: run the cells, compare them with earlier nights, confirm each change, find its cause, report it once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define, field

from harness.matrix.running import CellRun, run_cells
from harness.model import Outcome, Signature, Verdict
from harness.nightly.cause import Suspicion
from harness.nightly.record import (
    Break,
    CellRecord,
    CellStatus,
    Night,
    compare,
    differing_axis,
    is_superseded,
    pattern_of,
)
from harness.nightly.tonight import BudgetedLanes, in_order
from harness.nightly.triage import Triage
from harness.probing import Judge, Probe

if TYPE_CHECKING:
    from harness.matrix import Cell


# The share of the budget for cells once one has changed. The rest is for finding the cause, which matters more.
_FOR_CELLS = 0.5
_FAILED = frozenset({Outcome.RAISED, Outcome.EXITED, Outcome.CRASHED, Outcome.TIMED_OUT})


@define
class Nightly:
    """A night of one matrix in progress."""

    cells: tuple[Cell, ...]
    triage: Triage
    records: dict[str, CellRecord] = field(factory=dict, init=False)
    _queue: list[Suspicion] = field(factory=list, init=False)
    _fixed: list[Suspicion] = field(factory=list, init=False)

    def run(self) -> Night:
        """Run until all cells are judged or the budget is spent.

        Raises `BadRepro` and `UserMistake` before anything runs, and `Interrupted`, `NoNetwork`, `NoSpace`.
        """
        budget, past, sessions = self.triage.budget, self.triage.past, self.triage.sessions
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
        budget = self.triage.budget
        cells = tuple(self.records[cell.name] for cell in self.cells if cell.name in self.records)
        return Night(
            matrix=self.triage.matrix,
            start=self.triage.start,
            ended=True,
            cells=cells,
            breaks=tuple(self.triage.changed.values()),
            ran=budget.ran,
            wall_s=round(budget.wall_s, 1),
            gpu_s=round(budget.gpu_s, 1),
        )

    def _run(self, batch: tuple[Cell, ...], probes: dict[str, Probe]) -> None:
        budget = self.triage.budget
        devices = {probes[cell.name].combination.device for cell in batch}

        def enough() -> bool:
            limit = _FOR_CELLS if self._queue else 1.0
            return any(budget.share(device) >= limit for device in devices)

        run_cells(batch, self.triage.sessions, BudgetedLanes(self.triage.lanes, budget), enough, self._absorb)

    def _absorb(self, run: CellRun) -> None:
        """Record a cell's verdict, and queue the cell if it changed."""
        cell, probe, past, sessions = run.cell, run.probe, self.triage.past, self.triage.sessions
        captured = Judge(None, sessions.store).captured(run.observation)
        # The signature of tonight's failure is the repro's if it matched, else the one captured from the run.
        has_matched = run.judgement.verdict is Verdict.BAD and probe.repro.signature is not None
        signature = probe.repro.signature if has_matched else captured
        compared = compare(_seen(run, captured, signature), past.cells, self._judged())
        record, baseline = compared.record, compared.baseline
        self.records[cell.name] = record
        # Without an earlier night, a failing commit is compared with the newest release.
        is_first = baseline is None and bool(record.pattern and cell.commits)
        baseline = record if is_first else baseline
        if baseline is None or (signature is None and not compared.is_fixed):
            return
        subject = _subject(cell, probe, baseline)
        suspicion = Suspicion(record, cell, probe, run.observation, signature, baseline, subject, sessions)
        if is_first or record.standing is CellStatus.TURNED:
            self._queue.append(suspicion)
        elif compared.is_fixed and baseline.broken_by:
            self._fixed.append(suspicion)
        elif record.standing is CellStatus.BROKEN and baseline.name != cell.name:
            self.triage.join(past.breaks[baseline.broken_by], record)

    def _judged(self) -> dict[str, CellRecord]:
        return {name: record for name, record in self.records.items() if record.standing.is_judged}

    def _settle(self) -> None:
        """Handle the cells that broke, smallest difference first; then those that were fixed."""
        for suspicion in sorted(self._queue, key=self.triage.distance):
            self.records[suspicion.record.name] = self.triage.turned(suspicion)
        for suspicion in sorted(self._fixed, key=self.triage.distance):
            self.triage.fixed(suspicion)
        self._queue.clear()
        self._fixed.clear()

    def _close(self) -> None:
        for known in self.triage.known().values():
            if known.is_open and known.first_seen < self.triage.start and self._is_over(known):
                self.triage.close(known)

    def _is_over(self, known: Break) -> bool:
        """Whether no cell is broken by it any more.

        Each cell of this matrix is good, no longer in it, or superseded by a good release; each of another is fixed.
        """
        prefix = f"{self.triage.matrix}: "
        fixed = {fix.cell for fix in known.fixes}
        mine = [label.removeprefix(prefix) for label in known.cells if label.startswith(prefix)]
        if not mine or any(label not in fixed and not label.startswith(prefix) for label in known.cells):
            return False
        state = {**self.triage.past.cells, **self._judged()}
        tonight = {cell.name for cell in self.cells}
        packages = [change.name for change in known.culprit]
        return all(
            name not in tonight
            or (name in state and state[name].standing is CellStatus.GOOD)
            or (name in state and is_superseded(state[name], self._judged().values(), packages))
            for name in mine
        )


def _seen(run: CellRun, captured: Signature | None, signature: Signature | None) -> CellRecord:
    """Return what a run shows without an earlier one; another failure than the repro's is not judged, but compared."""
    cell, verdict = run.cell, run.judgement.verdict
    commits = {commit.project: commit.sha for commit in cell.commits}
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
        commits=commits,
        good_commits=commits if is_good else {},
    )


def _subject(cell: Cell, probe: Probe, baseline: CellRecord) -> str:
    """Return the package that the question is about: the one that differs from the baseline, else the cell's first."""
    axis = differing_axis(cell.choice, baseline.choice)
    packages = [axis] if axis else [axis for axis in cell.choice if axis.startswith("packages.")]
    if packages:
        return packages[0].removeprefix("packages.")
    names = probe.repro.subjects or probe.repro.dependencies or (probe.repro.name,)
    return next(iter(names))
