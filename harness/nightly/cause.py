"""Finds why a cell changed between its last good run and tonight's, as an answer for a report."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from attrs import evolve, frozen
from packaging.requirements import Requirement

from harness.bisect.answer import Answer, Status
from harness.bisect.wording import sentence_with_culprit
from harness.culprit.counterfactual import Trials
from harness.culprit.descent import find_culprit
from harness.culprit.sides import Side, Sides
from harness.environment import Uninstallable
from harness.errors import UnknownProject
from harness.model import Change, Observation, Signature, Verdict, normalized_name
from harness.model.culprit import Culprit, Level
from harness.model.step import Step
from harness.model.words import listed
from harness.planning.plan import Plan
from harness.probe import Judge
from harness.request.question import Question

if TYPE_CHECKING:
    from harness.culprit.release_search import Searched
    from harness.environment import Index, Interpreter
    from harness.events import Reporter
    from harness.model import Lock, Release
    from harness.probe import Probe
    from harness.probe.probe import Probing
    from harness.scheduling.scheduler import Lanes

_WAS = {False: "the last good", True: "the last bad"}


@frozen
class Turned:
    """Two runs of a cell with different verdicts, the older first, the probe of the newer, and the bug's signature.

    `subject` is the package of the cell that the question is about; `again` are repeated runs of both locks.
    """

    subject: str
    probe: Probe
    older: Observation
    newer: Observation
    signature: Signature
    is_fix: bool = False
    again: tuple[Observation, ...] = ()

    @property
    def changes(self) -> tuple[Change, ...]:
        """The packages that differ, the largest version step first."""
        if self.older.lock is None or self.newer.lock is None:
            return ()
        return tuple(sorted(self.older.lock.diff(self.newer.lock), key=lambda change: (change.step, change.name)))


@frozen
class Finder:
    """Finds the change that made the difference between two runs."""

    prober: Probing
    interpreter: Interpreter
    index: Index
    lanes: Lanes
    reporter: Reporter

    def find(self, turned: Turned, depth: Level = Level.REGION) -> tuple[Plan, Answer]:
        """Find the cause; returns the question as a user would have asked it, and its answer.

        Raises `OutOfTimeError`, `Interrupted`, `NoNetwork` and `NoSpace`; finished runs are kept.
        """
        begun = time.monotonic()
        plan = self.plan(turned)
        older, newer = turned.older.lock, turned.newer.lock
        if older is None or newer is None:
            raise ValueError("both runs of a judged cell have a lock")
        sides = _sides(turned, older, newer)
        if isinstance(gone := self.prober.builder.build(older), Uninstallable):
            return plan, unsearched(
                plan, turned, f"{_WAS[turned.is_fix]} environment can't be built any more ({gone.words})"
            )
        judge = Judge(turned.signature, self.prober.store)
        trials = Trials(plan, self.prober, self.lanes, self.index, judge, self.reporter)
        culprit = find_culprit(trials, sides, depth)
        if culprit is None or not culprit.findings[0].is_shown_one_way:
            why = "no smaller part of the change was proved to make the difference"
            return plan, evolve(unsearched(plan, turned, why), culprit_probes=trials.tally.ran_now)
        searched = trials.tally.searched
        answer = self._answer(turned, culprit, plan, judge, searched)
        answer = evolve(answer, culprit_probes=trials.tally.ran_now, wall_s=time.monotonic() - begun)
        return self._plan_of_report(plan, answer, culprit, searched), answer

    def plan(self, turned: Turned) -> Plan:
        """Return the question about a changed cell, as a user would have asked it."""
        probe = turned.probe
        combination = probe.combination
        subject = normalized_name(turned.subject)
        return Plan(
            question=Question(
                subject=subject,
                repro=probe.repro,
                find_fix=turned.is_fix,
                prereleases=bool(combination.prereleases),
                from_source=combination.from_source,
            ),
            repro=evolve(probe.repro, signature=turned.signature),
            interpreter=self.interpreter,
            device=combination.device,
            releases=(),
            good=None,
            bad=None,
            left_out=(),
            as_of=combination.as_of.isoformat() if combination.as_of else "none",
            requirements=tuple(text for text in combination.requirements if _name(text) != subject),
            holds=combination.holds,
        )

    def _answer(self, turned: Turned, culprit: Culprit, plan: Plan, judge: Judge, searched: Searched | None) -> Answer:
        change = culprit.packages[0]
        before, after = _closest(turned, culprit)
        answer = Answer(
            subject=change.name,
            repro=turned.probe.repro.name,
            status=Status.FIXED if turned.is_fix else Status.FOUND,
            sentence=release_sentence(culprit.packages, is_fix=turned.is_fix),
            signature=turned.signature,
            steps=_steps(turned, change, (before, after), judge, searched),
            suspects=(change.after,) if change.after else (),
            device=plan.device.value,
            python=plan.interpreter.version,
            as_of=plan.as_of,
            lock_changes=before.lock.diff(after.lock) if before.lock and after.lock else (),
            sides=(before, after),
            culprit=culprit,
        )
        answer = _with_ends(answer, change, is_fix=turned.is_fix)
        return evolve(answer, sentence=sentence_with_culprit(answer, culprit))

    def _plan_of_report(self, plan: Plan, answer: Answer, culprit: Culprit, searched: Searched | None) -> Plan:
        """Return the plan with the culprit as its subject and the culprit's releases."""
        change = culprit.packages[0]
        releases = searched.plan.releases if searched is not None else self._known(change)
        asked = [text for text in (*plan.requirements, plan.subject) if _name(text) != answer.subject]
        return evolve(
            plan,
            question=evolve(plan.question, subject=answer.subject),
            releases=releases,
            requirements=tuple(asked),
        )

    def _known(self, change: Change) -> tuple[Release, ...]:
        try:
            ends = [self.index.release(change.name, version) for version in (change.before, change.after) if version]
        except UnknownProject:
            return ()
        return tuple(release for release in ends if release is not None)


def release_sentence(packages: tuple[Change, ...], *, is_fix: bool) -> str:
    """Say which release broke or fixed it, and the verdicts before and after."""
    verb, was, now = ("fixed", "bad", "good") if is_fix else ("broke", "good", "bad")
    change = packages[0]
    if len(packages) > 1:
        steps = listed(str(step) for step in packages)
        return f"{steps} together {verb} it."
    if change.after is None:
        return f"It was {was} with {change.name} {change.before} and is {now} without it."
    if change.before is None:
        return f"{change.name} {change.after} {verb} it: it was {was} without it."
    return f"{change.name} {change.after} {verb} it: {change.before} is {was}, {change.after} is {now}."


def unsearched(plan: Plan, turned: Turned, why: str) -> Answer:
    """Return an answer from the two runs alone; it names the package if only one changed. `why` is the reason."""
    changes = turned.changes
    alone = changes[0] if len(changes) == 1 else None
    is_named = alone is not None and alone.before is not None and alone.after is not None
    if alone is not None and is_named:
        sentence = f"{release_sentence((alone,), is_fix=turned.is_fix)} Nothing more is known: {why}."
    else:
        moved = listed(str(change) for change in changes) or "no package"
        sentence = f"Not sure what {'fixed' if turned.is_fix else 'broke'} it: {moved} changed, and {why}."
    answer = Answer(
        subject=alone.name if alone is not None else plan.subject,
        repro=turned.probe.repro.name,
        status=(Status.FIXED if turned.is_fix else Status.FOUND) if is_named else Status.INCONCLUSIVE,
        sentence=sentence,
        signature=turned.signature,
        steps=(),
        device=plan.device.value,
        python=plan.interpreter.version,
        as_of=plan.as_of,
        lock_changes=changes,
        sides=(turned.older, turned.newer),
    )
    return _with_ends(answer, alone, is_fix=turned.is_fix) if alone is not None and is_named else answer


def _with_ends(answer: Answer, change: Change, *, is_fix: bool) -> Answer:
    if is_fix:
        return evolve(answer, last_bad=change.before, first_good=change.after)
    return evolve(answer, last_good=change.before, first_bad=change.after)


def _steps(
    turned: Turned, change: Change, ends: tuple[Observation, Observation], judge: Judge, searched: Searched | None
) -> tuple[Step, ...]:
    """Return the steps of the bisection over the culprit's releases, or the two sides; then the repeated runs."""
    if change.before is None or change.after is None:
        return ()
    steps = tuple(searched.record.steps) if searched is not None else ()
    steps = steps or tuple(_step(judge, change.name, run) for run in ends)
    known = {step.observation for step in steps}
    again = (_step(judge, change.name, run) for run in turned.again if run.key not in known)
    return (*steps, *(step for step in again if step.release))


def _step(judge: Judge, package: str, run: Observation) -> Step:
    """One run as a step of a search over a package's releases."""
    judgement = judge(run)
    release = (run.lock.version_of(package) if run.lock is not None else None) or ""
    return Step(
        release, judgement.verdict, judgement.reason, run.key, cached=False, seconds=run.duration_s, attempt=run.attempt
    )


def _sides(turned: Turned, older: Lock, newer: Lock) -> Sides:
    was, now = (Verdict.BAD, Verdict.GOOD) if turned.is_fix else (Verdict.GOOD, Verdict.BAD)
    return Sides(Side(older, was, turned.older), Side(newer, now, turned.newer))


def _closest(turned: Turned, culprit: Culprit) -> tuple[Observation, Observation]:
    """Return the pair of runs that prove the package whose locks differ least."""
    was, now = (Verdict.BAD, Verdict.GOOD) if turned.is_fix else (Verdict.GOOD, Verdict.BAD)
    proofs = [proof for proof in culprit.findings[0].proofs if proof.holds and proof.observation is not None]
    older = [turned.older, *(p.observation for p in proofs if p.verdict is was and p.observation)]
    newer = [turned.newer, *(p.observation for p in proofs if p.verdict is now and p.observation)]
    culprits = set(culprit.packages)

    def distance(pair: tuple[Observation, Observation]) -> tuple[int, int]:
        one, other = pair[0].lock, pair[1].lock
        changes = one.diff(other) if one is not None and other is not None else ()
        return len(culprits.difference(changes)), len(changes)

    return min(((one, other) for one in older for other in newer), key=distance)


def _name(requirement: str) -> str:
    return normalized_name(Requirement(requirement).name)
