"""Scans for windows: stored verdicts come first, then the scan runs the releases that still matter."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.events import Judged, LookedUp, Progress, Reporter
from harness.history.findings import history_of, runs_of_positions
from harness.history.plan import HistoryPlan, make_history_plan
from harness.planning.anchor import Anchor, find_anchor
from harness.planning.announcing import search_began
from harness.probe import Judge
from harness.probe.judge import Record
from harness.probe.probe import known_attempts
from harness.scheduling.loop import Engine
from harness.search import ByNumber, Trial, WindowScan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.history.answer import History
    from harness.model import Judgement, Observation
    from harness.probe import Probe
    from harness.probe.probe import Probing
    from harness.request.question import Question
    from harness.scheduling.scheduler import Lanes
    from harness.session import Session


@frozen
class Range:
    """The range of a scan: the oldest and newest release, and the largest allowed gap between runs."""

    since: str | None = None
    until: str | None = None
    max_gap: int | None = None


def ask(session: Session, question: Question, wanted: Range = Range()) -> tuple[HistoryPlan, History]:
    """Plan and run a scan for windows. Raises the same errors as `harness.bisect.investigate.ask`."""
    device, why = session.device_for(question.repro)
    made = make_history_plan(
        question,
        since=wanted.since,
        until=wanted.until,
        max_gap=wanted.max_gap,
        index=session.index,
        interpreter=session.interpreter,
        device=device,
    )
    made = evolve(made, plan=evolve(made.plan, choices=(*made.plan.choices, why)))
    with session.lanes(device, question.repro) as lanes:
        return made, Scanning(made, session.prober, lanes, session.reporter).run()


@frozen
class Scanning:
    """One scan over the releases of a plan."""

    history_plan: HistoryPlan
    prober: Probing
    lanes: Lanes
    reporter: Reporter

    def run(self) -> History:
        """Run the whole scan. Raises `Interrupted`, `NoNetwork`, `NoSpace`."""
        begun = time.monotonic()
        plan, store = self.history_plan.plan, self.prober.store
        record = Record[Trial](plan.repro.signature, reporter=self.reporter)
        anchor = find_anchor(plan, self.prober)
        scan = WindowScan(len(plan.releases), max_gap=self.history_plan.stride)
        search = ByNumber(scan, lambda trial: Judge(record.signature, store).reading(record.observations[trial]))

        def progress() -> Progress:
            return Progress(scan.states, search.remaining())

        wanted = f"every window in which {plan.repro.name} was broken"
        self.reporter.report(search_began(plan, wanted, progress()))

        def probe_of(trial: Trial) -> Probe:
            return plan.probe(trial.position, anchor.near(trial.position), trial.attempt)

        def version_of(trial: Trial) -> str:
            return str(plan.releases[trial.position].version)

        def label_of(trial: Trial) -> str:
            return version_of(trial) if trial.attempt == 0 else f"{version_of(trial)} (run {trial.attempt + 1})"

        def judged(trial: Trial, observation: Observation, cached: bool) -> Judgement:
            judgement = record.judge(trial, observation, store)
            record.write_down(version_of(trial), judgement, observation, cached=cached, attempt=trial.attempt)
            return judgement

        engine = Engine(self.prober, self.lanes, probe_of, label_of, judged, self.reporter, progress)
        # Without a signature, it is captured from the first failure. Until then the order must not depend on the store,
        # or the same question could be judged differently the next time.
        engine.drive(search, width=1, until=lambda: record.signature is not None)
        known = []
        for position in self._known(anchor):
            for trial, observation in self._attempts(position, anchor):
                if trial not in record.observations and not search.is_settled(position):
                    known.append((trial, observation, judged(trial, observation, cached=True)))
                    search.tell(trial, known[-1][2].verdict)
        for trial, observation, judgement in known:
            self.reporter.report(Judged(label_of(trial), judgement, observation, cached=True, progress=progress()))
        engine.drive(search)
        rows = runs_of_positions(record, Judge(record.signature, store), search.is_settled)
        return history_of(self.history_plan, scan.result, record, rows, time.monotonic() - begun)

    def _attempts(self, position: int, anchor: Anchor) -> Iterator[tuple[Trial, Observation]]:
        """Yield the stored runs of a release."""
        probe = self.history_plan.plan.probe(position, anchor.near(position))
        for attempt, observation in enumerate(known_attempts(probe, self.prober)):
            yield Trial(position, attempt), observation

    def _known(self, anchor: Anchor) -> Iterator[int]:
        """Yield the positions of the releases that the store has a run of, the newest first.

        A release that was run near another lock is resolved again, because its other packages may still be the same.
        Resolving is much faster than a run.
        """
        plan, prober = self.history_plan.plan, self.prober
        probes = {p: plan.probe(p, anchor.near(p)) for p in reversed(range(len(plan.releases)))}
        known = {position: prober.known(probe) for position, probe in probes.items()}
        unasked = [
            position
            for position, probe in probes.items()
            if known[position] is None and prober.store.get_resolution(probe.combination.resolution_key) is None
        ]
        seen = self._seen() if unasked else set()
        again = [position for position in unasked if str(plan.releases[position].version) in seen]
        for done, position in enumerate(again):
            self.reporter.report(LookedUp(done, len(again)))
            prober.resolve(probes[position])
            known[position] = prober.known(probes[position])
        if again:
            self.reporter.report(LookedUp(len(again), len(again)))
        for position in probes:
            if known[position] is not None:
                yield position

    def _seen(self) -> set[str | None]:
        """Return the releases for which the store has an observation of this repro on this device."""
        plan = self.history_plan.plan
        return {
            observation.lock.version_of(plan.subject)
            for observation in self.prober.store.observations()
            if observation.lock is not None
            and (observation.repro_digest, observation.params) == (plan.repro.digest, plan.repro.params)
            and observation.device is plan.device
            and not observation.mixture
        }
