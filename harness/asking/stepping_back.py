"""Steps back from the bad end to older packages: earlier days, or older releases of the subject, further each time."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

from attrs import define, evolve, field
from packaging.version import Version

from harness.errors import UserMistake
from harness.request.ends import EndKind, day_end, release_end

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.planning.world import World
    from harness.planning.worlds import Worlds

_STEPS_BACK = 10  # in powers of two weeks: the last step is ten years before the bad end
_HALVINGS = 4
_WEEK = 7
_WAY_ON = re.compile(r"--(?:python|build) [\w.-]*\d[\w.-]*")


@define
class StepsBack:
    """The worlds before the bad one, each with its name; an iterator that several searches may go on with.

    `reached` is the oldest day that was reached (ISO format), `limit` says why there is nothing before it, and `way_on`
    are the options that may lead further; all "" until the steps end. `differs` is set by who runs a world that fails
    with another error than the bug's: it may have worked between it and the world before. With `package` the worlds
    before are those of its older releases beside the bad end's other packages.
    """

    worlds: Worlds
    bad: World
    package: str = ""
    reached: str = field(default="", init=False)
    limit: str = field(default="", init=False)
    way_on: str = field(default="", init=False)
    differs: bool = field(default=False, init=False)
    _steps: Iterator[tuple[str, World]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        is_days = self.bad.end.kind is not EndKind.RELEASE and not self.package
        self._steps = self._days() if is_days else self._releases()

    def __iter__(self) -> Iterator[tuple[str, World]]:
        """Yield the worlds that are left. Raises `UserMistake` if the bad end has no day."""
        return self._steps

    def _days(self) -> Iterator[tuple[str, World]]:
        """Yield the worlds of one, two, four ... weeks before.

        Before the first that has no solution, or that fails with another error, also some in the gap.
        """
        if self.bad.as_of is None:
            raise UserMistake("the good end is missing", hint="--good DAY, FILE or PYTHON says where it worked")
        before = 0
        for step in range(_STEPS_BACK):
            days = _WEEK * 2**step
            if (world := self._of_day(days)) is None:
                yield from self._in_the_gap(before, days)
                return
            was_different = self.differs
            yield f"as of {world.end.text}, {days // _WEEK} weeks before", world
            if not self.differs:
                before = days
            elif not was_different:
                yield from self._in_the_gap(before, days)
                self.differs = True
        self.limit = "older packages were not tried"

    def _in_the_gap(self, before: int, without: int) -> Iterator[tuple[str, World]]:
        """Yield worlds between the last day that shows the bug and the first that can't show it."""
        for _ in range(_HALVINGS):
            if without - before <= _WEEK:
                return
            middle = (before + without) // 2
            if (world := self._of_day(middle)) is None:
                without = middle
                continue
            yield f"as of {world.end.text}, {middle} days before", world
            before, without = (before, middle) if self.differs else (middle, without)

    def _of_day(self, days: int) -> World | None:
        if self.bad.as_of is None:
            return None
        try:
            end = day_end(self.bad.as_of - timedelta(days=days))
            world = self.worlds.of(end)
        except (UserMistake, OverflowError) as error:
            self.limit = str(error)
            found = _WAY_ON.search(getattr(error, "hint", "") or "")
            self.way_on = f"--good {end.text} {found[0]}" if found else ""
            return None
        self.reached = min(self.reached or end.text, end.text)
        return world

    def _releases(self) -> Iterator[tuple[str, World]]:
        """Yield the worlds one, two, four ... releases back, without releases that can't be installed with the rest."""
        worlds, bad = self.worlds, self.bad
        if self.package:
            worlds = evolve(worlds, subject=self.package)
        newest = bad.lock.version_of(self.package) if self.package else bad.end.text
        tags = frozenset(worlds.interpreter.wheel_tags())
        older = [
            str(release.version)
            for release in worlds.index.releases(worlds.subject)
            if newest is not None
            and release.version < Version(Version(newest).public)
            and release.left_out_because(python=worlds.interpreter.version, tags=tags) is None
        ]
        positions = dict.fromkeys(min(2**step, len(older)) for step in range(len(older).bit_length() + 1) if older)
        for position in positions:
            version = older[-position]
            try:
                world = worlds.at_release(version, bad)
            except UserMistake:
                continue
            self.reached = f"{worlds.subject} {version}"
            yield self.reached, evolve(world, end=release_end(self.reached)) if self.package else world
        self.limit = f"{worlds.subject} has no older release that can be installed here"
