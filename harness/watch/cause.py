"""Finds the package, and what in it, that broke a cell between its last good run and tonight's."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.bisection.answer import Answer, Asked, Failure, Guilty, Status
from harness.bisection.boundaries import boundary_of, candidates_of
from harness.bisection.wording import cause_of, found_in_words
from harness.culprit.descent import find_culprit
from harness.culprit.sides import Side, Sides
from harness.environment import Uninstallable
from harness.model import Change, Observation, Signature, Verdict, name_of
from harness.model.boundary import Boundary
from harness.model.culprit import Culprit, Level
from harness.model.text import listed
from harness.model.verdict import Step
from harness.question.inquiry import Scope
from harness.question.question import Policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.culprit.trials import Trials
    from harness.probing import Probe
    from harness.watch.record import CellRecord


_FAR = 10**6


@frozen
class CellChange:
    """A cell that was good in an earlier run and failed tonight.

    `older` is the earlier run, None if its record is missing; `newer` is tonight's. `signature` is how the failure is
    recognised, `subject` the package that the question is about (normalised).
    """

    record: CellRecord
    probe: Probe
    older: Observation | None
    newer: Observation
    signature: Signature
    subject: str

    @property
    def sides(self) -> Sides | None:
        """Both runs with their locks; None if one has no lock, or its record is missing."""
        older, newer = self.older, self.newer
        if older is None or older.lock is None or newer.lock is None:
            return None
        return Sides(Side(older.lock, Verdict.GOOD, older), Side(newer.lock, Verdict.BAD, newer))

    @property
    def distance(self) -> int:
        """The number of packages that differ between the two runs; very large if a lock is missing."""
        sides = self.sides
        return len(sides.before.lock.diff(sides.after.lock)) if sides is not None else _FAR


@frozen
class Cause:
    """The search for what made the difference between the two sides of a cell's change.

    `trials_of` returns what runs and judges probes; `again` are repeated runs of both locks.
    """

    trials_of: Callable[[Scope], Trials]
    change: CellChange
    sides: Sides
    again: tuple[Observation, ...] = ()

    def answer(self) -> Answer:
        """Find what broke the cell, down to the lines.

        Raises `OutOfTimeError`, `Interrupted`, `NoNetwork` and `NoSpace`; finished runs are kept.
        """
        begun = time.monotonic()
        answer = self._package()
        return evolve(answer, wall_s=time.monotonic() - begun)

    @property
    def scope(self) -> Scope:
        """What all probes of the cell share."""
        change, combination = self.change, self.change.probe.combination
        return Scope(
            evolve(change.probe.repro, signature=self.change.signature),
            combination.python,
            _without(combination.requirements, change.subject),
            combination.holds,
            combination.device,
            combination.from_source,
            change.subject,
            Policy(prereleases=bool(combination.prereleases)),
        )

    @property
    def asked(self) -> Asked:
        """The question as a user would have asked it."""
        as_of = self.change.probe.combination.as_of
        return Asked.of(self.scope, as_of=as_of.isoformat() if as_of else "none", depth=Level.REGION.value)

    def _package(self) -> Answer:
        """Find the package between the two locks, and search it down to the depth."""
        trials = self.trials_of(self.scope)
        if isinstance(gone := trials.prober.builder.build(self.sides.before.lock), Uninstallable):
            return self._unsearched(f"the last good environment can't be built any more ({gone.words})")
        culprit = find_culprit(trials, self.sides, Level.REGION)
        if culprit is None or not culprit.findings[0].is_shown_one_way:
            answer = self._unsearched("no smaller part of the change was proved to make the difference")
        else:
            guilty = Guilty(self._boundary(culprit, trials), culprit)
            answer = self._answer(guilty)
            requirements = _without((*answer.asked.requirements, self.change.subject), guilty.package)
            asked = evolve(answer.asked, subject=guilty.package, requirements=requirements)
            sentence = f"{found_in_words(answer).rstrip('.')}: {cause_of(guilty)}."
            answer = evolve(answer, asked=asked, sentence=sentence)
        return evolve(answer, culprit_probes=trials.tally.ran_now)

    def _unsearched(self, why: str) -> Answer:
        """Return an answer from the two runs alone; it names the package if only one changed."""
        before, after = self.sides.before, self.sides.after
        # The largest version step first.
        changes = tuple(sorted(before.lock.diff(after.lock), key=lambda change: (change.step, change.name)))
        boundary = Boundary(Change(self.change.subject, None, None), sides=(before.observation, after.observation))
        if len(changes) != 1 or not (changes[0].before and changes[0].after):
            sentence = f"Not sure what broke it: {listed(map(str, changes)) or 'no package'} changed, and {why}."
            return evolve(self._answer(boundary), sentence=sentence)
        alone = changes[0]
        boundary = evolve(boundary, change=alone)
        answer = self._answer(Guilty(boundary))
        return evolve(answer, sentence=f"{found_in_words(answer)} Nothing more is known: {why}.")

    def _answer(self, found: Guilty | Boundary) -> Answer:
        if isinstance(found, Boundary):
            failure = Failure((), self.change.signature, Status.INCONCLUSIVE, boundary=found)
        else:
            failure = Failure((), self.change.signature, Status.FOUND, (found,))
        return Answer(self.asked, failure.status, failures=(failure,))

    def _boundary(self, culprit: Culprit, trials: Trials) -> Boundary:
        """Return the boundary of the culprit: the bisection over its releases, or else the two sides."""
        change, searched = culprit.packages[0], trials.tally.searched
        sides = trials.tally.sides or self.sides
        ends = (sides.before.observation, sides.after.observation)
        versions = searched.axis.names if searched is not None else (change.before, change.after)
        releases = [trials.index.known_release(change.name, version) for version in versions if version]
        candidates = candidates_of(tuple(release for release in releases if release is not None))
        boundary = (
            boundary_of(searched, candidates)
            if searched is not None
            else Boundary(Change("", None, None), candidates=candidates)
        )
        steps: tuple[Step, ...] = ()
        if change.before is not None and change.after is not None:
            steps = boundary.steps or tuple(_step(change.name, run, trials) for run in ends)
            known = {step.observation for step in steps}
            again = (_step(change.name, run, trials) for run in self.again if run.key not in known)
            steps = (*steps, *(step for step in again if step.release))
        return evolve(
            boundary,
            change=change,
            suspects=(change.after,) if change.after else (),
            sides=ends,
            steps=steps,
        )


def _step(package: str, run: Observation, trials: Trials) -> Step:
    """One run as a step of a search over a package's releases."""
    told = trials.judge(run)
    release = (run.lock.version_of(package) if run.lock is not None else None) or ""
    return Step(release, told.verdict, told.reason, run.key, cached=False, seconds=run.duration_s, attempt=run.attempt)


def _without(requirements: tuple[str, ...], project: str) -> tuple[str, ...]:
    return tuple(text for text in requirements if name_of(text) != project)
