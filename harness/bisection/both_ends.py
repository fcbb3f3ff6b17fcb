"""Runs both ends of a question between two sets of packages, and finds what newly fails, also if only in some runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial

from attrs import define, evolve, field

from harness.bisection.advice import advice_on_limits, again, cut_short, last_words
from harness.bisection.failures import (
    Group,
    Groups,
    fails,
    failures_between,
)
from harness.bisection.measuring import FEW_RUNS, MeasuredEnds, Measuring
from harness.bisection.observing import Observer, only_tests
from harness.bisection.steps_back import StepsBack, WayBack
from harness.errors import UserMistake
from harness.events import run_label
from harness.model import Change, Observation, Outcome, Repro, Verdict
from harness.model.text import counted, listed
from harness.probing import Judge, Probe
from harness.probing.line import Line, RunLog
from harness.question.ends import end_words
from harness.question.package_set import Snapshot
from harness.question.snapshots import Snapshots
from harness.run.commands import NO_TESTS
from harness.search import MOST_PASSES, Trial, passes_needed

_PASSES = 7  # of bugs that fail half of the time, 1 in 128 passes every run
RATE_RUNS = (8, 16)  # runs of the bad end from which the failure rate of a flaky bug is estimated; more if it is rare
RATE_FAILURES = 4
_LATEST = 50  # attempts of the good end at most, of which the first that was not made before runs today
_NAMED = 3  # tests that a sentence names
_CHANGES = 12  # packages that it names, which are nowhere else
# Fixed time limits, so that the same question asked again gets the same limit and finds its answers in the store.
_LIMITS_S = (60.0, 120.0, 240.0)
_TIMES_LONGER = 10


def soon_stopped(repro: Repro, seconds: float) -> Repro:
    """Return the repro with a limit of at least ten times `seconds`, its duration at the good end.

    The limit is 1, 2 or 4 minutes, and never longer than the repro's own. A new limit changes the digest, because a
    run that timed out says nothing about a longer limit.
    """
    limit = next((step for step in _LIMITS_S if step >= _TIMES_LONGER * seconds), repro.timeout)
    if limit >= repro.timeout:
        return repro
    return evolve(repro.within(limit, is_own=False), digest=f"{repro.digest}-{limit:g}")


class MachineFailedError(Exception):
    """The machine failed the run of an end; the message says how."""


@define
class BothEnds:
    """The two ends of a question and their runs; `good` is None until it is found further and further back.

    `way_back` has the steps if no good end was named; `newer` are the runs of each good end from which it went further
    back, for tests that fail there, too. `unlike` says how an environment that is the good end differs from the one
    that is built from its lock. `together` are tests that had another result without the tests that run before them.
    """

    observer: Observer
    snapshots: Snapshots
    bad: Snapshot
    good: Snapshot | None
    measured: MeasuredEnds | None = None
    newer: list[list[Observation]] = field(factory=list, init=False)
    way_back: WayBack | None = field(default=None, init=False)
    unlike: str = field(default="", init=False)
    together: frozenset[str] = field(default=frozenset(), init=False)
    good_runs: list[Observation] = field(factory=list, init=False)
    bad_runs: list[Observation] = field(factory=list, init=False)

    @property
    def repro(self) -> Repro:
        """What runs."""
        return self.snapshots.question.repro

    def run_bad(self) -> bool:
        """Run the bad end until it fails; returns whether it did.

        Raises `UserMistake` if it can't be run, and `MachineFailedError`.
        """
        if self.measured is not None:
            self.bad_runs = [self.measured.of_side(self.measured.bad)]
            return True
        label, probe = f"the bad end, {self.bad.end.text}", self.bad.itself()
        good = [self.good.itself] if self.good is not None and self.good.inside is None else []
        with self.observer.beside(*good) as tasks:
            run = self.observer.observe(label, probe)
            if not self._fails(run):
                for task in tasks:
                    task.stop()
        self.bad_runs = [run]
        _refuse_machine(run, self.bad)
        if not self._fails(run):
            confirm = self.observer.policy.confirm
            again = range(1, _PASSES if confirm is None else confirm + 1)
            self.bad_runs += self.observer.observe_again(label, probe, again, self._fails)
            _refuse_machine(self.bad_runs[-1], self.bad)
            if not self._fails(self.bad_runs[-1]):
                return False
            self.note_flaky(1, len(self.bad_runs))
        run = self.bad_runs[-1]
        refuse_mistake(run, self.repro, self.observer.typed)
        if not run.outcome.ran or run.outcome in (Outcome.OUT_OF_MEMORY, Outcome.DECLINED):
            raise UserMistake(f"the bad end ({self.bad.end.text}) can't be run: {run.detail}")
        return True

    def _fails(self, run: Observation) -> bool:
        return fails(run, self.observer.prober.store, self.repro.signature)

    def run_good(self) -> bool:
        """Run the good end; without one, older snapshots until one passes more. Returns whether there is one.

        Raises `UserMistake` and `MachineFailedError`.
        """
        if self.measured is not None:
            self.good_runs = [self.measured.of_side(self.measured.good)]
            return True
        if self.good is not None:
            self._run_given(self.good)
            self._run_today(self.good)
            return True
        self.way_back = WayBack(self.observer, self.snapshots, self.bad, (self.bad_runs[-1],))
        return self._is_good(self.way_back.good_end() or self.way_back.one_package_back())

    def _is_good(self, end: tuple[Snapshot, Observation] | None) -> bool:
        """Take a snapshot and its run as the good end, if there is one."""
        if end is not None:
            self.good, self.good_runs = end[0], [end[1]]
            self._run_today(self.good)
        return end is not None

    def _run_today(self, good: Snapshot) -> None:
        """Run the good end again if its run is older than the observer allows: the machine may fail it by now."""
        run, attempt, label = self.good_runs[0], 0, f"the good end, {good.end.text}"
        while run.started < self.observer.since and good.inside is None and attempt < _LATEST:
            attempt += 1
            run = self.observer.observe(run_label(label, attempt), evolve(good.itself(), attempt=attempt))
        if not attempt:
            return
        _refuse_machine(run, good)
        newly = [self.newly_failing([side], self.bad_runs[-1:]).groups for side in (self.good_runs[0], run)]
        if newly[0] and not newly[1]:
            why = self.last_words(run)
            raise MachineFailedError(f"not the packages: {label}, passed before and fails here today, too: {why}")
        self.good_runs = [run]

    def measure(self) -> MeasuredEnds:
        """Run both ends until their numbers differ clearly; without a good one, older snapshots until one differs.

        Raises `UserMistake`.
        """
        if self.good is not None:
            self.check_different(self.good)
            return self._measured(self.good)
        steps, tried = StepsBack(self.snapshots.building_only(self.bad.sources), self.bad), {self.bad.lock.id}
        oldest: Snapshot | None = None
        for _, snapshot in steps:
            if snapshot.lock.id in tried:
                continue
            tried.add(snapshot.lock.id)
            ends = self._measured(snapshot, FEW_RUNS)
            steps.differs = not ends.has_numbers
            if ends.is_large or ends.record.number(Trial(ends.bad)) is None:
                return ends
            if ends.has_numbers:
                oldest = snapshot
        if oldest is None:
            raise UserMistake(
                f"no older packages have the number: {steps.limit}",
                hint="--good DAY, FILE or PYTHON says where it was right",
            )
        return self._measured(oldest)

    def _measured(self, good: Snapshot, *most: int) -> MeasuredEnds:
        """Measure a snapshot as the good end, and the bad one."""
        self.good = good
        observer, snapshots = self.observer, (evolve(good, inside=None), evolve(self.bad, inside=None))

        def probe(trial: Trial) -> Probe:
            return evolve(snapshots[trial.position].itself(), attempt=trial.attempt)

        line = Line("", tuple(snapshot.end.text for snapshot in snapshots), probe, good=0, bad=1)
        judge = Judge(self.repro.signature, observer.prober.store)
        measuring = Measuring(line, judge, observer.prober, observer.lanes, observer.reporter)
        measured = measuring.between(RunLog(line, judge, reporter=observer.reporter), 0, 1, *most)
        observer.tally.ran_now += measured.record.ran
        return measured

    def further_back(self, tests: tuple[str, ...]) -> bool:
        """Step further back with only these tests, which fail in the good end that was found; it is replaced by one in
        which one of them passes. Returns whether there is one.
        """
        if self.way_back is None:
            return False
        failing, newer = next(run for run in self.bad_runs if self._fails(run)), self.good_runs
        self.way_back.failing = (failing, *newer)
        if not self._is_good(self.way_back.good_end(tests) or self.way_back.one_package_back(tests)):
            return False
        self.bad_runs = [failing]
        self.newer.append(newer)
        return True

    def _run_given(self, good: Snapshot) -> None:
        """Run a good end that was named. An environment runs as it is, then as it is rebuilt from its lock."""
        label = f"the good end, {good.end.text}"
        if good.inside is None:
            self.good_runs = [self._run_end(label, good)]
            return
        itself = self._run_end(f"{label}, as it is", good)
        self.good_runs = [itself]
        wanted = self.newly_failing([itself], self.bad_runs[-1:])
        if not wanted.groups:
            return
        # Everything else is made from the lock, so its environment has to be good, too.
        self.good = evolve(good, inside=None)
        rebuilt = self._run_end(f"{label}, rebuilt", self.good)
        if rebuilt.lock is not None and self.newly_failing([rebuilt], self.bad_runs[-1:]).groups:
            self.good_runs = [rebuilt]
            return
        note = f"{good.end.text} passes as it is, and fails when it is rebuilt for Python {self.good.lock.python}"
        self.unlike = f"{note}: {self.last_words(rebuilt)}"
        self.good_runs = [itself, rebuilt]

    @property
    def not_rebuilt(self) -> str:
        """Why a failure of the good end may not be its own: what was changed about it; "" if nothing was."""
        if self.unlike or self.good is None or self.good.inside is not None:
            return self.unlike
        return "; ".join(self.good.changed)

    def _run_end(self, label: str, snapshot: Snapshot) -> Observation:
        run = self.observer.observe(label, snapshot.itself())
        if not run.outcome.ran:
            why = "can't be run" if run.outcome is not Outcome.UNINSTALLABLE else "could not be rebuilt"
            raise UserMistake(f"the good end ({snapshot.end.text}) {why}: {run.detail}")
        _refuse_machine(run, snapshot)
        refuse_mistake(run, self.repro, self.observer.typed)
        return run

    def newly_failing(self, good: Sequence[Observation], bad: Sequence[Observation]) -> Groups:
        """Return what passes in the runs of the good end and fails in those of the bad one."""
        return failures_between(good, bad, self.observer.prober.store, self.repro.signature)

    def left_in(self, run: Observation) -> Groups:
        """Return what passes at the good end, or at a newer one for other tests, and fails in a run."""
        left = [self.newly_failing(runs, [run]) for runs in (self.good_runs, *self.newer[::-1])]
        return next((groups for groups in left if groups.groups), left[-1])

    def run_whole(self, label: str, probe: Probe, groups: Groups) -> Observation:
        """Run everything with other packages, as often as a pass has to be repeated.

        Returns the first run that can't run or has one of these failures, or else the last one.
        """
        judges = [group.judge(self.observer.prober.store) for group in groups.groups]
        if self.measured is not None:
            return self.observer.observe(label, probe, judges[0])

        def decides(run: Observation) -> bool:
            return not run.outcome.ran or any(judge(run).verdict is Verdict.BAD for judge in judges)

        return self.observer.observe_again(label, probe, range(self.observer.passes), decides)[-1]

    def between(self) -> Groups:
        """Return what newly fails, after the failing tests have run again at both ends.

        A test with another result alone may depend on those that run before it: then the whole command is run. It is a
        flaky regression if it fails only in some of these runs at the bad end, and in none at the good end.
        """
        groups = self.newly_failing(self.good_runs, self.bad_runs[-1:])
        if (
            not groups.groups
            or self.good is None
            or self.measured is not None
            or not (groups.tests or self.observer.is_flaky)
        ):
            return groups
        if groups.tests and not self.observer.is_flaky:
            repro = self.only(groups.tests)
            with self.observer.beside(partial(self.good.itself, repro)):
                again = self.observer.observe("the failing tests again, at the bad end", self.bad.itself(repro))
            good_again = self.observer.observe("the failing tests again, at the good end", self.good.itself(repro))
            repeated = self.newly_failing((*self.good_runs, good_again), (*self.bad_runs[-1:], again))
            if not repeated.flaky:
                self.bad_runs.append(again)
                self.good_runs.append(good_again)
                return repeated
            self.together |= frozenset(repeated.flaky).intersection(groups.tests)
        groups = self.flaky(groups, self.only(groups.tests), self.good)
        self.together -= frozenset(groups.flaky)
        return groups

    @property
    def _older(self) -> Snapshot | None:
        """The good end, or the oldest snapshot that was reached without finding one."""
        return self.good if self.good is not None or self.way_back is None else self.way_back.steps.oldest

    @property
    def not_kept(self) -> tuple[str, ...]:
        """The project's bounds that could not be kept on the way back."""
        return tuple(self._older.lifted) if self._older is not None else ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user has to know about the ends, and about tests that depend on others."""
        older = self._older
        notes = (
            *(older.notes if older is not None else ()),
            *(self.way_back.steps.notes if self.way_back is not None else ()),
            *self.bad.notes,
            *self._not_bisected(),
            *cut_short("the good end", self.good_runs[:1]),
            *cut_short("the bad end", self.bad_runs[:1]),
        )
        if not self.together or self.observer.is_flaky:
            return notes
        names, depends = listed(sorted(self.together), _NAMED), "depends" if len(self.together) == 1 else "depend"
        order = f"{names} {depends} on the tests that run before: alone, the result differs, so all tests were run"
        return (*notes, order)

    def _not_bisected(self) -> Iterator[str]:
        """Say which packages differ between the ends that no index has."""
        older = self._older
        if older is None or not (older.apart and self.bad.apart):
            return
        names = sorted({*older.apart, *self.bad.apart})
        changes = [Change(name, older.apart.get(name), self.bad.apart.get(name)) for name in names]
        if differing := [str(change) for change in changes if change.before != change.after]:
            yield f"not bisected, because only conda has them: {listed(differing, _CHANGES)}"

    def flaky(self, groups: Groups, repro: Repro, good: Snapshot) -> Groups:
        """Estimate how often it fails at the bad end, and run the good end as often as that needs to be sure."""
        observer = self.observer
        judges = [group.judge(observer.prober.store) for group in groups.groups]
        distinct = {run.key: run for run in self.bad_runs[-1:]}

        def failures(runs: Collection[Observation]) -> list[int]:
            return [sum(judge(run).verdict is Verdict.BAD for run in runs) for judge in judges]

        def tells_the_rate(run: Observation) -> bool:
            distinct[run.key] = run
            count = run.attempt + 1
            return count >= RATE_RUNS[0] - 1 and min(failures(distinct.values())) >= RATE_FAILURES

        observer.observe_again("the bad end", self.bad.itself(repro), range(RATE_RUNS[1] - 1), tells_the_rate)
        bad_runs, failed = list(distinct.values()), failures(distinct.values())
        needed = [passes_needed(number, len(bad_runs)) for number in failed]
        times = max((passes for passes in needed if passes <= MOST_PASSES), default=0)
        good_runs = [*self.good_runs]

        def all_fail(run: Observation) -> bool:
            good_runs.append(run)
            return all(failures(good_runs))

        observer.observe_again("the good end", good.itself(repro), range(times), all_fail)
        regressed: list[Group] = []
        unstable: list[Group] = []
        for group, at_good, passes in zip(groups.groups, failures(good_runs), needed, strict=True):
            # Too rare a failure can't be told from none: it would name an innocent package.
            (unstable if at_good or passes > MOST_PASSES else regressed).append(group)
        rates = [number for group, number in zip(groups.groups, failed, strict=True) if group in regressed]
        if rates and min(rates) == len(bad_runs):
            # Only tests that fail at both ends were flaky.
            self.observer = evolve(observer, policy=self.snapshots.question.policy)
        elif rates:
            self.note_flaky(min(rates), len(bad_runs))
        self.bad_runs += bad_runs[1:]
        flaky = tuple(test for group in unstable for test in group.tests)
        return evolve(groups, groups=tuple(regressed), flaky=flaky)

    def note_flaky(self, failures: int, runs: int) -> None:
        """Note that one run does not tell good from bad: it failed in `failures` of `runs` runs of the bad end."""
        self.observer = self.observer.flaky(failures, runs)

    def only(self, tests: tuple[str, ...]) -> Repro:
        """Return the command with only these tests, and with a shorter time limit."""
        repro = self.narrowed(tests)
        return soon_stopped(repro, self.good_runs[0].duration_s) if tests else repro

    def narrowed(self, tests: tuple[str, ...]) -> Repro:
        """Return the command with only these tests; the whole one if a result depends on the tests that run before."""
        return self.repro if self.together.intersection(tests) else only_tests(self.repro, tests)

    def last_words(self, run: Observation) -> str:
        """Describe how a whole command failed."""
        return last_words(self.observer.prober.store.log(run)) or run.detail

    def check_different(self, good: Snapshot) -> None:
        """Raise `UserMistake` if both ends install the same packages."""
        if good.lock.diff(self.bad.lock):
            return
        limits = self.snapshots.limits_of(self.bad)
        hint = advice_on_limits(limits) or "choose ends that are further apart"
        raise UserMistake(
            f"both ends install the same packages: {good.end.text} and {self.bad.end.text} resolve to the same "
            f"{counted(len(good.lock.pins), 'release')}",
            hint=hint,
        )


def _refuse_machine(run: Observation, snapshot: Snapshot) -> None:
    if run.outcome is Outcome.MACHINE_FAILED:
        raise MachineFailedError(f"the machine failed the run {end_words(snapshot.end)}: {run.detail}")


def refuse_mistake(run: Observation, repro: Repro, typed: tuple[str, ...] = ()) -> None:
    """Raise `UserMistake` if a run of `repro` failed because of a mistake in the command."""
    no_package_did_it = run.mistake.startswith(("SyntaxError", "IndentationError", "TabError", "no such "))
    if not run.mistake or (run.tests and not no_package_did_it):
        return
    hint = f"to see the run: {again(run, typed)}"
    if run.mistake == NO_TESTS and not repro.project:
        hint = "there is no project here: go to its folder, or name it with --project"
    raise UserMistake(f"the command fails for a reason that is not a bug: {run.mistake}", hint=hint)
