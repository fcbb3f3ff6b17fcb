"""`harness bisect` between two worlds: days, lock files, environments; the package is what is looked for."""

from __future__ import annotations

import contextlib
import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from attrs import evolve, frozen
from packaging.requirements import Requirement

from harness.bisect.held_back import Means
from harness.bisect.upgrade import Upgrade
from harness.cli.repro_options import short
from harness.errors import NoSpace, UserMistake
from harness.events import SearchBegan
from harness.model import Repro, normalized_name
from harness.planning.plan import merged_requirements
from harness.planning.world import Asked, World, day_world, pinned_world, release_world
from harness.request.ends import End, EndKind, parse_end
from harness.request.installed import installed_pins
from harness.request.lockfiles import read_pins
from harness.run.commands import only
from harness.run.devices import choose_device
from harness.terminal.upgrade import print_upgrade

if TYPE_CHECKING:
    from harness.bisect.upgrade_answer import UpgradeAnswer
    from harness.cli.lane_options import Place
    from harness.environment import Index, Interpreter
    from harness.events import Reporter
    from harness.scheduling.probers import Probing

_TODAY = "today"


@frozen
class Ends:
    """The two ends as they were typed; `good` is None where it is to be found."""

    good: End | None
    bad: End

    @property
    def are_worlds(self) -> bool:
        """Whether one of them is more than a release."""
        return any(end is not None and end.kind is not EndKind.RELEASE for end in (self.good, self.bad))


def read_ends(good: str | None, bad: str | None, subject: str | None) -> Ends | None:
    """The ends of a question between worlds, None where it is one between releases. Raises `UserMistake`."""
    now = datetime.now(UTC)
    given = [parse_end(text, option, now=now) for text, option in ((good, "--good"), (bad, "--bad")) if text]
    if subject is not None and all(end.kind is EndKind.RELEASE for end in given):
        return None
    if subject is None and (release := next((end for end in given if end.kind is EndKind.RELEASE), None)):
        raise UserMistake(
            f"{release.text} is a release, but of which package?",
            hint="harness bisect PACKAGE --good V --bad V, or a day",
        )
    ends = dict(zip([option for option, text in (("good", good), ("bad", bad)) if text], given, strict=True))
    return Ends(ends.get("good"), ends.get("bad") or parse_end(_TODAY, "--bad", now=now))


@frozen
class Worlds:
    """Makes worlds of ends."""

    asked: Asked
    prober: Probing
    index: Index
    interpreter: Interpreter
    subject: str = ""

    def of(self, end: End) -> World:
        """The world of a day, a file or a Python. Raises `UserMistake`."""
        if end.kind is EndKind.DAY:
            return day_world(end, self.asked, self.prober)
        if end.path is None:
            raise UserMistake(f"{end.text} is no world by itself")
        is_python = end.kind is EndKind.PYTHON
        pins = installed_pins(end.path) if is_python else read_pins(end.path, self.asked.python)
        world = pinned_world(end, pins, self.asked, self.prober, self.index, self.interpreter)
        ours = self.interpreter.minor
        if pins.python and not pins.python.startswith(ours):
            told = f"{end.text} has Python {pins.python}; it runs with {self.interpreter.version} (--python changes it)"
            world = evolve(world, told=(*world.told, told))
        return world

    def both(self, ends: Ends) -> tuple[World | None, World]:
        """The worlds of both ends; a release stands for the other end with the subject at it."""
        good, bad = ends.good, ends.bad
        if bad.kind is EndKind.RELEASE and good is not None:
            other = self.of(good)
            return other, release_world(bad, other, self.subject, self.prober)
        world = self.of(bad)
        if good is not None and good.kind is EndKind.RELEASE:
            return release_world(good, world, self.subject, self.prober), world
        return (self.of(good) if good is not None else None), world


@frozen
class UpgradeOptions:
    """What the command line says of a question between worlds."""

    ends: Ends
    repro: Repro
    told: tuple[str, ...] = ()
    subject: str = ""
    with_: tuple[str, ...] = ()
    hold: tuple[str, ...] = ()
    device: str = "auto"
    from_source: tuple[str, ...] = ()
    constraints: Path | None = None
    as_json: bool = False


def bisect_worlds(options: UpgradeOptions, place: Place, reporter: Reporter) -> UpgradeAnswer:
    """Answer a question between worlds. Raises `UserMistake`, `Interrupted`, `NoNetwork`, `NoSpace`."""
    workshop = place.workshop
    device, why = choose_device(options.device, options.repro.device, place.gpus)
    requirements = merged_requirements(options.repro.dependencies, options.with_)
    if options.subject and options.subject not in {normalized_name(Requirement(text).name) for text in requirements}:
        requirements = (*requirements, options.subject)
    if not requirements and options.ends.bad.kind is EndKind.DAY:
        raise UserMistake(
            "nothing is asked for, so that nothing can change",
            hint="--with REQ or --with '-r FILE' names what the command needs, --project its project",
        )
    asked = Asked(options.repro, workshop.interpreter.version, requirements, options.hold, device, options.from_source)
    worlds = Worlds(asked, place.prober, workshop.index, workshop.interpreter, options.subject)
    good, bad = options.ends.good, options.ends.bad
    headline = f"looking for what broke {options.repro.name}: {good.text if good else 'weeks before'} to {bad.text}"
    reporter.report(SearchBegan(headline, (*options.told, f"{why} (--device changes it)")))
    good_world, bad_world = worlds.both(options.ends)
    with contextlib.closing(place.open_lanes(device)) as pool:
        means = Means(place.prober, pool, workshop.index, workshop.interpreter, reporter)
        return Upgrade(means, options.repro, bad_world, good_world, worlds.of, only_tests, options.subject).run()


def tell_upgrade(answer: UpgradeAnswer, options: UpgradeOptions, results: Path) -> None:
    """Print the answer and write its constraints. Raises `NoSpace`."""
    written = _write_constraints(answer, options.constraints, results)
    if options.as_json:
        click.echo(json.dumps(answer.as_json(), indent=1))
        return
    print_upgrade(answer, str(short(results)))
    if written is not None:
        click.echo(f"  constraints: {short(written)}")


def only_tests(repro: Repro, tests: tuple[str, ...]) -> Repro:
    """The repro with its command restricted to some tests; as it is where that names none."""
    if not tests:
        return repro
    argv = only(repro.argv, tests)
    digest = hashlib.sha256("\0".join([repro.digest, *argv]).encode()).hexdigest()[:16]
    return evolve(repro, argv=argv, digest=digest)


def _write_constraints(answer: UpgradeAnswer, asked: Path | None, results: Path) -> Path | None:
    """The constraints as a file for pip and uv. Raises `NoSpace` where it can't be written."""
    if not answer.constraints or not answer.constraints_verified:
        return None
    culprits = "-".join(dict.fromkeys(culprit.package for culprit in answer.culprits[:3]))
    path = asked or results / f"constraints-{culprits}.txt"
    text = f"# {answer.sentence}\n" + "".join(f"{constraint}\n" for constraint in answer.constraints)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise NoSpace(f"can't write {path}: {error.strerror}") from error
    return path
