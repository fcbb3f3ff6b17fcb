"""Answers a question between two worlds: run the ends, find what newly fails, find each culprit, verify what helps.

Days are not bisected, because a day is only a name for its packages: a bisection over some hundred upload times would
take more runs before it named a package.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from attrs import define, evolve, field
from packaging.requirements import Requirement

from harness.bisection.advice import (
    advice_on,
    advice_on_ends,
    advice_on_limits,
    install_missing,
)
from harness.bisection.answer import Answer, Asked, Failure, Guilty, Status
from harness.bisection.both_ends import BothEnds
from harness.bisection.failures import Group, Groups
from harness.bisection.observing import Observer
from harness.bisection.packages import FlakyError, PackageSearch
from harness.culprit.descent import fault_in_words
from harness.culprit.ranking import ranked
from harness.errors import UserMistake
from harness.events import Note, SearchBegan
from harness.model import Observation, Outcome, Repro, Verdict, name_of, normalized_name
from harness.model.boundary import Boundary
from harness.model.requirements import merged_requirements
from harness.model.text import counted, listed, one_line
from harness.question.inquiry import Inquiry
from harness.question.question import TODAY, EndKind, Ends, newest_end
from harness.question.releases import scope_of
from harness.question.snapshot import Way
from harness.question.worlds import World, Worlds

if TYPE_CHECKING:
    from harness.session import Session


_ROUNDS = 5
_MOST_GROUPS = 12


def ask_between(session: Session, question: Inquiry) -> Answer:
    """Answer a question between two worlds: days, lock files, environments, or releases under a test suite.

    Raises `UserMistake`, `NoWorkers`, `Interrupted`, `NoNetwork` and `NoSpace`.
    """
    if question.bad is None:
        raise ValueError("the bad end of a question between worlds is known")
    ends = Ends(question.good, question.bad)
    worlds, why = worlds_of(session, question)
    if not worlds.scope.requirements and ends.bad.kind is EndKind.DAY:
        raise UserMistake(
            "no requirements are known, so no upgrade can have broken it",
            hint="name what the command needs with --with REQ or --with '-r FILE', or its project with --project",
        )
    good, bad = ends.good, ends.bad
    own = worlds.required() if good is None and bad.text == TODAY and question.as_of is None else None
    if own is not None:
        worlds, bad = own[0], own[1].end
    span = f"{good.text} to {bad.text}" if good else f"going back from {bad.text}"
    headline = f"looking for the upgrade that broke `{question.repro.name}`, {span}"
    session.reporter.report(SearchBegan(headline, (*question.told, *(own[1].told if own else ()), why)))
    good_world, bad_world = (None, evolve(own[1], told=())) if own is not None else worlds.both(ends)
    with session.lanes(worlds.scope.device, question.repro) as lanes:
        observer = Observer(session.prober, lanes, session.index, session.reporter, question.policy)
        observer = evolve(observer, typed=question.typed)
        both = BothEnds(observer, question.repro, worlds, bad_world, good_world)
        return Between(both, question).run()


def worlds_of(session: Session, question: Inquiry) -> tuple[Worlds, str]:
    """Return what makes the worlds of a question's ends, and a sentence about the device that was chosen."""
    device, why = session.device_for(question.repro)
    subject = normalized_name(question.subject) if question.subject else ""
    requirements = merged_requirements(question.repro.dependencies, question.with_)
    if subject and subject not in set(map(name_of, requirements)):
        requirements = (*requirements, subject)
    holds = tuple(text for text in question.hold if text != "none")
    scope = scope_of(question, session.interpreter.version, device, subject)
    scope = evolve(scope, requirements=requirements, holds=holds)
    newest = newest_end(question.as_of)
    return Worlds(scope, session.prober, session.index, session.interpreter, subject, newest), why


@define
class Between:
    """One question between the worlds of its two ends."""

    ends: BothEnds
    question: Inquiry
    _found: set[str] = field(factory=set, init=False)
    _bounds: dict[str, Boundary] = field(factory=dict, init=False)
    _faults: list[Exception] = field(factory=list, init=False)

    @property
    def repro(self) -> Repro:
        """What runs."""
        return self.question.repro

    def run(self) -> Answer:
        """Answer the question. Raises `UserMistake`, `Interrupted`, `NoNetwork` and `NoSpace`."""
        begun = time.monotonic()
        answer = self._answer()
        steps, ran = self.ends.steps, self.ends.observer.tally.ran_now
        way_on = steps.way_on if steps is not None and answer.advice == self._way_on() else None
        told = tuple(dict.fromkeys((*self.ends.told, *answer.told)))
        return evolve(
            answer, told=told, way_on=way_on, not_kept=self.ends.not_kept, probes=ran, wall_s=time.monotonic() - begun
        )

    def _answer(self) -> Answer:
        if self.ends.good is not None:
            self.ends.check_different(self.ends.good)
        if not self.ends.run_bad():
            limits = self.ends.worlds.limits_of(self.ends.bad)
            named = set(map(name_of, self.question.with_))
            limits = tuple(text for text in limits if name_of(text) not in named)
            return evolve(self._plain(Status.NO_FAILURE), limits=limits, advice=advice_on_limits(limits))
        if not self.ends.run_good():
            run = self.ends.bad_runs[0]
            steps, not_asked = self.ends.steps, self.ends.not_asked
            hint = f"To try older packages: {steps.hint}." if steps is not None and steps.hint and not_asked else ""
            advice = install_missing(self.repro, (run,)) or self._way_on() or hint or advice_on(run)
            if not advice and not run.tests:
                advice = f"It ends with {one_line(self.ends.last_words(run), 200)}"
            if self.ends.unjudged or not_asked:
                why = f"older packages that were tried fail with another error ({self.ends.unjudged})"
                why = why if self.ends.unjudged else not_asked
                unsure = Failure((), self.repro.signature, Status.INCONCLUSIVE, note=why)
                answer = evolve(self._plain(Status.INCONCLUSIVE), failures=(unsure,))
            else:
                answer = self._plain(Status.NOT_A_REGRESSION)
            return self._limited(evolve(answer, ends=(*self.ends.alike, *self.ends.bad_runs[-1:]), advice=advice))
        return self._between()

    def _between(self) -> Answer:
        """Find what newly fails and its culprits; then the same further back, for the tests that fail there, too."""
        ends, answer = self.ends, evolve(self._plain(Status.NOT_A_REGRESSION), ends=())
        while True:
            groups = ends.between() if not ends.unlike else Groups(())
            answer = evolve(answer, ends=(*answer.ends[:-1], *ends.good_runs[:1], *(answer.ends or ends.bad_runs)[-1:]))
            answer = evolve(answer, told=tuple(dict.fromkeys((*answer.told, *ends.told))))
            if groups.groups and ends.good is not None:
                answer = self._failures(answer, groups, ends.good)
            else:
                answer = self._nothing(answer, groups)
            tests = answer.failing_at_both
            advice = answer.advice or (install_missing(self.repro, ends.good_runs[:1], tests) if tests else "")
            answer = evolve(answer, advice=advice)
            # A good end that was named is kept.
            if not tests or ends.steps is None or ends.good is None:
                return answer
            named = ends.good.end.text
            if not ends.further_back(tests):
                return self._limited(evolve(answer, advice=answer.advice or self._way_on()))
            since = f"{counted(len(tests), 'test')} of {named} failed there, too"
            answer = evolve(answer, told=(*answer.told, f"{since}: {ends.good.end.text} is the good end for them"))

    def _nothing(self, answer: Answer, groups: Groups) -> Answer:
        """Add that nothing newly fails, and what to do."""
        good_run, bad_run = self.ends.good_runs[0], self.ends.bad_runs[-1]
        why = self.ends.not_rebuilt if not answer.failures else ""
        missing = install_missing(self.repro, (good_run, bad_run))
        way_on = self._way_on() if groups.failing_at_both else ""
        failed = advice_on(good_run) if way_on else ""
        return evolve(
            answer,
            told=(*answer.told, *([failed] if failed else [])),
            status=Status.INCONCLUSIVE if why else answer.status,
            not_rebuilt=why,
            flaky=tuple(dict.fromkeys((*answer.flaky, *groups.flaky))),
            failing_at_both=groups.failing_at_both,
            advice=answer.advice
            or missing
            or way_on
            or advice_on_ends(good_run, self.ends.last_words(good_run), self.ends.last_words(bad_run)),
        )

    def _limited(self, answer: Answer) -> Answer:
        """Add how far the steps back went, or why there was none."""
        steps = self.ends.steps
        if steps is None or not steps.reached:
            why = steps.limit if steps is not None else ""
            return evolve(answer, told=(*answer.told, f"no older packages were tried: {why}")) if why else answer
        return evolve(answer, back_to=f"{steps.reached} ({steps.limit})" if steps.limit else steps.reached)

    def _way_on(self) -> str:
        """Return the command that steps further back, beyond the limit if there is one; "" if none is known to help."""
        steps, good, bad = self.ends.steps, self.ends.good, self.ends.bad.end
        subject = [self.question.subject] if self.question.subject else []
        typed = (*subject, *self.question.typed, *self.question.policy.typed)
        until = [] if bad.text == TODAY else ["--bad", shlex.quote(bad.text)]
        if steps is None:
            if good is None or good.end.kind is not EndKind.DAY:
                return ""
            return f"To go back until it passes: {' '.join(['harness bisect', *typed, *until])}"
        if steps.way_on is None:
            return ""
        day, python = steps.way_on
        return f"To look further back: {' '.join(['harness bisect', *typed, *until])} --good {day} --python {python}"

    # -- failures and their culprits

    def _failures(self, answer: Answer, groups: Groups, good: World) -> Answer:
        """Add the culprits of what newly fails, and those that only show once these are held back."""
        scope = self.ends.bad.scope
        scope = evolve(scope, from_source=(*scope.from_source, *sorted(good.sources)))
        bad = evolve(self.ends.bad, scope=scope).lifting(good)
        is_fix, flaky = self.question.policy.find_fix, (*answer.flaky, *groups.flaky)
        if is_fix and bad.as_of is not None:
            bad = evolve(bad, as_of=good.as_of, way=Way.NEAR)  # newer releases are put into older packages
        answer = evolve(answer, not_run=answer.not_run or groups.not_run)
        held: dict[str, str | None] = {}
        found: list[Failure] = []
        for _ in range(_ROUNDS):
            each, repro = groups.groups[:_MOST_GROUPS], self.ends.only(groups.tests)
            now: list[Failure] = []
            for number, group in enumerate(each):
                self._tell(group, number, len(each))
                alone, depth = self.ends.narrowed(group.tests), self.question.depth
                search = PackageSearch(self.ends.observer, group, bad, good, repro, alone, held, depth)
                try:
                    now.append(self._until_steady(search))
                except Exception as error:  # noqa: BLE001 - what is known of other failures stands
                    self._faults.append(error)
                    now.append(self._ended(group, error))
                self._found |= {culprit.package for culprit in now[-1].culprits}
            culprits = [culprit for failure in now for culprit in failure.culprits]
            if not culprits:
                known = {test for failure in found if failure.culprits for test in failure.tests}
                found += [one for one in now if not one.tests or not known.issuperset(one.tests)]
                break
            self._bounds = _tightest(culprits, self._bounds)
            constraints = tuple(one.constraint for one in self._bounds.values() if one.constraint)
            run = self._verify(groups, bad, constraints)
            left = self.ends.left_in(run)
            verified = run if run.outcome.ran and passes_whole(left, run) else None
            is_verified = verified is not None
            answer = evolve(answer, constraints=constraints, constraints_verified=is_verified, verified_by=verified)
            found += now
            new = {name: one.change.before for name, one in _tightest(culprits, {}).items()}
            if is_verified or not left.groups or self._faults or new.keys() <= held.keys():
                break
            held |= new
            groups = left
        failures = (*answer.failures, *found)
        is_named = any(failure.culprits for failure in failures)
        if self._faults and not is_named:
            raise self._faults[0]
        status = Status.INCONCLUSIVE if not is_named else Status.FIXED if is_fix else Status.FOUND
        if is_fix:
            failures = tuple(_as_fix(one, status) for one in failures)
        return evolve(
            answer,
            status=status,
            failures=failures,
            flaky=tuple(dict.fromkeys((*flaky, *groups.flaky))),
            failing_at_both=groups.failing_at_both,
            changes=answer.changes or good.lock.diff(self.ends.bad.lock),
        )

    def _verify(self, groups: Groups, bad: World, constraints: tuple[str, ...]) -> Observation:
        """Run everything with the newest packages that the constraints allow, as often as a pass has to be repeated.

        Returns the first run that fails, or else the last one.
        """
        label = f"the newest packages with {', '.join(constraints)}"
        probe = bad.constrained(self.ends.observer.prober, constraints, self.repro)
        judges = [group.judge(self.ends.observer.prober.store) for group in groups.groups]

        def decides(run: Observation) -> bool:
            return not run.outcome.ran or any(judge(run).verdict is Verdict.BAD for judge in judges)

        return self.ends.observer.observe_again(label, probe, range(self.ends.observer.passes), decides)[-1]

    def _until_steady(self, search: PackageSearch) -> Failure:
        """Search a failure; if one run turns out not to tell good from bad, search it again with repeated runs."""
        try:
            return self._search(search)
        except FlakyError as error:
            self.ends.note_flaky(error.failures, error.runs)
        self.ends.observer.reporter.report(Note("it is flaky: every run is repeated from now on"))
        if not self.ends.flaky(Groups((search.group,)), search.repro, search.good).groups:
            return _unsure(search.group, "it is flaky, and also fails at the good end")
        try:
            return self._search(evolve(search, observer=self.ends.observer))
        except FlakyError:
            return _unsure(search.group, "it is flaky, and its runs do not agree on a release")

    def _ended(self, group: Group, error: Exception) -> Failure:
        """Return a failure whose search an internal error ended; raises all other errors again."""
        fault = fault_in_words(self.ends.observer.prober.store, error, "its search")
        return evolve(_unsure(group, "an internal error ended its search"), fault=fault)

    def _search(self, search: PackageSearch) -> Failure:
        group, bad, units, held = search.group, search.bad, search.units, search.held
        if not units:
            return _unsure(group, "no package can be downgraded")
        log = ""
        if not group.exceptions:
            run = search.observe("the failing tests again, at the bad end", bad.itself(search.repro))
            log = self.ends.observer.prober.store.log(run)
        order = ranked(units, group.exceptions, log, tuple(map(name_of, bad.scope.requirements)))
        search = evolve(search, order=sorted(order, key=lambda name: name not in self._found))
        if held and search.passes(held) is not None:
            return _unsure(group, f"it passes with what is held back for other failures: {listed(held)}")
        versions = search.held_back()
        if versions is None:
            return _unsure(group, "the tests fail at the bad end even with every package of the good end")
        return Failure(group.tests, group.signature, Status.FOUND, tuple(search.culprits(versions)))

    # -- words

    def _tell(self, group: Group, number: int, count: int) -> None:
        if count > 1:
            tests = counted(len(group.tests), "test")
            text = f"group {number + 1} of {count}, {tests}: {one_line(str(group.signature), 120)}"
            self.ends.observer.reporter.report(Note(text))

    def _plain(self, status: Status) -> Answer:
        good, bad = self.ends.good, self.ends.bad
        asked = Asked.of(
            evolve(bad.scope, repro=self.repro, requirements=self.question.with_),
            good.end if good is not None else None,
            bad.end,
            python=bad.lock.python,
            as_of=bad.as_of.isoformat() if bad.as_of is not None else "none",
            depth=self.question.depth.value,
            typed=self.question.typed,
        )
        return Answer(asked, status, ends=(*self.ends.good_runs[:1], *self.ends.bad_runs[-1:]))


def _unsure(group: Group, why: str) -> Failure:
    return Failure(group.tests, group.signature, Status.INCONCLUSIVE, note=why)


def _as_fix(failure: Failure, status: Status) -> Failure:
    """Return a failure between a good end and an older bad one with what fixed it."""
    culprits = (evolve(culprit, boundary=culprit.boundary.as_fix) for culprit in failure.culprits)
    return evolve(failure, culprits=tuple(culprits), status=status)


def _tightest(culprits: Iterable[Guilty], known: Mapping[str, Boundary]) -> dict[str, Boundary]:
    """Return the boundaries of packages that must be held back, by package: of several, that with the lowest bound.

    The companions of a culprit must be held back, too.
    """
    found = dict(known)
    for culprit in culprits:
        for one in (culprit.boundary, *culprit.companions):
            other = found.get(one.subject)
            bound = Requirement(one.constraint or one.subject).specifier
            if other is None or not (other.change.before and bound.contains(other.change.before, prereleases=True)):
                found[one.subject] = one
    return found


def passes_whole(left: Groups, run: Observation) -> bool:
    """Whether nothing newly fails in a whole run; a command without test results must also have completed."""
    is_whole = run.outcome is Outcome.COMPLETED or (bool(run.tests) and run.outcome is not Outcome.TIMED_OUT)
    return not left.groups and is_whole
