"""Answers a question between two sets of packages: its ends, what newly fails, each culprit, and what helps.

Days are not bisected, because a day is only a name for its packages: a bisection over some hundred upload times would
take more runs before it named a package.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from attrs import define, evolve, field
from packaging.requirements import Requirement
from packaging.version import Version

from harness.bisection.advice import (
    advice_on,
    advice_on_ends,
    advice_on_limits,
    advice_on_machine,
    advice_on_untried,
    install_missing,
)
from harness.bisection.answer import Answer, Comparison, Effort, Failure, QuestionRecord, Retry, Status
from harness.bisection.baseline import oldest_baseline
from harness.bisection.both_ends import BothEnds, MachineFailedError
from harness.bisection.failures import Group, Groups
from harness.bisection.measuring import no_difference
from harness.bisection.observing import Observer
from harness.bisection.packages import FlakyError, PackageSearch
from harness.bisection.steps_back import StepsBack, WayBack
from harness.culprit.descent import fault_in_words
from harness.culprit.ranking import ranked
from harness.errors import UserMistake
from harness.events import Note, SearchBegan
from harness.model import Observation, Outcome, Repro, name_of
from harness.model.boundary import Boundary
from harness.model.culprit import Culprit
from harness.model.text import counted, listed, one_line
from harness.question.ends import TODAY, EndKind, Ends, newest_end
from harness.question.package_set import Snapshot, Way
from harness.question.question import Question
from harness.question.snapshots import Snapshots

if TYPE_CHECKING:
    from harness.session import Session


_ROUNDS = 5
_MOST_GROUPS = 12


def answer_packages(session: Session, question: Question, *, is_night: bool = False) -> tuple[Answer, Retry]:
    """Answer a question between two sets of packages: days, lock files, environments, or releases under a test suite.

    Also returns how to ask again where nothing was found.

    Raises `UserMistake`, `NoWorkers`, `Interrupted`, `NoNetwork` and `NoSpace`.
    """
    if question.bad is None:
        raise ValueError("the bad end of a question between two sets of packages is known")
    ends = Ends(question.good, question.bad)
    snapshots = snapshots_of(session, question)
    question = snapshots.question
    if not snapshots.requirements and ends.bad.kind is EndKind.DAY:
        raise UserMistake(
            "no requirements are known, so no upgrade can have broken it",
            hint="name what the command needs with --with REQ or --with '-r FILE', or its project with --project",
        )
    good, bad = ends.good, ends.bad
    own = snapshots.required() if good is None and bad.is_today and question.as_of is None else None
    if own is not None:
        snapshots, bad = own[0], own[1].end
    span = f"{good.text} to {bad.text}" if good else f"going back from {bad.text}"
    headline = f"looking for the upgrade that broke `{question.repro.name}`, {span}"
    session.reporter.report(SearchBegan(headline, (*question.notes, *(own[1].notes if own else ()))))
    good_snapshot, bad_snapshot = (None, evolve(own[1], notes=())) if own is not None else snapshots.both(ends)
    with session.lanes(question.combination.device, question.repro) as lanes:
        observer = Observer(session.prober, lanes, session.index, session.reporter, question.policy)
        observer = evolve(observer, typed=question.typed, since=oldest_baseline(session, question, is_night=is_night))
        both = BothEnds(observer, snapshots, bad_snapshot, good_snapshot)
        signature = question.repro.signature
        if signature is None or not signature.is_unbounded:
            return PackageQuestion(both, question).run()
        measured = both.measure()
        question = evolve(measured.bounded(question), good=both.good.end if both.good is not None else None)
        if measured.signature is None:
            return no_difference(measured, question), Retry()
        session.reporter.report(Note(measured.sentence))
        snapshots = evolve(snapshots, question=question)
        observer = evolve(observer, policy=question.policy)
        good_snapshot = evolve(both.good, repro=question.repro) if both.good is not None else None
        both = BothEnds(observer, snapshots, evolve(both.bad, repro=question.repro), good_snapshot, measured)
        answer, retry = PackageQuestion(both, question).run()
        return evolve(answer, notes=(measured.sentence, *answer.notes)), retry


def snapshots_of(session: Session, question: Question) -> Snapshots:
    """Return what makes the snapshots of a question's ends. Raises `UserMistake` if one of two files can't be read."""
    newest = newest_end(question.as_of, session.now)
    return Snapshots(question, session.prober, session.index, session.interpreter, newest).left_to_files()


@define
class PackageQuestion:
    """One question between the snapshots of its two ends; the fields are what is known of the answer so far."""

    ends: BothEnds
    question: Question
    failures: list[Failure] = field(factory=list, init=False)
    bounds: dict[str, Boundary] = field(factory=dict, init=False)
    verified_by: Observation | None = field(default=None, init=False)
    compared: Comparison = field(default=Comparison(), init=False)
    notes: list[str] = field(factory=list, init=False)
    _faults: list[Exception] = field(factory=list, init=False)

    @property
    def repro(self) -> Repro:
        """What runs."""
        return self.question.repro

    @property
    def _is_named(self) -> bool:
        return any(failure.culprits for failure in self.failures)

    @property
    def constraints(self) -> tuple[str, ...]:
        """The constraints that exclude the culprits."""
        return tuple(boundary.constraint for boundary in self.bounds.values() if boundary.constraint)

    def run(self) -> tuple[Answer, Retry]:
        """Answer the question, and say how to ask again.

        Raises `UserMistake`, `Interrupted`, `NoNetwork` and `NoSpace`.
        """
        try:
            return self._run()
        except MachineFailedError as why:
            runs = (*self.ends.good_runs[:1], *self.ends.bad_runs[-1:])
            self.compared = evolve(self.compared, runs=runs, machine=str(why))
            return self._answer(Status.MACHINE, advice_on_machine(runs[-1] if runs else None)), Retry()

    def _run(self) -> tuple[Answer, Retry]:
        ends, limits = self.ends, tuple[str, ...]()
        if ends.good is not None:
            ends.check_different(ends.good)
        if not ends.run_bad():
            own = self.repro.dependencies
            limits = tuple(text for text in ends.snapshots.limits_of(ends.bad) if text in own)
            self.compared = Comparison(tuple(ends.bad_runs[-1:]))
            answer = self._answer(Status.NO_FAILURE, advice_on_limits(limits))
        else:
            has_good = ends.run_good()
            answer = self._compared() if has_good or ends.way_back is None else self._without_good_end(ends.way_back)
        way_on = self._steps.way_on if self._steps is not None and answer.advice == self._way_on() else None
        return answer, Retry(limits, way_on)

    @property
    def _steps(self) -> StepsBack | None:
        return self.ends.way_back.steps if self.ends.way_back is not None else None

    def _answer(self, status: Status, advice: str) -> Answer:
        ends, bad = self.ends, self.ends.bad
        question = evolve(
            self.question,
            good=ends.good.end if ends.good is not None else None,
            bad=bad.end,
            as_of=bad.as_of.isoformat() if bad.as_of is not None else None,
        )
        moment = (f"today was {bad.as_of:%Y-%m-%d %H:%M} UTC",) if bad.end.is_today and status.is_change else ()
        return Answer(
            QuestionRecord.of(question),
            status,
            failures=tuple(self.failures),
            constraints=self.constraints,
            verified_by=self.verified_by,
            comparison=evolve(self.compared, not_kept=ends.not_kept),
            advice=advice,
            notes=tuple(dict.fromkeys((*ends.notes, *self.notes, *moment))),
            effort=Effort(ends.observer.tally.ran_now),
        )

    def _without_good_end(self, way_back: WayBack) -> Answer:
        """Answer that nothing older passes more, and what to do."""
        ends, run = self.ends, self.ends.bad_runs[0]
        steps, why_not = way_back.steps, way_back.why_not
        hint = steps.stopped.hint if steps.stopped is not None and (why_not or steps.lacks_wheels) else ""
        hint = f"To try older packages: {hint}." if hint else ""
        how = "" if why_not else advice_on(run)
        advice = install_missing(self.repro, (run,)) or self._way_on() or ". ".join(filter(None, (how, hint)))
        advice = advice or advice_on(run)
        if not advice and not run.tests:
            advice = f"It ends with {one_line(ends.last_words(run), 200)}"
        status = Status.NOT_A_REGRESSION
        if way_back.unjudged or why_not:
            status, why = Status.INCONCLUSIVE, way_back.unjudged or why_not
            self.failures.append(Failure((), self.repro.signature, status, note=why))
        self.compared = Comparison((*way_back.alike, *ends.bad_runs[-1:]))
        self._note_limit()
        return self._answer(status, advice)

    def _compared(self) -> Answer:
        """Find what newly fails and its culprits; then the same further back, for the tests that fail there, too."""
        ends, advice = self.ends, ""
        whole = ends.bad_runs[-1:]  # later runs are of the failing tests alone
        while True:
            groups = ends.between() if not ends.unlike else Groups(())
            runs = self.compared.runs
            runs = (*runs[:-1], *ends.good_runs[:1], *(runs or whole)[-1:])
            self.compared = evolve(self.compared, runs=runs)
            self.notes += ends.notes
            if groups.groups and ends.good is not None:
                groups = self._explain(groups, ends.good)
            else:
                advice = advice or self._advice_on_nothing(groups)
            flaky = dict.fromkeys((*self.compared.flaky, *groups.flaky))
            tests = groups.failing_at_both
            self.compared = evolve(self.compared, flaky=tuple(flaky), failing_at_both=tests)
            advice = advice or (install_missing(self.repro, ends.good_runs[:1], tests) if tests else "")
            # A good end that was named is kept.
            if not tests or ends.way_back is None or ends.good is None:
                break
            named = ends.good.end.text
            if not ends.further_back(tests):
                advice = advice or self._way_on()
                self._note_limit()
                break
            since = f"{counted(len(tests), 'test')} of {named} failed there, too"
            self.notes.append(
                f"{since}: {ends.good.end.text} is the good end for {'it' if len(tests) == 1 else 'them'}"
            )
        is_fix = self.question.policy.find_fix
        status = Status.FIXED if is_fix else Status.FOUND
        if not self._is_named:
            is_open = self.failures or self.compared.not_rebuilt
            status = Status.INCONCLUSIVE if is_open else Status.NOT_A_REGRESSION
        if is_fix:
            self.failures = [_as_fix(failure, status) for failure in self.failures]
        return self._answer(status, advice or self._advice_on_untried() or self._advice_on_fix(status))

    def _advice_on_untried(self) -> str:
        """Return how to run the releases beside a change that were left out, "" if none were or nothing helps."""
        good = self.ends.good
        ends = [*(["--good", good.end.option] if good is not None and good.end.option else []), *self._until]
        culprits = [culprit for failure in self.failures for culprit in failure.culprits]
        return advice_on_untried(culprits, " ".join([self.question.command, *ends]))

    def _advice_on_fix(self, status: Status) -> str:
        """Return how to look for a fix after the day of the bad end, "" if no culprit has a newer release."""
        end, index = self.ends.bad.end, self.ends.observer.index
        if status is not Status.FOUND or end.kind is not EndKind.DAY or end.is_today:
            return ""
        culprits = [culprit for failure in self.failures for culprit in failure.culprits]
        versions = {culprit.package: self.ends.bad.lock.version_of(culprit.package) for culprit in culprits}
        if not any(
            release.version > Version(version) and not release.version.is_prerelease
            for name, version in versions.items()
            if version
            for release in index.releases(name)
        ):
            return ""
        return f"If a later release fixed it: {self.question.command} --find-fix --bad {end.text} --good {TODAY}"

    def _advice_on_nothing(self, groups: Groups) -> str:
        """Return what to do where nothing newly fails."""
        good_run, bad_run = self.ends.good_runs[0], self.ends.bad_runs[-1]
        if not self.failures:
            self.compared = evolve(self.compared, not_rebuilt=self.ends.not_rebuilt)
        way_on = self._way_on() if groups.failing_at_both else ""
        if way_on and (failed := advice_on(good_run)):
            self.notes.append(failed)
        words = (self.ends.last_words(run) for run in (good_run, bad_run))
        return install_missing(self.repro, (good_run, bad_run)) or way_on or advice_on_ends(good_run, *words)

    def _note_limit(self) -> None:
        """Note how far the steps back went, or why there was none."""
        steps = self._steps
        if steps is not None and steps.reached:
            back_to = f"{steps.reached} ({steps.limit})" if steps.limit else steps.reached
            self.compared = evolve(self.compared, back_to=back_to)
        elif steps is not None and steps.limit:
            self.notes.append(f"no older packages were tried: {steps.limit}")

    def _way_on(self) -> str:
        """Return the command that steps further back, beyond the limit if there is one; "" if none is known to help."""
        steps, good = self._steps, self.ends.good
        command = " ".join([self.question.command, *self._until])
        if steps is None:
            if good is None or good.end.kind is not EndKind.DAY:
                return ""
            return f"To go back until it passes: {command}"
        if steps.way_on is None:
            return ""
        day, python = steps.way_on
        return f"To look further back: {command} --good {day} --python {python}"

    @property
    def _until(self) -> list[str]:
        """The option of the bad end; none if that is today."""
        bad = self.ends.bad.end
        return [] if bad.is_today else ["--bad", shlex.quote(bad.text)]

    # -- failures and their culprits

    def _explain(self, groups: Groups, good: Snapshot) -> Groups:
        """Find the culprits of what newly fails, and those that only show once these are held back.

        Returns what still fails with the constraints.
        """
        bad = self.ends.bad
        combination = evolve(bad.combination, from_source=(*bad.combination.from_source, *good.sources))
        if self.question.policy.find_fix and bad.as_of is not None:
            # Newer releases are put into older packages.
            bad, combination = evolve(bad, way=Way.NEAR), evolve(combination, as_of=good.as_of)
        bad = evolve(bad, combination=combination).lifting(good)
        self.compared = evolve(
            self.compared,
            not_run=self.compared.not_run or groups.not_run,
            flaky=tuple(dict.fromkeys((*self.compared.flaky, *groups.flaky))),
            changes=self.compared.changes or good.lock.diff(self.ends.bad.lock),
        )
        held: dict[str, str | None] = {}
        failures: list[Failure] = []
        for _ in range(_ROUNDS):
            each, narrow = groups.groups[:_MOST_GROUPS], evolve(bad, repro=self.ends.only(groups.tests))
            latest: list[Failure] = []
            for number, group in enumerate(each):
                self._tell(group, number, len(each))
                alone = self.ends.narrowed(group.tests)
                search = PackageSearch(self.ends.observer, group, self.question, narrow, good, alone, held)
                before = (*self.failures, *failures, *latest)
                known = {culprit.package for failure in before for culprit in failure.culprits}
                try:
                    latest.append(self._until_steady(search, known))
                except Exception as error:  # noqa: BLE001 - what is known of other failures stands
                    self._faults.append(error)
                    latest.append(self._ended(group, error))
            culprits = [culprit for failure in latest for culprit in failure.culprits]
            if not culprits:
                explained = {test for failure in failures if failure.culprits for test in failure.tests}
                failures += [
                    failure for failure in latest if not failure.tests or not explained.issuperset(failure.tests)
                ]
                break
            self.bounds = _tightest(culprits, self.bounds)
            run = self._verify(groups, bad)
            left = self.ends.left_in(run)
            self.verified_by = run if run.outcome.ran and passes_whole(left, run) else None
            if run.outcome is Outcome.UNRESOLVABLE:
                self.notes += _contradicted(bad.requirements, self.bounds)
            failures += latest
            new = {name: boundary.change.before for name, boundary in _tightest(culprits, {}).items()}
            if self.verified_by is not None or not left.groups or self._faults or new.keys() <= held.keys():
                break
            held |= new
            groups = left
        self.failures += failures
        if self._faults and not self._is_named:
            raise self._faults[0]
        return groups

    def _verify(self, groups: Groups, bad: Snapshot) -> Observation:
        """Run everything with the newest packages that the constraints allow."""
        label = f"the newest packages with {', '.join(self.constraints)}"
        return self.ends.run_whole(label, bad.constrained(self.ends.observer.prober, self.constraints), groups)

    def _until_steady(self, search: PackageSearch, known: set[str]) -> Failure:
        """Search a failure; if one run turns out not to tell good from bad, search it again with repeated runs."""
        try:
            return self._search(search, known)
        except FlakyError as error:
            self.ends.note_flaky(error.failures, error.runs)
        self.ends.observer.reporter.report(Note("it is flaky: every run is repeated from now on"))
        if (
            self.ends.measured is None
            and not self.ends.flaky(Groups((search.group,)), search.bad.repro, search.good).groups
        ):
            return _unsure(search.group, "it is flaky, and also fails at the good end")
        try:
            return self._search(evolve(search, observer=self.ends.observer), known)
        except FlakyError:
            return _unsure(search.group, "it is flaky, and its runs do not agree on a release")

    def _ended(self, group: Group, error: Exception) -> Failure:
        """Return a failure whose search an internal error ended; raises all other errors again."""
        fault = fault_in_words(self.ends.observer.prober.store, error, "its search")
        return evolve(_unsure(group, "an internal error ended its search"), fault=fault)

    def _search(self, search: PackageSearch, known: set[str]) -> Failure:
        group, bad, units, held = search.group, search.bad, search.units, search.held
        if not units:
            return _unsure(group, "no package can be downgraded")
        log = ""
        if not group.exceptions:
            what = "the failing tests" if group.tests else "the command"
            run = search.observe(f"{what} again, at the bad end", bad.itself())
            log = self.ends.observer.prober.store.log(run)
        order = ranked(units, group.exceptions, log, tuple(map(name_of, self.question.combination.requirements)))
        search = evolve(search, order=sorted(order, key=lambda name: name not in known))
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


def _unsure(group: Group, why: str) -> Failure:
    return Failure(group.tests, group.signature, Status.INCONCLUSIVE, note=why)


def _as_fix(failure: Failure, status: Status) -> Failure:
    """Return a failure between a good end and an older bad one with what fixed it."""
    culprits = (evolve(culprit, boundary=culprit.boundary.as_fix) for culprit in failure.culprits)
    return evolve(failure, culprits=tuple(culprits), status=status)


def _contradicted(requirements: Iterable[str], bounds: Mapping[str, Boundary]) -> list[str]:
    """Return a sentence for each constraint that a requirement of the question excludes, so that no run confirms it."""
    sentences = []
    for text in requirements:
        bound = bounds.get(name_of(text))
        before = bound.change.before if bound is not None else None
        if before and not Requirement(text).specifier.contains(before, prereleases=True):
            sentences.append(f"no run confirms {bound.constraint if bound else ''}: {text} is required")
    return sentences


def _tightest(culprits: Iterable[Culprit], known: Mapping[str, Boundary]) -> dict[str, Boundary]:
    """Return the boundaries of packages that must be held back, by package: of several, that with the lowest bound.

    The companions of a culprit must be held back, too.
    """
    tightest = dict(known)
    for culprit in culprits:
        for boundary in (culprit.boundary, *culprit.companions):
            other = tightest.get(boundary.subject)
            bound = Requirement(boundary.constraint or boundary.subject).specifier
            if other is None or not (other.change.before and bound.contains(other.change.before, prereleases=True)):
                tightest[boundary.subject] = boundary
    return tightest


def passes_whole(left: Groups, run: Observation) -> bool:
    """Whether nothing newly fails in a whole run; a command without test results must also have completed."""
    is_whole = run.outcome is Outcome.COMPLETED or (bool(run.tests) and run.outcome is not Outcome.TIMED_OUT)
    return not left.groups and is_whole
