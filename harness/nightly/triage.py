"""What becomes of a cell that turned: flaky, a known break or a new one, with its cause; and what mended it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from attrs import define, evolve, field, frozen

from harness.events import Note
from harness.model import Judgement, Outcome, Verdict
from harness.model.culprit import Level
from harness.nightly.budget import OutOfTimeError, Timed
from harness.nightly.cause import Finder, Turned
from harness.nightly.patterns import break_id, came_between
from harness.nightly.record import Break, CellRecord, Fix, Standing
from harness.nightly.telling import facts_of_break, releases_of
from harness.probe import Judge
from harness.report.answer.archive import kept_answer
from harness.report.answer.phrases import title_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.bisect.answer import Answer
    from harness.environment import Index, Interpreter
    from harness.events import Reporter
    from harness.model import Change, Lock, Observation, Signature
    from harness.nightly.budget import Budget
    from harness.nightly.record import Past
    from harness.planning.plan import Plan
    from harness.probe import Probe
    from harness.report import KeptAnswer
    from harness.scheduling.lanes import Lanes
    from harness.scheduling.probers import Probers, Probing
    from harness.store import Store

_FAR = 10**6


class Reports(Protocol):
    """What a night knows of reports."""

    def get(self, id: str) -> KeptAnswer | None:  # noqa: A002
        """The answer of a report, None where it is not there any more."""
        ...

    def write(self, kept: KeptAnswer) -> None:
        """Keep an answer and write its report, in the place of an earlier one of the same id."""
        ...


@frozen
class Suspicion:
    """A cell whose verdict is another than its baseline's; `signature` is None for one that is good now."""

    record: CellRecord
    probe: Probe
    observation: Observation
    signature: Signature | None
    baseline: CellRecord
    subject: str


@define
class Triage:
    """Settles suspicions of one night, whose `start` is ISO 8601 in UTC; `changed` are the breaks with news."""

    matrix: str
    start: str
    past: Past
    store: Store
    probers: Probers
    interpreters: Mapping[str, Interpreter]
    index: Index
    lanes: Lanes
    reports: Reports
    budget: Budget
    reporter: Reporter
    pass_env: tuple[str, ...] = ()
    depth: Level = Level.REGION
    changed: dict[str, Break] = field(factory=dict, init=False)
    _mending: dict[str, list[tuple[Change, ...]]] = field(factory=dict, init=False)

    def known(self) -> dict[str, Break]:
        """Every break as it is now."""
        return {**self.past.breaks, **self.changed}

    def distance(self, suspicion: Suspicion) -> int:
        """How many packages differ from the baseline's lock."""
        older, newer = self._older(suspicion), suspicion.observation
        if older is None or older.lock is None or newer.lock is None:
            return _FAR
        return len(older.lock.diff(newer.lock))

    def turned(self, suspicion: Suspicion) -> CellRecord:
        """The record of a cell that was good and failed tonight, once it is known what that is."""
        record, newer, signature = suspicion.record, suspicion.observation, suspicion.signature
        older = self._older(suspicion)
        if older is None or older.lock is None or newer.lock is None or signature is None:
            return evolve(record, standing=Standing.UNJUDGED, reason=f"{record.reason}; its last good run is not kept")
        if self._is_spent(suspicion.probe):
            return record
        self.reporter.report(Note(f"{record.name} turned bad: {record.reason}; running it again"))
        again = self._again(suspicion.probe, newer.lock)
        second = self._judge(signature, again)
        if second.verdict is not Verdict.BAD:
            return evolve(record, standing=Standing.FLAKY, reason=f"{record.reason}; run again: {second.reason}")
        if known := self._known(record.pattern, older.lock, newer.lock):
            return self.join(known, record)
        if self._is_spent(suspicion.probe):
            return record
        self.reporter.report(Note(f"{record.name}: running its last good environment again"))
        calm = self._again(suspicion.probe, older.lock)
        first = self._judge(signature, calm)
        is_gone = calm.outcome is Outcome.UNINSTALLABLE  # the two runs that are kept still tell something
        if (first.verdict is not Verdict.GOOD and not is_gone) or older.lock.id == newer.lock.id:
            why = f"what was good before is {first.verdict.value} tonight ({first.reason}), so no package is the cause"
            return evolve(record, standing=Standing.UNJUDGED, reason=f"{record.reason}; {why}")
        found = self._find(suspicion, older, signature, again=(calm, again))
        return self._new(suspicion, *found) if found is not None else record

    def join(self, known: Break, record: CellRecord) -> CellRecord:
        """A cell that is broken by a known break: its report lists it, and is open again if it was not."""
        label = self._label(record)
        known = self.known().get(known.id, known)
        if label not in known.cells or not known.is_open or any(fix.cell == label for fix in known.fixes):
            cells = known.cells if label in known.cells else (*known.cells, label)
            fixes = tuple(fix for fix in known.fixes if fix.cell != label)
            self._change(evolve(known, cells=cells, fixes=fixes, closed="", last_seen=self.start))
        return evolve(record, standing=Standing.BROKEN, broken_by=known.id)

    def mended(self, suspicion: Suspicion) -> None:
        """Note which release mended a cell of a known break; `suspicion.baseline` is how it was broken."""
        known = self.known().get(suspicion.baseline.broken_by)
        if known is None:
            return
        label = self._label(suspicion.baseline)
        if any(fix.cell == label for fix in known.fixes):
            return
        self.reporter.report(Note(f"{suspicion.record.name} is good again"))
        self._change(evolve(known, fixes=(*known.fixes, Fix(label, self._mended_by(suspicion, known), self.start))))

    def close(self, known: Break) -> None:
        """No cell is broken by it any more."""
        self._change(evolve(known, closed=self.start))

    def _mended_by(self, suspicion: Suspicion, known: Break) -> str:
        older = self.store.get(suspicion.baseline.observation)
        newer = suspicion.observation
        kept = self.reports.get(known.id)
        signature = kept.answer.signature if kept is not None else None
        if older is None or older.lock is None or newer.lock is None or signature is None:
            return "not known: the records of its last bad run are not kept"
        changes = older.lock.diff(newer.lock)
        if not changes:
            return "nothing that was installed: the same packages were bad before"
        for packages in self._mending.get(known.id, ()):
            if came_between(packages, older.lock, newer.lock):
                return releases_of(packages)
        if self._is_spent(suspicion.probe):
            return f"one of {len(changes)} packages that changed; which one was not searched, for want of time"
        found = self._find(suspicion, older, signature)
        if found is None:
            return f"one of {len(changes)} packages that changed; the search stopped, for want of time"
        _, answer = found
        if answer.culprit is None and len(answer.lock_changes) != 1:
            return f"one of: {releases_of(answer.lock_changes)}"
        packages = answer.culprit.packages if answer.culprit is not None else answer.lock_changes
        self._mending.setdefault(known.id, []).append(packages)
        return releases_of(packages)

    def _new(self, suspicion: Suspicion, plan: Plan, answer: Answer) -> CellRecord:
        record = suspicion.record
        culprit = answer.culprit.packages if answer.culprit is not None else ()
        id_ = break_id(record.pattern, culprit or answer.lock_changes)
        if (known := self.known().get(id_)) is not None:
            return self.join(known, record)
        kept = kept_answer(plan, answer, self.start, self.pass_env)
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
        self._change(new, evolve(kept, id=id_))
        self.reporter.report(Note(answer.sentence))
        return evolve(record, standing=Standing.BROKEN, broken_by=id_)

    def _change(self, known: Break, kept: KeptAnswer | None = None) -> None:
        """Keep a break's new state, and write its report anew."""
        self.changed[known.id] = known
        kept = kept or self.reports.get(known.id)
        if kept is not None:
            self.reports.write(evolve(kept, facts=facts_of_break(known)))

    def _find(
        self, suspicion: Suspicion, older: Observation, signature: Signature, *, again: tuple[Observation, ...] = ()
    ) -> tuple[Plan, Answer] | None:
        """The cause as closely as asked, or the package that mended it; None where the time ended before."""
        is_fix = suspicion.signature is None
        probe = suspicion.probe
        device = probe.combination.device
        finder = Finder(
            self._prober(probe),
            self.interpreters[probe.combination.python],
            self.index,
            self.lanes,
            Timed(self.reporter, self.budget, device),
        )
        # What is kept under a lock may have been asked for in other words, and on another day.
        as_of = probe.combination.as_of.isoformat() if probe.combination.as_of else None
        newer = evolve(suspicion.observation, requirements=probe.combination.requirements, as_of=as_of)
        try:
            turned = Turned(suspicion.subject, probe, older, newer, signature, is_fix=is_fix, again=again)
            return finder.find(turned, Level.PACKAGE if is_fix else self.depth)
        except OutOfTimeError:
            return None

    def _again(self, probe: Probe, lock: Lock) -> Observation:
        """One more run of a lock tonight; one that this night has made already counts."""
        prober = self._prober(probe)
        attempt = 1
        while True:
            prepared = prober.prepare(evolve(probe, lock=lock, attempt=attempt))
            if not prepared.cached or (prepared.observation and prepared.observation.started >= self.start):
                break
            attempt += 1
        observation = prober.execute(prepared)
        if not prepared.cached:
            self.budget.used(observation)
        return observation

    def _known(self, pattern: str, older: Lock, newer: Lock) -> Break | None:
        """The break that fails in this way and whose culprit came between two locks, else one without a culprit."""
        same = [known for known in self.known().values() if known.pattern == pattern]
        came = [known for known in same if came_between(known.culprit, older, newer)]
        return next(iter([*came, *(known for known in same if known.is_open and not known.culprit)]), None)

    def _older(self, suspicion: Suspicion) -> Observation | None:
        is_fix = suspicion.signature is None
        return self.store.get(suspicion.baseline.observation if is_fix else suspicion.record.good)

    def _judge(self, signature: Signature, observation: Observation) -> Judgement:
        return Judge(signature, self.store)(observation)

    def _prober(self, probe: Probe) -> Probing:
        return self.probers.by_python[probe.combination.python]

    def _is_spent(self, probe: Probe) -> bool:
        return self.budget.is_spent(probe.combination.device)

    def _label(self, record: CellRecord) -> str:
        return f"{self.matrix}: {record.name}"
