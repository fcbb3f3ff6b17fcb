"""Answers a question between two worlds: run the ends, find what newly fails, find each culprit, verify what helps.

Days are not bisected, because a day is only a name for its packages: a bisection over some hundred upload times would
take more runs before it named a package.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from attrs import define, evolve, field
from packaging.version import Version

from harness.asking.advice import (
    advice_on,
    advice_on_ends,
    advice_on_limits,
    install_missing,
    searched_with,
)
from harness.asking.answer import Answer, Asked, Failure, Guilty, Status
from harness.asking.both_ends import BothEnds
from harness.asking.failures import Group, Groups, ranked, seen_by, shown_of
from harness.asking.observing import Observer
from harness.asking.packages import FlakyError, PackageSearch
from harness.culprit.descent import find_culprit
from harness.culprit.sides import Side, Sides
from harness.errors import UserMistake
from harness.events import Note, SearchBegan
from harness.model import Observation, Outcome, Repro, Verdict, name_of, normalized_name
from harness.model.culprit import Level
from harness.model.text import counted, listed, one_line
from harness.planning.inquiry import Inquiry
from harness.planning.releases import merged_requirements, scope_of
from harness.planning.worlds import World, Worlds, limits_of
from harness.request.question import TODAY, EndKind, Ends, newest_end

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
        policy = question.policy
        observer = Observer(session.prober, lanes, session.index, session.interpreter, session.reporter, policy)
        both = BothEnds(observer, question.repro, worlds, bad_world, good_world, policy.flaky)
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
    """One question between the worlds of its two ends; `bounds` are constraints that other failures need already."""

    ends: BothEnds
    question: Inquiry
    bounds: tuple[str, ...] = field(default=(), init=False)
    _found: dict[str, Guilty] = field(factory=dict, init=False)

    @property
    def repro(self) -> Repro:
        """What runs."""
        return self.question.repro

    def run(self) -> Answer:
        """Answer the question. Raises `UserMistake`, `Interrupted`, `NoNetwork` and `NoSpace`."""
        begun = time.monotonic()
        answer = self._answer()
        steps, ran = self.ends.steps, self.ends.observer.count.ran_now
        way_on = steps.way_on if steps is not None and answer.advice == self._way_on() else None
        told = (*self.ends.told, *answer.told)
        return evolve(answer, told=told, way_on=way_on, probes=ran, wall_s=time.monotonic() - begun)

    def _answer(self) -> Answer:
        if self.ends.good is not None:
            self.ends.check_different(self.ends.good)
        if not self.ends.run_bad():
            limits = limits_of(self.ends.bad, self.ends.observer.index, self.ends.observer.interpreter)
            named = set(map(name_of, self.question.with_))
            limits = tuple(text for text in limits if name_of(text) not in named)
            return evolve(self._plain(Status.NO_FAILURE), limits=limits, advice=advice_on_limits(limits))
        if not self.ends.run_good():
            run = self.ends.bad_runs[0]
            advice = install_missing(self.repro, (run,)) or self._way_on() or advice_on(run)
            if not advice and not run.tests:
                advice = f"It ends with {one_line(self.ends.last_words(run), 200)}"
            if self.ends.unjudged:
                why = f"older packages that were tried fail with another error ({self.ends.unjudged})"
                unsure = Failure((), self.repro.signature, Status.INCONCLUSIVE, note=why)
                answer = evolve(self._plain(Status.INCONCLUSIVE), failures=(unsure,))
            else:
                answer = self._plain(Status.NOT_A_REGRESSION)
            return self._limited(evolve(answer, ends=(*self.ends.alike, *self.ends.bad_runs[-1:]), advice=advice))
        return self._between()

    def _between(self) -> Answer:
        groups, good = self.ends.between() if not self.ends.unlike else Groups(()), self.ends.good
        if groups.groups and good is not None:
            answer = self._failures(groups, good)
        else:
            good_run, bad_run = self.ends.good_runs[0], self.ends.bad_runs[-1]
            words = self.ends.last_words(good_run), self.ends.last_words(bad_run)
            why, missing = self.ends.not_rebuilt, install_missing(self.repro, (good_run, bad_run))
            way_on = self._way_on() if groups.failing_at_both else ""
            answer = evolve(
                self._plain(Status.INCONCLUSIVE if why else Status.NOT_A_REGRESSION),
                not_rebuilt=why,
                flaky=groups.flaky,
                failing_at_both=groups.failing_at_both,
                advice=missing or way_on or advice_on_ends(good_run, *words),
            )
        if not answer.advice and groups.failing_at_both:
            advice = install_missing(self.repro, self.ends.good_runs[:1], groups.failing_at_both)
            answer = evolve(answer, advice=advice)
        return self._further_back(answer)

    def _further_back(self, answer: Answer) -> Answer:
        """Step further back for the tests that fail in the good end that was found, too; a named one is kept."""
        good, older = self.ends.good, None
        if self.ends.steps is not None and answer.failing_at_both:
            older = self.ends.further_back(answer.failing_at_both)
            if older is None:
                return self._limited(evolve(answer, advice=answer.advice or self._way_on()))
        if older is None or older.good is None or good is None:
            return answer
        search = Between(older, self.question)
        search.bounds, search._found = answer.constraints, self._found
        more = search._between()
        found = more if more.culprits else evolve(answer, failing_at_both=more.failing_at_both)
        both = counted(len(answer.failing_at_both), "test")
        since = f"{both} of {good.end.text} failed there, too: {older.good.end.text} is the good end for them"
        return evolve(
            found,
            asked=answer.asked,
            status=max((answer.status, more.status), key=lambda status: (status.is_change, -status.exit_code)),
            ends=(*answer.ends[:-1], *more.ends[:1], *answer.ends[-1:]),
            changes=answer.changes or more.changes,
            failures=(*answer.failures, *more.failures),
            flaky=tuple(dict.fromkeys((*answer.flaky, *more.flaky))),
            not_run=answer.not_run,
            advice=answer.advice or more.advice,
            told=tuple(dict.fromkeys((*answer.told, since, *more.told))),
            back_to=more.back_to,
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
        steps, typed = self.ends.steps, self.question.typed
        if steps is None:
            good, bad = self.ends.good, self.ends.bad.end
            if good is None or good.end.kind is not EndKind.DAY:
                return ""
            until = [] if bad.text == TODAY else ["--bad", bad.text]
            return f"To go back until it passes: {' '.join(['harness bisect', *typed, *until])}"
        if steps.way_on is None:
            return ""
        day, python = steps.way_on
        return f"To look further back: {' '.join(['harness bisect', *typed])} --good {day} --python {python}"

    # -- failures and their culprits

    def _failures(self, groups: Groups, good: World) -> Answer:
        bad = evolve(self.ends.bad, sources=good.sources | self.ends.bad.sources)
        if self.question.policy.find_fix and bad.as_of is not None:
            bad = evolve(bad, as_of=good.as_of, near=bad.lock)  # newer releases are put into older packages
        not_run, flaky = groups.not_run, groups.flaky
        held: dict[str, str | None] = {}
        found: list[Failure] = []
        constraints = self.bounds
        verified: Observation | None = None
        told: dict[str, None] = {}
        for _ in range(_ROUNDS):
            whole = groups.groups[:_MOST_GROUPS]
            each = self.ends.some_of(whole)
            repro = self.ends.only(tests := groups.tests if each == whole else Groups(each).tests)
            told |= dict.fromkeys(searched_with(tests, groups.tests))
            now: list[Failure] = []
            for number, group in enumerate(each):
                self._tell(whole[number], number, len(whole))
                now.append(self._failure(PackageSearch(self.ends.observer, group, bad, good, repro, held)))
            self.ends.observer.count.open_failures = 0
            culprits = [culprit for failure in now for culprit in failure.culprits]
            if not culprits:
                known = {test for failure in found if failure.culprits for test in failure.tests}
                now = [evolve(one, tests=group.tests) for one, group in zip(now, whole, strict=True)]
                found += [one for one in now if not one.tests or not known.issuperset(one.tests)]
                break
            constraints = _tightest((*constraints, *constraints_of(culprits)))
            run = self._verify(groups, bad, constraints)
            left = self.ends.left_in(run)
            verified = run if run.outcome.ran and passes_whole(left, run) else None
            ways = zip(now, each, whole, strict=True)
            found += [evolve(one, tests=shown_of(some, group, left)) for one, some, group in ways]
            if verified is not None:
                break
            new = _lowest(culprits)
            if not left.groups or not new or new.keys() <= held.keys():
                break
            held |= new
            groups = left
        named, is_fix = any(failure.culprits for failure in found), self.question.policy.find_fix
        status = Status.INCONCLUSIVE if not named else Status.FIXED if is_fix else Status.FOUND
        if is_fix:
            found = [evolve(one, culprits=tuple(map(_as_fix, one.culprits)), status=status) for one in found]
        return evolve(
            self._plain(status),
            failures=tuple(found),
            flaky=tuple(dict.fromkeys((*flaky, *groups.flaky))),
            failing_at_both=groups.failing_at_both,
            not_run=not_run,
            constraints=constraints,
            constraints_verified=verified is not None,
            verified_by=verified,
            changes=good.lock.diff(self.ends.bad.lock),
            told=tuple(told),
        )

    def _verify(self, groups: Groups, bad: World, constraints: tuple[str, ...]) -> Observation:
        """Run everything with the newest packages that the constraints allow, as often as a pass has to be repeated.

        Returns the first run that fails, or else the last one.
        """
        label, probe = f"the newest packages with {', '.join(constraints)}", bad.constrained(constraints, self.repro)
        judges = [group.judge(self.ends.observer.prober.store) for group in groups.groups]

        def decides(run: Observation) -> bool:
            return not run.outcome.ran or any(judge(run).verdict is Verdict.BAD for judge in judges)

        return self.ends.observer.observe_again(label, probe, range(self.ends.observer.passes), decides)[-1]

    def _failure(self, search: PackageSearch) -> Failure:
        """Find the culprits of one failure, and what is below their releases."""
        failure = self._until_steady(search)
        for culprit in failure.culprits:
            self._found.setdefault(culprit.package, culprit)
        return evolve(failure, culprits=tuple(self._deeper(culprit, search) for culprit in failure.culprits))

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

    def _deeper(self, culprit: Guilty, search: PackageSearch) -> Guilty:
        """Search below the release of a culprit, if its first bad release fails like the bad end."""
        until, boundary, group, judge = self.question.depth, culprit.boundary, search.group, search.judge
        locks = [side.lock for side in boundary.sides if side.lock is not None]
        if until is Level.RELEASE or len(locks) != 2 or judge(boundary.sides[1]).verdict is not Verdict.BAD:
            return culprit
        good_side = Side(locks[0], Verdict.GOOD, boundary.sides[0])
        bad_side = Side(locks[1], Verdict.BAD, seen_by(boundary.sides[1], group))
        sides = Sides(bad_side, good_side) if self.question.policy.find_fix else Sides(good_side, bad_side)
        scope = evolve(
            search.bad.scope,
            repro=self.ends.narrowed(group.tests) if group.tests else search.repro,
            subject=culprit.package,
            requirements=tuple(text for text in search.bad.requirements if text != culprit.package),
        )
        trials = self.ends.observer.trials(scope, judge)
        found = find_culprit(trials, sides, until, are_neighbours=True)
        self.ends.observer.count.ran_now += trials.tally.ran_now
        return evolve(culprit, deeper=found)

    # -- words

    def _tell(self, group: Group, number: int, count: int) -> None:
        self.ends.observer.count.open_failures = count - number
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


def _as_fix(culprit: Guilty) -> Guilty:
    """Return a culprit between a good end and an older bad one as what fixed it."""
    boundary = culprit.boundary
    certain = (boundary.last_good,) if boundary.is_certain and boundary.last_good is not None else boundary.suspects
    boundary = evolve(
        boundary.with_change(boundary.first_bad, boundary.last_good, is_fix=True),
        suspects=certain,
        candidates=boundary.candidates[::-1],
        sides=boundary.sides[::-1],
        moved=tuple(evolve(change, before=change.after, after=change.before) for change in boundary.moved),
    )
    return evolve(culprit, boundary=boundary)


def constraints_of(culprits: Iterable[Guilty]) -> list[str]:
    """Return the constraints of culprits and their companions; one for those that break the tests only together."""
    settled: set[str] = set()
    found: dict[str, None] = {}
    for culprit in culprits:
        if culprit.package not in settled:
            settled |= {*culprit.together_with}
            found |= dict.fromkeys(one.constraint for one in (culprit.boundary, *culprit.companions) if one.constraint)
    return list(found)


def _tightest(constraints: Iterable[str]) -> tuple[str, ...]:
    """Return the constraints; of several upper bounds for one package only the lowest."""
    bounds: dict[str, tuple[Version, bool, str]] = {}
    others: dict[str, None] = {}
    for text in constraints:
        name, below, version = text.partition("<")
        if not below:
            others[text] = None
            continue
        bound = (Version(version.removeprefix("=")), version.startswith("="), text)
        bounds[name] = min(bounds.get(name, bound), bound)
    return (*(text for _, _, text in bounds.values()), *others)


def _lowest(culprits: Iterable[Guilty]) -> dict[str, str | None]:
    """Return the good version of each culprit's package and its companions, the lowest one of each package."""
    found: dict[str, str | None] = {}
    for boundary in (one for culprit in culprits for one in (culprit.boundary, *culprit.companions)):
        good, known = boundary.last_good, found.get(boundary.subject)
        if known is None or good is None or Version(good) < Version(known):
            found[boundary.subject] = good
    return found


def passes_whole(left: Groups, run: Observation) -> bool:
    """Whether nothing newly fails in a whole run; a command without test results must also have completed."""
    is_whole = run.outcome is Outcome.COMPLETED or (bool(run.tests) and run.outcome is not Outcome.TIMED_OUT)
    return not left.groups and is_whole
