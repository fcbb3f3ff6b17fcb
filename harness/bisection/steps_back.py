"""Goes back from the bad end of a question to snapshots before it, until something passes.

These are what the project's own history installed, then days; or releases of one package.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from itertools import zip_longest

from attrs import define, evolve, field
from packaging.version import Version

from harness.bisection.failures import (
    fails_alike,
    failures_between,
    packages_named,
    raised_in,
    some_of_each,
    titled,
)
from harness.bisection.observing import Observer, only_tests
from harness.culprit.ranking import named_in
from harness.errors import UserMistake
from harness.model import Observation, Repro, Verdict, name_of
from harness.model.signature import last_exception
from harness.model.text import counted, listed, one_line
from harness.probing import Judge, Probe
from harness.question.ends import EndKind, commit_end, day_end, release_end
from harness.question.lower_bounds import admits
from harness.question.package_set import Snapshot
from harness.question.revisions import LockHistory
from harness.question.snapshots import NoSolution, Snapshots


def _day_before(snapshot: Snapshot, days: int) -> str:
    """Name the snapshot of a day so many days before the bad end."""
    ago = counted(days, "day") if days % _WEEK else counted(days // _WEEK, "week")
    return f"as of {snapshot.end.text}, {ago} before"


def _how(run: Observation) -> str:
    """Say how a run failed, with what most of it raised unless its detail has that."""
    titles = Counter(map(titled, raised_in(run))).most_common(1)
    return run.detail if not titles or titles[0][0] in run.detail else f"{run.detail}: {titles[0][0]}"


_STEPS_BACK = 10  # in powers of two weeks: the last step is ten years before the bad end
_WEEK = 7
_SHOWN = 120  # characters of an error in a sentence
_FEW = 4  # a step back runs some of the failing tests first, if the suite has so many times more tests
_SUSPECTS = 3  # packages that are put back to older releases
_SMALL = 64 << 20  # bytes that are downloaded for a step that may not be needed


@define
class StepsBack:
    """The snapshots before the bad one, each with its name; an iterator that several searches may go on with.

    `reached` is the oldest day that was reached (ISO format), `oldest` its snapshot. `stopped` says why there is
    nothing before it, None until the steps end. `differs` is set by who runs a snapshot that fails with another error
    than the bug's: it may have worked between it and the snapshot before. `notes` are sentences about what could not be
    had. With `package` the older snapshots have its older releases beside the bad end's other packages.
    """

    snapshots: Snapshots
    bad: Snapshot
    package: str = ""
    reached: str = field(default="", init=False)
    oldest: Snapshot | None = field(default=None, init=False)
    stopped: UserMistake | None = field(default=None, init=False)
    differs: bool = field(default=False, init=False)
    notes: tuple[str, ...] = field(default=(), init=False)
    _alike: datetime | None = field(default=None, init=False)  # of the last snapshot that shows the bug
    _days_next: int | None = field(default=None, init=False)  # of the step after this one, if this one shows it, too
    _steps: Iterator[tuple[str, Snapshot]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        is_days = self.bad.end.kind is not EndKind.RELEASE and not self.package
        self._steps = self._snapshots() if is_days else self._releases()

    @property
    def limit(self) -> str:
        """Why there is nothing before the last step; "" until the steps end."""
        return str(self.stopped) if self.stopped is not None else ""

    @property
    def is_blocked(self) -> bool:
        """Whether requirements are the reason."""
        return isinstance(self.stopped, NoSolution) and not self.stopped.is_for_wheels

    @property
    def lacks_wheels(self) -> bool:
        """Whether missing wheels are the reason."""
        return isinstance(self.stopped, NoSolution) and self.stopped.is_for_wheels

    @property
    def way_on(self) -> tuple[str, str] | None:
        """The day that could not be had, and a Python of this machine that has wheels of its packages."""
        return self.stopped.way_on if isinstance(self.stopped, NoSolution) else None

    def __iter__(self) -> Iterator[tuple[str, Snapshot]]:
        """Yield the snapshots that are left. Raises `UserMistake` if the bad end has no day."""
        return self._steps

    def _snapshots(self) -> Iterator[tuple[str, Snapshot]]:
        """Yield the snapshots of the project's history, and then those of days before them.

        Raises `UserMistake` if neither the history nor the bad end has a day.
        """
        history = self.snapshots.history()
        if history is not None:
            history = history.until(self.bad.as_of or self.bad.end.moment)
            yield from self._back(partial(self._of_commit, history), 1, len(history.commits))
        if self.bad.as_of is None:
            if self.reached:
                self.stopped = UserMistake("no older commit changed the packages")
                return
            raise UserMistake("the good end is missing", hint="--good DAY, FILE or PYTHON says where it worked")
        self.stopped, self.differs = None, False
        days = (self.bad.as_of - self._alike).days if self._alike is not None else 0
        yield from self._back(self._of_day, _WEEK, _WEEK * 2 ** (_STEPS_BACK - 1), days)
        self.stopped = self.stopped or UserMistake("older packages were not tried")

    def _back(
        self, of: Callable[[int], tuple[str, Snapshot] | None], first: int, last: int, before: int = 0
    ) -> Iterator[tuple[str, Snapshot]]:
        """Yield the snapshots of `first`, twice, four times ... as many commits, days or releases back, up to `last`.

        `before` are known to show the bug. Before the first that has no solution, or that fails with another error,
        also some in the gap.
        """
        numbers = [first * 2**step for step in range(last.bit_length() + 1)]
        numbers = list(dict.fromkeys(min(number, last) for number in numbers if number > before and last))
        for number, after in zip_longest(numbers, numbers[1:]):
            if (named := of(number)) is None:
                yield from self._in_the_gap(of, before, number)
                return
            was_different = self.differs
            self._days_next = after if of == self._of_day else None
            yield named
            self._days_next = None
            if not self.differs:
                before, self._alike = number, named[1].end.moment
            elif not was_different:
                yield from self._in_the_gap(of, before, number)
                self.differs = True

    def _in_the_gap(
        self, of: Callable[[int], tuple[str, Snapshot] | None], before: int, without: int
    ) -> Iterator[tuple[str, Snapshot]]:
        """Yield snapshots between the last that shows the bug and the first that can't show it."""
        while without - before > 1:
            middle = (before + without) // 2
            if (named := of(middle)) is None:
                without = middle
                continue
            yield named
            before, without = (before, middle) if self.differs else (middle, without)

    def _of_commit(self, history: LockHistory, number: int) -> tuple[str, Snapshot] | None:
        file = history.file_in(sha := history.commits[number - 1])
        if file is None:
            return None
        try:
            end = commit_end(file, history.repository.describe(sha))
            snapshot = self.snapshots.of(end)
        except UserMistake as error:
            self.notes = (f"{file.path} of {sha[:10]} can't be installed, so days were tried: {error}",)
            return None
        if unmet := self._unmet(snapshot):
            self.notes = (f"{file.path} of {sha[:10]} has other versions than {listed(unmet)}, so days were tried",)
            return None
        self._reach(snapshot)
        return f"with {end.described}, {counted(number, 'change')} before", snapshot

    def _unmet(self, snapshot: Snapshot) -> list[str]:
        """Return the requirements that the user typed and that a commit's packages do not meet."""
        question = self.snapshots.question
        typed = [text for text in self.snapshots.requirements if text not in question.repro.dependencies]
        versions = {text: snapshot.lock.version_of(name_of(text)) for text in (*typed, *question.combination.holds)}
        return [text for text, version in versions.items() if version is not None and not admits(text, version)]

    def _reach(self, snapshot: Snapshot) -> None:
        day = snapshot.end.day
        if not self.reached or day < self.reached:
            self.reached, self.oldest = day, snapshot

    def expected(self) -> Snapshot | None:
        """The snapshot of the next step, if this one shows the bug; None if that is not known."""
        if self._days_next is None or self.bad.as_of is None:
            return None
        with contextlib.suppress(UserMistake, OverflowError):
            return self._at_day(self.bad.as_of, self._days_next)
        return None

    def _at_day(self, newest: datetime, days: int) -> Snapshot:
        """The snapshot of so many days before. Raises `UserMistake` and `OverflowError`."""
        # Whole days, so that the same question asked again finds its answers in the store.
        begun = newest.replace(hour=0, minute=0, second=0, microsecond=0)
        return self.snapshots.of(day_end(begun - timedelta(days=days)))

    def _of_day(self, days: int) -> tuple[str, Snapshot] | None:
        if self.bad.as_of is None:
            return None
        try:
            snapshot = self._at_day(self.bad.as_of, days)
        except (UserMistake, OverflowError) as error:
            self.stopped = error if isinstance(error, UserMistake) else UserMistake(str(error))
            return None
        self._reach(snapshot)
        return _day_before(snapshot, days), snapshot

    def _releases(self) -> Iterator[tuple[str, Snapshot]]:
        """Yield the snapshots one, two, four ... releases back, if they can be installed with the rest."""
        snapshots, bad = self.snapshots, self.bad
        if self.package:
            snapshots = evolve(snapshots, question=evolve(snapshots.question, subject=self.package))
        subject = snapshots.question.subject
        newest = bad.lock.version_of(self.package) if self.package else bad.end.text
        older = [
            str(release.version)
            for release in snapshots.index.releases(subject)
            if newest is not None
            and release.version < Version(Version(newest).public)
            and release.left_out_because(snapshots.interpreter.target) is None
        ]

        def of_release(number: int) -> tuple[str, Snapshot] | None:
            version = older[-number]
            try:
                snapshot = snapshots.at_release(release_end(version), bad)
            except UserMistake:
                return None
            self.reached = f"{subject} {version}"
            return self.reached, evolve(snapshot, end=release_end(self.reached)) if self.package else snapshot

        yield from self._back(of_release, 1, len(older))
        self.stopped = UserMistake(f"{subject} has no older release that can be installed here")


@define
class WayBack:
    """Runs the snapshots before the bad end until something passes that fails there.

    The first run in `failing` is that of the bad end; further ones are those of a good end from which it goes further
    back. `steps` are those that are left. `unjudged` says how older packages fail with another error than the bug's,
    and `alike` are runs of older ones that show it.
    """

    observer: Observer
    snapshots: Snapshots
    bad: Snapshot
    failing: tuple[Observation, ...]
    steps: StepsBack = field(init=False)
    unjudged: str = field(default="", init=False)
    alike: list[Observation] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self.steps = StepsBack(self.snapshots.building_only(self.bad.sources), self.bad)

    @property
    def _repro(self) -> Repro:
        return self.snapshots.question.repro

    def good_end(self, tests: tuple[str, ...] = ()) -> tuple[Snapshot, Observation] | None:
        """Return the next snapshot in which something passes that fails at the bad end, with its run; None without one.

        With `tests` only these run.
        """
        return self._step_back(self.steps, only_tests(self._repro, tests), tests)

    def _step_back(
        self, steps: StepsBack, repro: Repro, tests: tuple[str, ...] = ()
    ) -> tuple[Snapshot, Observation] | None:
        few = self._few(tests)
        failing = {self.bad.lock.id: ""}  # how each lock fails with another error, "" if it fails with the bug's
        others: dict[str, str] = {}  # the same by day
        doubted: list[tuple[str, Snapshot]] = []
        is_next_known = False
        for name, snapshot in steps:
            if snapshot.lock.id not in failing:
                after = [] if is_next_known else [partial(self._expected, steps, few or repro)]
                with self.observer.beside(*after) as tasks:
                    run = self.observer.observe(name, snapshot.itself(few or repro))
                    if is_good := self._passes_more(run):
                        for task in tasks:
                            task.stop()
                is_next_known = any(task.result() for task in tasks if not task.cancelled())
                if is_good and few is None:
                    return snapshot, run
                if is_good and (whole := self._run_whole(name, snapshot, repro)) is not None:
                    return snapshot, whole
                if differs := self._differs(run):
                    doubted += [(name, snapshot)] if few is not None else []
                else:
                    self.alike.append(run)
                failing[snapshot.lock.id] = one_line(_how(run), _SHOWN) if differs else ""
            others[snapshot.end.day] = failing[snapshot.lock.id]
            steps.differs = bool(others[snapshot.end.day])
        # Alone, a test may fail because it needs the tests that run before it.
        for name, snapshot in doubted:
            if (whole := self._run_whole(name, snapshot, repro)) is not None:
                return snapshot, whole
        oldest = min((day for day, other in others.items() if not other), default=self.bad.end.day)
        unjudged = max((day for day, other in others.items() if other and day < oldest), default="")
        fail = f"fail with another error (as of {unjudged}: {others[unjudged]})" if unjudged else ""
        known = f"it fails back to {oldest}, and older packages" if oldest != self.bad.end.day else ""
        self.unjudged = f"{known or 'older packages that were tried'} {fail}" if fail else ""
        return None

    def _expected(self, steps: StepsBack, repro: Repro) -> Probe | None:
        """Return the probe of the step after this one, if it can run without a long download; it may not be needed."""
        if (snapshot := steps.expected()) is None:
            return None
        estimate = self.observer.prober.builder.estimate(snapshot.lock)
        is_long = estimate is not None and (estimate.unsized or estimate.download > _SMALL)
        return None if is_long else snapshot.itself(repro)

    def _few(self, tests: tuple[str, ...]) -> Repro | None:
        """Return the command with some tests of each failure of the bad end; None if the whole suite is as small.

        `tests` are those to choose from; none means all.
        """
        run = self.failing[0]
        few = some_of_each(run, tests)
        is_worth_it = bool(few) and len(few) * _FEW <= len(tests or run.tests)
        return only_tests(self._repro, few) if is_worth_it else None

    def _passes_more(self, run: Observation) -> bool:
        store, signature = self.observer.prober.store, self._repro.signature
        return run.outcome.ran and bool(failures_between([run], self.failing[:1], store, signature).groups)

    def _run_whole(self, name: str, snapshot: Snapshot, repro: Repro) -> Observation | None:
        """Run a snapshot with the whole command; returns the run if something passes in it that fails now."""
        run = self.observer.observe(f"{name}, all tests", snapshot.itself(repro))
        return run if self._passes_more(run) else None

    def one_package_back(self, tests: tuple[str, ...] = ()) -> tuple[Snapshot, Observation] | None:
        """Return a snapshot with an older release of one package beside the newest of all others, as `good_end` does.

        So if older packages fail with another error, or none can be installed, as when they have no wheels. Only
        packages that the failure names, or that of these `tests`, are tried.
        """
        if self.bad.as_of is None or (self.alike and not self.unjudged and not self.steps.lacks_wheels):
            return None
        unjudged = self.unjudged
        installed = tuple(pin.name for pin in self.bad.lock.pins)
        failed, repro = self.failing[0], only_tests(self._repro, tests)
        failed = evolve(failed, tests=tuple(test for test in failed.tests if not tests or test.id in tests))
        named = packages_named(failed, installed) or named_in((), installed, self.observer.prober.store.log(failed))
        for name in named[:_SUSPECTS]:
            if (end := self._step_back(StepsBack(self.snapshots, self.bad, name), repro, tests)) is not None:
                self.unjudged = ""
                return end
        self.unjudged = unjudged
        return None

    def _differs(self, run: Observation) -> bool:
        """Whether a run says nothing about the bug: nothing in it fails as it fails now, or at a newer good end."""
        signature = self._repro.signature
        if signature is None:
            alike = fails_alike if run.tests else self._ends_alike
            return not any(alike(run, other) for other in self.failing)
        return Judge(signature, self.observer.prober.store)(run).verdict is Verdict.SKIP

    def _ends_alike(self, run: Observation, other: Observation) -> bool:
        """Whether a command that is judged as a whole fails twice with one exit code and the same type of exception."""
        raised = [last_exception(self.observer.prober.store.log(side)) for side in (run, other)]
        first, second = (error.type if error is not None else "" for error in raised)
        return fails_alike(run, other) or (not other.tests and (run.exit_code, first) == (other.exit_code, second))

    @property
    def why_not(self) -> str:
        """Why older packages could not be tried; "" if they were, as far as there are any."""
        steps = self.steps
        if self.alike and not steps.is_blocked:
            return ""
        if self.alike:
            return f"it fails back to {steps.reached or 'the bad end'}, and before that {steps.limit}"
        if not steps.reached:
            return f"no older packages could be tried: {steps.limit}"
        return f"no older packages could be tried: the same are installed back to {steps.reached} ({steps.limit})"
