"""Steps back from the bad end of a question to snapshots before it.

These are what the project's own history installed, then days; or releases of one package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from attrs import define, evolve, field
from packaging.version import Version

from harness.errors import UserMistake
from harness.model.text import counted
from harness.question.request import EndKind, commit_end, day_end, release_end
from harness.question.revisions import History
from harness.question.snapshots import NoSolution, Snapshot, Snapshots


def _day_before(snapshot: Snapshot, days: int) -> str:
    """Name the snapshot of a day so many days before the bad end."""
    ago = counted(days, "day") if days % _WEEK else counted(days // _WEEK, "week")
    return f"as of {snapshot.end.text}, {ago} before"


_STEPS_BACK = 10  # in powers of two weeks: the last step is ten years before the bad end
_WEEK = 7


@define
class StepsBack:
    """The snapshots before the bad one, each with its name; an iterator that several searches may go on with.

    `reached` is the oldest day that was reached (ISO format), `limit` says why there is nothing before it; "" until the
    steps end, and `hint` what to do about it; with `is_blocked`, requirements are the reason. `oldest` is the snapshot
    of `reached`. `way_on` is the day that could not be had, and a Python of this machine that has wheels of its
    packages. `differs` is set by who runs a snapshot that fails with another error than the bug's: it may have worked
    between it and the snapshot before. `notes` are sentences about what could not be had. With `package` the older
    snapshots have its older releases beside the bad end's other packages.
    """

    snapshots: Snapshots
    bad: Snapshot
    package: str = ""
    reached: str = field(default="", init=False)
    oldest: Snapshot | None = field(default=None, init=False)
    limit: str = field(default="", init=False)
    hint: str = field(default="", init=False)
    is_blocked: bool = field(default=False, init=False)
    way_on: tuple[str, str] | None = field(default=None, init=False)
    differs: bool = field(default=False, init=False)
    notes: tuple[str, ...] = field(default=(), init=False)
    _history: History | None = field(default=None, init=False)
    _alike: datetime | None = field(default=None, init=False)  # of the last snapshot that shows the bug
    _steps: Iterator[tuple[str, Snapshot]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        is_days = self.bad.end.kind is not EndKind.RELEASE and not self.package
        self._steps = self._snapshots() if is_days else self._releases()

    def __iter__(self) -> Iterator[tuple[str, Snapshot]]:
        """Yield the snapshots that are left. Raises `UserMistake` if the bad end has no day."""
        return self._steps

    def _snapshots(self) -> Iterator[tuple[str, Snapshot]]:
        """Yield the snapshots of the project's history, and then those of days before them.

        Raises `UserMistake` if neither the history nor the bad end has a day.
        """
        history = self.snapshots.history()
        if history is not None:
            self._history = history.until(self.bad.as_of or self.bad.end.moment)
            yield from self._back(self._of_commit, 1, len(self._history.commits))
        if self.bad.as_of is None:
            if self.reached:
                self.limit = "no older commit changed the packages"
                return
            raise UserMistake("the good end is missing", hint="--good DAY, FILE or PYTHON says where it worked")
        self.limit, self.differs = "", False
        days = (self.bad.as_of - self._alike).days if self._alike is not None else 0
        yield from self._back(self._of_day, _WEEK, _WEEK * 2 ** (_STEPS_BACK - 1), days)
        self.limit = self.limit or "older packages were not tried"

    def _back(
        self, of: Callable[[int], tuple[str, Snapshot] | None], first: int, last: int, before: int = 0
    ) -> Iterator[tuple[str, Snapshot]]:
        """Yield the snapshots of `first`, twice, four times ... as many commits or days back, up to `last`.

        `before` are known to show the bug. Before the first that has no solution, or that fails with another error,
        also some in the gap.
        """
        numbers = [first * 2**step for step in range(last.bit_length() + 1)]
        for number in dict.fromkeys(min(number, last) for number in numbers if number > before and last):
            if (named := of(number)) is None:
                yield from self._in_the_gap(of, before, number)
                return
            was_different = self.differs
            yield named
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

    def _of_commit(self, number: int) -> tuple[str, Snapshot] | None:
        history = self._history
        file = history.file_in(sha := history.commits[number - 1]) if history is not None else None
        if history is None or file is None:
            return None
        try:
            end = commit_end(file, history.repository.describe(sha))
            snapshot = self.snapshots.of(end)
        except UserMistake as error:
            self.notes = (f"{file.path} of {sha[:10]} can't be installed, so days were tried: {error}",)
            return None
        self._reach(snapshot)
        return f"with {end.described}, {counted(number, 'change')} before", snapshot

    def _reach(self, snapshot: Snapshot) -> None:
        day = snapshot.end.day
        if not self.reached or day < self.reached:
            self.reached, self.oldest = day, snapshot

    def _of_day(self, days: int) -> tuple[str, Snapshot] | None:
        if self.bad.as_of is None:
            return None
        try:
            # Whole days, so that the same question asked again finds its answers in the store.
            begun = self.bad.as_of.replace(hour=0, minute=0, second=0, microsecond=0)
            end = day_end(begun - timedelta(days=days))
            snapshot = self.snapshots.of(end)
        except (UserMistake, OverflowError) as error:
            self.limit, self.hint = str(error), error.hint if isinstance(error, UserMistake) else ""
            self.is_blocked = isinstance(error, NoSolution) and not error.is_for_wheels
            self.way_on = (end.text, error.python) if isinstance(error, NoSolution) and error.python else None
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
        positions = dict.fromkeys(min(2**step, len(older)) for step in range(len(older).bit_length() + 1) if older)
        for position in positions:
            version = older[-position]
            try:
                snapshot = snapshots.at_release(release_end(version), bad)
            except UserMistake:
                continue
            self.reached = f"{subject} {version}"
            yield self.reached, evolve(snapshot, end=release_end(self.reached)) if self.package else snapshot
        self.limit = f"{subject} has no older release that can be installed here"
