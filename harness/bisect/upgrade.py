"""Finds every culprit between two worlds: run the ends, group new failures, find what to hold back, verify it.

Days are not bisected, because a day is only a name for its packages. A search for the packages that must be held back
takes about 2 log2(r) runs if the culprit is the r-th most likely. A bisection over some hundred upload times would take
more runs before it named a package.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from attrs import define, evolve, field

from harness.bisect.answer import Status
from harness.bisect.constraints import constraints_of
from harness.bisect.culprits import Search, culprits_of
from harness.bisect.group_questions import GroupQuestion, GroupQuestions, questions_between
from harness.bisect.held_back import Means, find_held_back, ranked
from harness.bisect.peeling import narrowed, peeled
from harness.bisect.time_limits import soon_stopped
from harness.bisect.upgrade_answer import GroupAnswer, PackageCulprit, UpgradeAnswer
from harness.bisect.upgrade_wording import advice_on, advice_on_command, advice_on_limits, last_words, sentence_of
from harness.errors import UserMistake
from harness.events import Note
from harness.model import Change, Observation, Outcome, Repro
from harness.model.text import counted, one_line
from harness.planning.limits import limits_of

if TYPE_CHECKING:
    from harness.planning.world import Versions, World

_ROUNDS = 5
_MOST_GROUPS = 12
OnlyTests = Callable[[Repro, tuple[str, ...]], Repro]


@define
class Upgrade:
    """One question between two worlds.

    `before` yields worlds further and further back, each with its name. `only` restricts a command to some tests.
    `subject` is the only package to search, "" for all.
    """

    means: Means
    repro: Repro
    bad: World
    good: World | None
    before: Callable[[World], Iterator[tuple[str, World]]]
    only: OnlyTests
    subject: str = ""
    _found: dict[str, PackageCulprit] = field(factory=dict, init=False)
    _good_seen: Observation | None = field(default=None, init=False)

    def run(self) -> UpgradeAnswer:
        """Answer the question. Raises `UserMistake`, `Interrupted`, `NoNetwork` and `NoSpace`."""
        begun = time.monotonic()
        answer = self._answer()
        lock = self.bad.lock
        return evolve(
            answer,
            told=(*(self.good.told if self.good is not None else ()), *self.bad.told, *answer.told),
            device=self.bad.request.device.value,
            python=lock.python,
            probes=self.means.count.ran_now,
            wall_s=time.monotonic() - begun,
        )

    def _answer(self) -> UpgradeAnswer:
        if self.good is not None:
            self._check_different(self.good)
        bad_run = self.means.observe(f"the bad end, {self.bad.end.text}", self.bad.itself())
        nothing = self._without_failure(bad_run)
        if nothing is not None:
            return nothing
        good_run = self._good_run(bad_run)
        if good_run is None or self.good is None:
            return evolve(self._plain(Status.NOT_A_REGRESSION, (bad_run,)), advice=advice_on(bad_run))
        asked = questions_between(good_run, bad_run, self.means.prober.store, self.repro.signature)
        if not asked.questions:
            return evolve(
                self._plain(Status.NOT_A_REGRESSION, (good_run, bad_run)),
                failing_at_both=asked.failing_at_both,
                advice=advice_on(good_run, bad_run) or advice_on_command(*map(self._failure, (good_run, bad_run))),
            )
        return self._groups(asked, good_run, bad_run, self.good)

    def _failure(self, run: Observation) -> str:
        """Describe how a whole command failed."""
        return last_words(self.means.prober.store.log(run)) or run.detail

    def _check_different(self, good: World) -> None:
        if good.lock.diff(self.bad.lock):
            return
        limits = limits_of(self.bad, self.means.index, self.means.interpreter)
        hint = advice_on_limits(limits) or "choose ends that are further apart"
        raise UserMistake(
            f"both ends install the same packages: {good.end.text} and {self.bad.end.text} resolve to the same "
            f"{counted(len(good.lock.pins), 'release')}",
            hint=hint,
        )

    def _without_failure(self, run: Observation) -> UpgradeAnswer | None:
        """Return the answer if the bad end does not fail, else None. Raises `UserMistake` if it can't be judged."""
        if run.outcome is Outcome.COMPLETED:
            limits = limits_of(self.bad, self.means.index, self.means.interpreter)
            return evolve(self._plain(Status.NO_FAILURE, (run,)), advice=advice_on_limits(limits))
        _refuse_mistake(run)
        if not run.outcome.ran or run.outcome in (Outcome.OUT_OF_MEMORY, Outcome.DECLINED):
            raise UserMistake(f"the bad end ({self.bad.end.text}) can't be run: {run.detail}")
        return None

    def _good_run(self, bad_run: Observation) -> Observation | None:
        """Return the run of the good end; without one, the first run back in time that passes more. None if none."""
        if self.good is not None:
            run = self.means.observe(f"the good end, {self.good.end.text}", self.good.itself())
            if not run.outcome.ran:
                raise UserMistake(f"the good end ({self.good.end.text}) can't be run: {run.detail}")
            _refuse_mistake(run)
            return run
        seen = {self.bad.lock.id}
        for name, world in self.before(self.bad):
            if world.lock.id in seen:
                continue
            seen.add(world.lock.id)
            run = self.means.observe(name, world.itself())
            if run.outcome.ran and questions_between(run, bad_run, self.means.prober.store).questions:
                self.good = world
                return run
        return None

    def _plain(self, status: Status, sides: tuple[Observation, ...]) -> UpgradeAnswer:
        answer = UpgradeAnswer(
            command=self.repro.name,
            status=status,
            sentence="",
            good=self.good.end if self.good is not None else None,
            bad=self.bad.end,
            sides=sides,
            subject=self.subject,
        )
        return evolve(answer, sentence=sentence_of(answer))

    # -- groups and their culprits

    def _groups(self, asked: GroupQuestions, good_run: Observation, bad_run: Observation, good: World) -> UpgradeAnswer:
        self._good_seen = good_run
        repro = self._only(asked.tests, good_run)
        bad = evolve(self.bad, sources={**good.sources, **self.bad.sources})
        not_run = asked.not_run
        if asked.tests:
            asked = self._without_flaky(good_run, bad_run, good, repro)
            if not asked.questions:
                return self._only_flaky(asked, good_run, bad_run)
        held: dict[str, str | None] = {}
        answers: list[GroupAnswer] = []
        constraints: tuple[str, ...] = ()
        verified: Observation | None = None
        for _ in range(_ROUNDS):
            found = []
            questions = asked.questions[:_MOST_GROUPS]
            for number, question in enumerate(questions):
                self._tell_group(question, number, len(questions))
                found.append(self._group(question, bad, good, repro, held))
            self.means.count.open_groups = 0
            answers += found
            culprits = [culprit for group in found for culprit in group.culprits]
            if not culprits:
                break
            constraints = tuple(dict.fromkeys((*constraints, *constraints_of(culprits))))
            run = self.means.observe(
                f"the newest packages with {', '.join(constraints)}", bad.constrained(constraints, self.repro)
            )
            left = questions_between(good_run, run, self.means.prober.store, self.repro.signature)
            if run.outcome.ran and _passes(left, run):
                verified = run
                break
            new = {culprit.package: culprit.boundary.last_good for culprit in culprits}
            if not left.questions or new.keys() <= held.keys():
                break
            held |= new
            asked, repro = left, self._only(left.tests, good_run)
        status = Status.FOUND if any(group.culprits for group in answers) else Status.INCONCLUSIVE
        answer = evolve(
            self._plain(status, (good_run, bad_run)),
            groups=tuple(answers),
            flaky=asked.flaky,
            failing_at_both=asked.failing_at_both,
            not_run=not_run,
            constraints=constraints,
            constraints_verified=verified is not None,
            verified_by=verified,
            changes=good.lock.diff(self.bad.lock),
        )
        return evolve(answer, sentence=sentence_of(answer))

    def _only(self, tests: tuple[str, ...], good_run: Observation) -> Repro:
        """Return the command with only these tests, and with a shorter time limit."""
        repro = self.only(self.repro, tests)
        return soon_stopped(repro, good_run.duration_s) if tests else repro

    def _without_flaky(self, good_run: Observation, bad_run: Observation, good: World, repro: Repro) -> GroupQuestions:
        """Run the failing tests again at both ends; returns the questions without flaky tests."""
        again = self.means.observe("the failing tests again, at the bad end", self.bad.itself(repro))
        good_again = self.means.observe("the failing tests again, at the good end", good.itself(repro))
        store = self.means.prober.store
        return questions_between(
            good_run, bad_run, store, self.repro.signature, good_again=(good_again,), bad_again=(again,)
        )

    def _only_flaky(self, asked: GroupQuestions, *sides: Observation) -> UpgradeAnswer:
        answer = evolve(
            self._plain(Status.NOT_A_REGRESSION, sides), flaky=asked.flaky, failing_at_both=asked.failing_at_both
        )
        return evolve(answer, sentence=sentence_of(answer))

    def _group(self, question: GroupQuestion, bad: World, good: World, repro: Repro, held: Versions) -> GroupAnswer:
        """Find the culprits of one group, with `held` also held back."""
        changes = {change.name: change for change in good.lock.diff(bad.lock) if change.name not in held}
        if self.subject:
            changes = {name: change for name, change in changes.items() if name == self.subject}
        units = {name: change for name, change in changes.items() if _can_be_put_back(change, bad)}
        if not units:
            return GroupAnswer(
                question.tests, question.signature, Status.INCONCLUSIVE, note="no package can be downgraded"
            )
        log = "" if question.exceptions else self.means.prober.store.log(self._last_run(bad, repro))
        order = ranked(units, question.exceptions, log, tuple(map(_project, bad.request.requirements)))
        search = Search(self.means, question, bad, good, units, order, repro, held)
        versions = self._already(search) or peeled(search, lambda run: self._failing(question, run))
        if versions is None:
            back = find_held_back(self.means, bad, units, order, question.stand, repro, held)
            if back.shown is None:
                note = "the tests fail at the bad end even with every package of the good end"
                return GroupAnswer(question.tests, question.signature, Status.INCONCLUSIVE, note=note)
            versions = {name: units[name].before for name in back.names}
        names = list(versions) if len(versions) > 1 else sorted(versions)
        culprits = culprits_of(narrowed(search, versions), names, versions)
        for culprit in culprits:
            self._found.setdefault(culprit.package, culprit)
        return GroupAnswer(question.tests, question.signature, Status.FOUND, tuple(culprits))

    def _tell_group(self, question: GroupQuestion, number: int, count: int) -> None:
        self.means.count.open_groups = count - number
        if count > 1:
            tests = counted(len(question.tests), "test")
            self.means.reporter.report(
                Note(f"group {number + 1} of {count}, {tests}: {one_line(str(question.signature), 120)}")
            )

    def _last_run(self, bad: World, repro: Repro) -> Observation:
        return self.means.observe("the failing tests again, at the bad end", bad.itself(repro))

    def _already(self, search: Search) -> dict[str, str | None] | None:
        """Return a culprit of an earlier group with its good version, if holding it back makes this group pass too."""
        for name in self._found:
            if name in search.units and search.passes(found := {name: search.units[name].before}) is not None:
                return found
        return None

    def _failing(self, question: GroupQuestion, run: Observation) -> GroupQuestion | None:
        """Return the question for another failure of the group's tests in a run, or None."""
        if self._good_seen is None:
            return None
        left = questions_between(self._good_seen, run, self.means.prober.store)
        wanted = set(question.tests)
        return next((one for one in left.questions if not wanted or wanted & set(one.tests)), None)


def _refuse_mistake(run: Observation) -> None:
    """Raise `UserMistake` if a run failed because of a mistake in the command."""
    if run.mistake and not run.tests:
        raise UserMistake(
            f"the command fails for a reason that is not a bug: {run.mistake}",
            hint=f"to see the run: harness probe --again {run.key}",
        )


def _passes(left: GroupQuestions, run: Observation) -> bool:
    """Whether nothing newly fails; a command without test results must also have completed."""
    return not left.questions and (bool(run.tests) or run.outcome is Outcome.COMPLETED)


def _can_be_put_back(change: Change, bad: World) -> bool:
    """Whether a package can be changed back; one that only the bad end has can be left out unless that end is a day."""
    return change.before is not None or bad.near is not None


def _project(text: str) -> str:
    from packaging.requirements import Requirement

    from harness.model import normalized_name

    return normalized_name(Requirement(text).name)
