"""Makes the worlds of a question's ends (days, files, Pythons, releases), and those before the bad one."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from attrs import evolve, frozen
from packaging.version import Version

from harness.errors import UserMistake
from harness.planning.plan import check_ends
from harness.planning.world import World, day_world, pinned_world, release_world
from harness.request.ends import End, EndKind, Ends, day_end
from harness.request.lockfiles import installed_pins, read_pins

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.environment import Index, Interpreter
    from harness.planning.world import WorldRequest
    from harness.scheduling.probers import Probing

_STEPS_BACK = 10  # in powers of two weeks: the last step is ten years before the bad end


@frozen
class Worlds:
    """Makes worlds of ends. `newest` is the day whose packages are used if the ends are only releases."""

    request: WorldRequest
    prober: Probing
    index: Index
    interpreter: Interpreter
    subject: str
    newest: End

    def of(self, end: End) -> World:
        """Make the world of a day, a file or a Python. Raises `UserMistake`."""
        if end.kind is EndKind.DAY:
            return day_world(end, self.request, self.prober, self.index)
        if end.path is None:
            raise UserMistake(f"{end.text} is not a day, a lock file or a Python")
        is_python = end.kind is EndKind.PYTHON
        pins = installed_pins(end.path) if is_python else read_pins(end.path, self.request.python)
        world = pinned_world(end, pins, self.request, self.prober, self.index, self.interpreter)
        ours = self.interpreter.minor
        if pins.python and not pins.python.startswith(ours):
            told = f"{end.text} has Python {pins.python}; it runs with {self.interpreter.version} (--python changes it)"
            world = evolve(world, told=(*world.told, told))
        return world

    def both(self, ends: Ends) -> tuple[World | None, World]:
        """Make the worlds of the good and the bad end; the good one is None if it was not given.

        A release is the world of the other end with the subject at that release; two releases use the newest packages.
        Raises `UserMistake` and `UnknownRelease`.
        """
        good, bad = ends.good, ends.bad
        if bad.kind is EndKind.RELEASE:
            other = self.of(good if good is not None and good.kind is not EndKind.RELEASE else self.newest)
            world = self._at(bad, other)
            return (other if good is not None and other.end is good else self._older(good, world)), world
        world = self.of(bad)
        return self._older(good, world), world

    def before(self, bad: World) -> Iterator[tuple[str, World]]:
        """Yield worlds before the bad one, further and further back, each with its name.

        They are of older releases or of earlier days. Raises `UserMistake` if the bad end has no day.
        """
        if bad.end.kind is EndKind.RELEASE:
            yield from self._releases_before(bad)
            return
        if bad.as_of is None:
            raise UserMistake("the good end is missing", hint="--good DAY, FILE or PYTHON says where it worked")
        for step in range(_STEPS_BACK):
            end = day_end(bad.as_of - timedelta(weeks=2**step))
            try:
                yield f"as of {end.text}, {2**step} weeks before", self.of(end)
            except UserMistake:
                return

    def _older(self, good: End | None, bad: World) -> World | None:
        if good is None:
            return None
        return self._at(good, bad) if good.kind is EndKind.RELEASE else self.of(good)

    def _at(self, end: End, other: World) -> World:
        check_ends(self.index, self.subject, [end.text])
        return release_world(end, other, self.subject, self.prober, self.index)

    def _releases_before(self, bad: World) -> Iterator[tuple[str, World]]:
        """Yield the worlds one, two, four ... releases back, without releases that can't be installed with the rest."""
        tags = frozenset(self.interpreter.wheel_tags())
        older = [
            str(release.version)
            for release in self.index.releases(self.subject)
            if release.version < Version(bad.end.text)
            and release.left_out_because(python=self.interpreter.version, tags=tags) is None
        ]
        positions = dict.fromkeys(min(2**step, len(older)) for step in range(len(older).bit_length() + 1) if older)
        for position in positions:
            try:
                world = self._at(End(EndKind.RELEASE, older[-position]), bad)
            except UserMistake:
                continue
            yield f"{self.subject} {older[-position]}", world
