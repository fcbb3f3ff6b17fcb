"""Decides whether a changed cell is flaky, a known break or a new one, and finds what broke or fixed it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from attrs import define, evolve, field

from harness.catalogue.matching import sentence_on
from harness.culprit.trials import Trials
from harness.errors import BadRepository
from harness.events import Note
from harness.model import Change, Judgement, Lock, Observation, Outcome, Signature, Verdict
from harness.model.culprit import Level
from harness.model.text import listed
from harness.nightly.cause import Cause, Suspicion, named_tags, newest_releases
from harness.nightly.news import facts_of_break, releases_of
from harness.nightly.record import Break, CellRecord, CellStatus, Fix, Past, break_id, came_between
from harness.nightly.tonight import Budget, BudgetedLanes, OutOfTimeError
from harness.probing import Judge, Prepared, Probe
from harness.report.answer import write_reports
from harness.report.archive import Archive, KeptAnswer, kept_answer
from harness.report.phrases import title_of

if TYPE_CHECKING:
    from harness.asking.answer import Answer
    from harness.matrix.running import Sessions
    from harness.planning.inquiry import Scope
    from harness.probing.probe import Probing
    from harness.scheduling.scheduler import Lanes


_FAR = 10**6


@define
class Triage:
    """Settles the suspicions of one night. `start` is ISO 8601 in UTC; `changed` are the breaks that changed."""

    matrix: str
    start: str
    past: Past
    sessions: Sessions
    lanes: Lanes
    budget: Budget
    depth: Level = Level.REGION
    changed: dict[str, Break] = field(factory=dict, init=False)
    _fixes_found: dict[str, list[tuple[Change, ...]]] = field(factory=dict, init=False)

    def known(self) -> dict[str, Break]:
        """Return every break in its current state, by id."""
        return {**self.past.breaks, **self.changed}

    def distance(self, suspicion: Suspicion) -> int:
        """Return the number of packages that differ from the baseline's lock; very large if a lock is missing."""
        older, newer = self._older(suspicion), suspicion.observation
        if older is None or older.lock is None or newer.lock is None:
            return _FAR
        return len(older.lock.diff(newer.lock))

    def turned(self, suspicion: Suspicion) -> CellRecord:
        """Settle a cell that was good, or never judged, and failed tonight; returns its record."""
        if suspicion.cell.commits and not suspicion.record.good:
            compared = self._since_release(suspicion)
            if isinstance(compared, CellRecord):
                return compared
            suspicion = compared
        record, newer, signature = suspicion.record, suspicion.observation, suspicion.signature
        older = self._older(suspicion)
        if older is None or older.lock is None or newer.lock is None or signature is None:
            return evolve(
                record,
                standing=CellStatus.UNJUDGED,
                reason=f"{record.reason}; the record of its last good run is missing",
            )
        if self._is_spent(suspicion.probe):
            return record
        self._note(f"{record.name} turned bad: {record.reason}; running it again")
        again = self._again(suspicion.probe, newer.lock)
        second = self._judge(signature, again)
        if second.verdict is not Verdict.BAD:
            return evolve(record, standing=CellStatus.FLAKY, reason=f"{record.reason}; run again: {second.reason}")
        if known := self._known(suspicion, older.lock, newer.lock):
            return self.join(known, record)
        if self._is_spent(suspicion.probe):
            return record
        self._note(f"{record.name}: running its last good environment again")
        baseline_run = self._again(suspicion.earlier_probe, older.lock)
        first = self._judge(signature, baseline_run)
        is_gone = baseline_run.outcome is Outcome.UNINSTALLABLE  # the stored runs are still evidence
        is_same = older.lock.id == newer.lock.id and not suspicion.moved
        if (first.verdict is not Verdict.GOOD and not is_gone) or is_same:
            why = f"its last good environment is {first.verdict.value} now ({first.reason}), so no package is the cause"
            return evolve(record, standing=CellStatus.UNJUDGED, reason=f"{record.reason}; {why}")
        found = self._find(suspicion, older, signature, again=(baseline_run, again))
        return self._new(suspicion, found) if found is not None else record

    def join(self, known: Break, record: CellRecord) -> CellRecord:
        """Add a cell to a known break, and reopen the break if it was closed."""
        label = self._label(record)
        known = self.known().get(known.id, known)
        if label not in known.cells or not known.is_open or any(fix.cell == label for fix in known.fixes):
            cells = known.cells if label in known.cells else (*known.cells, label)
            fixes = tuple(fix for fix in known.fixes if fix.cell != label)
            self._change(evolve(known, cells=cells, fixes=fixes, closed="", last_seen=self.start))
        return evolve(record, standing=CellStatus.BROKEN, broken_by=known.id)

    def fixed(self, suspicion: Suspicion) -> None:
        """Record which release fixed a cell of a known break; `suspicion.baseline` is the broken record."""
        known = self.known().get(suspicion.baseline.broken_by)
        if known is None:
            return
        label = self._label(suspicion.baseline)
        if any(fix.cell == label for fix in known.fixes):
            return
        self._note(f"{suspicion.record.name} is good again")
        self._change(evolve(known, fixes=(*known.fixes, Fix(label, self._fixed_by(suspicion, known), self.start))))

    def close(self, known: Break) -> None:
        """Close a break: no cell is broken by it any more."""
        self._change(evolve(known, closed=self.start))

    def _fixed_by(self, suspicion: Suspicion, known: Break) -> str:
        older = self.sessions.store.get(suspicion.baseline.observation)
        newer = suspicion.observation
        kept = Archive(self.sessions.store).known(known.id)
        signature = kept.answer.signature if kept is not None else None
        if older is None or older.lock is None or newer.lock is None or signature is None:
            return "not known: the record of its last bad run is missing"
        changes = older.lock.diff(newer.lock)
        if not changes and not suspicion.moved:
            return "no package: the same packages were bad before"
        for packages in self._fixes_found.get(known.id, ()):
            if not suspicion.moved and came_between(packages, older.lock, newer.lock):
                return releases_of(packages)
        found = None if self._is_spent(suspicion.probe) else self._find(suspicion, older, signature)
        if found is None:
            among = "" if suspicion.moved else f"one of {len(changes)} packages that changed; "
            return f"{among}not bisected: the time budget ran out"
        if found.culprit is None and suspicion.moved:
            return f"not known: {found.sentence}"
        if found.culprit is None and len(found.lock_changes) != 1:
            return f"one of: {releases_of(found.lock_changes)}"
        if found.culprit is not None and (commits := found.culprit.finest.commits):
            return listed(f"{found.subject} commit {commit.described}" for commit in commits)
        packages = found.culprit.packages if found.culprit is not None else found.lock_changes
        self._fixes_found.setdefault(known.id, []).append(packages)
        return releases_of(packages)

    def _new(self, suspicion: Suspicion, answer: Answer) -> CellRecord:
        record = suspicion.record
        culprit = answer.culprit.packages if answer.culprit is not None else ()
        id_ = break_id(record.pattern, culprit or answer.lock_changes)
        if (known := self.known().get(id_)) is not None:
            return self.join(known, record)
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
            commits=answer.culprit.finest.commits if answer.culprit is not None else (),
            similar=_similar(suspicion.observation),
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

    def _find(
        self, suspicion: Suspicion, older: Observation, signature: Signature, *, again: tuple[Observation, ...] = ()
    ) -> Answer | None:
        """Find the cause down to `depth`, or the package that fixed it; None if the time budget ran out first."""
        probe = suspicion.probe
        lanes = BudgetedLanes(self.lanes, self.budget, probe.combination.device)
        judge = Judge(signature, self.sessions.store)

        def trials_of(scope: Scope) -> Trials:
            return Trials(scope, self._prober(probe), lanes, self.sessions.first.index, judge, self.sessions.reporter)

        # The stored observation may come from a question with other requirements or another date.
        as_of = probe.combination.as_of.isoformat() if probe.combination.as_of else None
        newer = evolve(suspicion.observation, requirements=probe.combination.requirements, as_of=as_of)
        depth = Level.PACKAGE if suspicion.is_fix else self.depth
        try:
            return Cause(trials_of, suspicion, older, newer, signature, depth, again).answer()
        except OutOfTimeError:
            return None

    def _since_release(self, suspicion: Suspicion) -> Suspicion | CellRecord:
        """Compare a cell without a good run with the newest releases; returns its record if they aren't good either."""
        record, signature = suspicion.record, suspicion.signature
        try:
            releases = newest_releases(suspicion.cell, self.sessions.first.index)
        except BadRepository as error:
            return evolve(record, reason=f"{record.reason}; {error.message}")
        if signature is None:
            return record
        commits, named = {project: sha for project, (_, sha) in releases.items()}, named_tags(releases)
        if self._is_spent(suspicion.probe):
            return evolve(record, standing=CellStatus.LEFT)
        self._note(f"{record.name} is bad and was never good: running the newest release, {named}")
        prober = self._prober(suspicion.probe)
        observation = self._execute(prober.prepare(suspicion.probe_at(commits)))
        judged = self._judge(signature, observation)
        if judged.verdict is not Verdict.GOOD:
            said = "fails too" if judged.verdict is Verdict.BAD else f"can't be judged: {judged.reason}"
            return evolve(record, reason=f"{record.reason}; the newest release, {named}, {said}")
        known = evolve(record, standing=CellStatus.TURNED, good=observation.key, good_commits=commits)
        return evolve(suspicion, record=known)

    def _again(self, probe: Probe, lock: Lock) -> Observation:
        """Run a lock again, unless a repeated run of it is already from this night."""
        prober = self._prober(probe)
        attempts = (prober.prepare(evolve(probe, lock=lock, attempt=attempt)) for attempt in itertools.count(1))
        prepared = (
            one for one in attempts if not one.cached or (one.observation and one.observation.started >= self.start)
        )
        return self._execute(next(prepared))

    def _execute(self, prepared: Prepared) -> Observation:
        observation = self._prober(prepared.probe).execute(prepared)
        if not prepared.cached:
            self.budget.used(observation)
        return observation

    def _known(self, suspicion: Suspicion, older: Lock, newer: Lock) -> Break | None:
        """Return a break with this pattern whose culprit came between two runs, else an open one without a culprit."""
        same = [known for known in self.known().values() if known.pattern == suspicion.record.pattern]
        for known in same:
            if suspicion.has_come_with(known) if known.commits else came_between(known.culprit, older, newer):
                return known
        return next((known for known in same if known.is_open and not known.culprit), None)

    def _older(self, suspicion: Suspicion) -> Observation | None:
        return self.sessions.store.get(suspicion.baseline.observation if suspicion.is_fix else suspicion.record.good)

    def _judge(self, signature: Signature, observation: Observation) -> Judgement:
        return Judge(signature, self.sessions.store)(observation)

    def _prober(self, probe: Probe) -> Probing:
        return self.sessions.probers.prober_of(probe)

    def _is_spent(self, probe: Probe) -> bool:
        return self.budget.is_spent(probe.combination.device)

    def _note(self, sentence: str) -> None:
        self.sessions.reporter.report(Note(sentence))

    def _label(self, record: CellRecord) -> str:
        return f"{self.matrix}: {record.name}"


def _similar(observation: Observation) -> str:
    """Return which known regression the failure looks like, "" for none."""
    raised, lock = observation.exception, observation.lock
    if raised is None or lock is None:
        return ""
    return sentence_on(list(raised.chain()), lock.version_of)
