"""Searches the levels below each culprit of an answer between worlds, and makes an answer for its report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve, field, frozen

from harness.bisect.answer import Answer, Status
from harness.bisect.constraints import constraint_of
from harness.bisect.groups import Group, judge_group, seen_by
from harness.bisect.wording import culprit_sentence
from harness.culprit.counterfactual import Trials
from harness.culprit.descent import find_culprit
from harness.culprit.sides import Side, Sides
from harness.model import Judgement, Observation, Verdict
from harness.model.culprit import Level
from harness.planning.plan import Plan
from harness.probe import Judge

if TYPE_CHECKING:
    from harness.bisect.held_back import Means
    from harness.bisect.upgrade_answer import GroupAnswer, PackageCulprit, UpgradeAnswer
    from harness.planning.world import World
    from harness.request.question import Question


@frozen
class _GroupJudge(Judge):
    """Judges a run by one group of tests."""

    group: Group = field(kw_only=True)

    def __call__(self, observation: Observation) -> Judgement:
        """Return the verdict on one observation, with its reason."""
        return judge_group(observation, self.group) if self.group.tests else super().__call__(observation)


def deepened(answer: UpgradeAnswer, means: Means, world: World, question: Question, until: Level) -> UpgradeAnswer:
    """Search each culprit down to `until`, if its first bad release fails like the bad end; returns the new answer.

    `question` has the settings for every culprit; its subject is replaced.
    """
    groups = tuple(
        evolve(
            group, culprits=tuple(_deeper(culprit, group, means, world, question, until) for culprit in group.culprits)
        )
        for group in answer.groups
    )
    return evolve(answer, groups=groups)


def answers_of(answer: UpgradeAnswer, means: Means, world: World, question: Question) -> list[tuple[Plan, Answer]]:
    """Return a plan and an answer for the report of each proved culprit."""
    found: dict[tuple[str, str | None], tuple[Plan, Answer]] = {}
    # Reports must not show where the copy of the project is on this machine.
    told = evolve(question, repro=evolve(question.repro, project="", inside="", search_path=()))
    for group in answer.groups:
        for culprit in group.culprits:
            key = (culprit.package, culprit.boundary.first_bad)
            if culprit.is_proved and key not in found:
                plan = _plan(culprit, means, world, told)
                found[key] = plan, _answer(culprit, group, plan)
    return list(found.values())


def _deeper(
    culprit: PackageCulprit, group: GroupAnswer, means: Means, world: World, question: Question, until: Level
) -> PackageCulprit:
    sides = _sides(culprit)
    tests = Group(group.tests, group.signature)
    judge = _GroupJudge(group.signature, means.prober.store, group=tests)
    if sides is None or judge(sides.after.observation).verdict is not Verdict.BAD:
        return culprit
    if group.tests:  # use the traceback and exception of the group's own tests
        sides = evolve(sides, after=evolve(sides.after, observation=seen_by(sides.after.observation, tests)))
    plan = _plan(culprit, means, world, question)
    trials = Trials(plan, means.prober, means.lanes, means.index, judge, means.reporter)
    found = find_culprit(trials, sides, until, are_neighbours=True)
    means.count.ran_now += trials.tally.ran_now
    return evolve(culprit, deeper=found)


def _sides(culprit: PackageCulprit) -> Sides | None:
    if len(culprit.boundary.sides) != 2:
        return None
    before, after = culprit.boundary.sides
    if before.lock is None or after.lock is None:
        return None
    return Sides(Side(before.lock, Verdict.GOOD, before), Side(after.lock, Verdict.BAD, after))


def _plan(culprit: PackageCulprit, means: Means, world: World, question: Question) -> Plan:
    releases = culprit.boundary.releases
    return Plan(
        question=evolve(question, subject=culprit.package),
        repro=question.repro,
        interpreter=means.interpreter,
        device=world.request.device,
        releases=releases,
        good=0,
        bad=len(releases) - 1,
        left_out=(),
        as_of=world.as_of.isoformat() if world.as_of is not None else "none",
        requirements=tuple(text for text in world.requirements if text != culprit.package),
        holds=world.request.holds,
    )


def _answer(culprit: PackageCulprit, group: GroupAnswer, plan: Plan) -> Answer:
    boundary = culprit.boundary
    answer = Answer(
        subject=culprit.package,
        repro=plan.repro.name,
        status=Status.FOUND,
        sentence=f"{culprit.package} {boundary.first_bad} broke it: {boundary.last_good} is good, "
        f"{boundary.first_bad} is bad.",
        signature=group.signature,
        steps=boundary.steps,
        last_good=boundary.last_good,
        first_bad=boundary.first_bad,
        suspects=boundary.suspects,
        device=plan.device.value,
        python=plan.interpreter.version,
        as_of=plan.as_of,
        left_out=boundary.left_out,
        lock_changes=culprit.moved,
        sides=boundary.sides,
        culprit=culprit.deeper,
        constraint=constraint_of(boundary),
        evidence=culprit.evidence,
    )
    if culprit.deeper is None:
        return answer
    return evolve(answer, sentence=f"{answer.sentence} {culprit_sentence(answer, culprit.deeper)}")
