"""The release level of a culprit that is not the subject: which of its own releases, all else held."""

from __future__ import annotations

from attrs import evolve

from harness.investigation.bisect import Bisecting, BisectWatcher
from harness.investigation.culprit import Finding
from harness.investigation.levels.ground import Ground
from harness.investigation.plan import releases_between
from harness.investigation.sides import Side, Sides
from harness.model import Verdict


def narrow_release(ground: Ground, sides: Sides, package: Finding, watcher: BisectWatcher) -> tuple[Finding, Sides]:
    """The neighbouring releases of the culprit between which the verdict changes.

    Nothing to do where several packages moved, where one side lacks it, or where the two are neighbours already.
    """
    plan = ground.plan
    change = package.packages[0]
    if len(package.packages) != 1 or change.before is None or change.after is None:
        return package, sides
    releases = releases_between(ground.index, plan, change.name, change.before, change.after)
    if len(releases) <= 2:
        return package, sides
    question = evolve(plan.question, subject=change.name, find_fix=sides.before.verdict is Verdict.BAD, confirm=0)
    ends = {sides.before.verdict: 0, sides.after.verdict: len(releases) - 1}
    narrower = evolve(
        plan,
        question=question,
        repro=evolve(plan.repro, signature=ground.signature),
        releases=releases,
        good=ends[Verdict.GOOD],
        bad=ends[Verdict.BAD],
        left_out=(),
        as_of=sides.after.observation.as_of or "none",
        requirements=(*plan.requirements, plan.subject),
        anchor=sides.before.lock,
        choices=(),
    )
    answer = Bisecting(narrower, ground.prober, ground.lanes, watcher).run()
    ground.tally.ran_now += answer.probes
    if len(answer.sides) != 2 or any(side.lock is None for side in answer.sides):
        return evolve(package, notes=(*package.notes, answer.sentence)), sides
    before, after = answer.sides
    if before.lock is None or after.lock is None:
        return package, sides
    moved = tuple(c for c in before.lock.diff(after.lock))
    narrowed = Sides(Side(before.lock, sides.before.verdict, before), Side(after.lock, sides.after.verdict, after))
    note = () if len(answer.suspects) == 1 else (answer.sentence,)
    finding = evolve(
        package,
        packages=moved,
        proofs=(
            narrowed.before.as_proof(f"everything else held, {change.name} {before.lock.version_of(change.name)}"),
            narrowed.after.as_proof(f"everything else held, {change.name} {after.lock.version_of(change.name)}"),
        ),
        runs=package.runs + answer.probes,
        notes=(*package.notes, *note),
    )
    return finding, narrowed
