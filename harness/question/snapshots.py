"""Makes snapshots: the packages of an end, from a day, a file, a Python, an image or a release."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from attrs import evolve, frozen
from packaging.requirements import Requirement

from harness.environment.attempt import is_source, lacks_wheels, may_be_built, projects_without_wheels
from harness.environment.dates import ERA_MARGIN, era_of
from harness.environment.images import installed_in_image
from harness.environment.interpreter import installed_in
from harness.environment.source_builds import CANT_BUILD, NotBuilt
from harness.errors import UserMistake
from harness.model import Combination, Lock, Release, name_of, normalized_name, parsed_version
from harness.model.lock import ANY_SOURCE, NO_SOURCE
from harness.model.requirements import exact_version, unpinned
from harness.model.text import listed, one_line
from harness.probing import Probe
from harness.question.conda import PIXI, SUFFIXES
from harness.question.ends import End, EndKind, Ends, day_end, end_words
from harness.question.lockfiles import LOCAL_PROJECT, Pins, installed_pins, read_pins, with_conda
from harness.question.lower_bounds import Lifting, existed, lift_bounds, newer_bounds
from harness.question.package_set import Snapshot, Way, prereleases_of
from harness.question.question import Question
from harness.question.releases import check_ends, newest_with_wheels, pythons_for
from harness.question.revisions import LockHistory, TrackedFile

if TYPE_CHECKING:
    from harness.environment import Index, Interpreter
    from harness.environment.resolve import Resolution
    from harness.probing.probe import Probing


_UNPIN = "--unpin takes newer releases, "
_SHOWN = 6  # packages that are named
_LISTS = (".txt", ".in", *SUFFIXES)


class NoSolution(UserMistake):
    """The packages of a day can't be installed; `way_on` is the day, and a Python of this machine with wheels of them.

    `is_for_wheels` says that wheels are missing, so that requirements are not the reason.
    """

    def __init__(
        self, message: str, *, hint: str = "", way_on: tuple[str, str] | None = None, is_for_wheels: bool = False
    ) -> None:
        super().__init__(message, hint=hint)
        self.way_on = way_on
        self.is_for_wheels = is_for_wheels


@frozen
class Snapshots:
    """Makes snapshots of ends. `newest` is the day whose packages are used if the ends are only releases."""

    question: Question
    prober: Probing
    index: Index
    interpreter: Interpreter
    newest: End

    @property
    def requirements(self) -> tuple[str, ...]:
        """What every end has."""
        return self.question.combination.requirements

    @property
    def _any_source(self) -> tuple[str, ...]:
        """What may be built for an end that names it by itself: everything without a wheel."""
        from_source = self.question.combination.from_source
        return from_source if NO_SOURCE in from_source else (ANY_SOURCE,)

    def _required(self, requirements: Iterable[str], as_of: datetime | None = None) -> Combination:
        """Return the combination of these requirements at a time."""
        return evolve(self.question.combination, requirements=tuple(requirements), as_of=as_of)

    def of(self, end: End) -> Snapshot:
        """Make the snapshot of a day, a file, a lock, a Python or an image. Raises `UserMistake`."""
        if end.lock is not None:
            return Snapshot(
                end=end,
                repro=self.question.repro,
                combination=self._required(self.requirements, end.moment),
                lock=end.lock,
                way=Way.NEAR,
            )
        if end.kind is EndKind.DAY:
            return self._of_day(end)
        pins = self.pins_of(end)
        snapshot = evolve(self._without_bounds(self._pinned(end, pins)), apart=pins.apart)
        installed = set(map(name_of, pins.requirements))
        if end.kind is EndKind.PYTHON and installed.issuperset(map(name_of, self.requirements)):
            snapshot = evolve(snapshot, inside=end.path)
        ours = self.interpreter.minor
        if pins.python and not pins.python.startswith(ours):
            note = f"{end.text} has Python {pins.python}; it runs with {self.interpreter.version} (--python changes it)"
            snapshot = evolve(snapshot, notes=(*snapshot.notes, note))
        return snapshot

    def pins_of(self, end: End) -> Pins:
        """Return what an environment or image has, or what a file lists, now or in its commit. Raises `UserMistake`."""
        if end.kind is EndKind.IMAGE:
            return installed_pins(installed_in_image(end.text), end.text)
        if end.path is None:
            raise UserMistake(f"{end.text} is not a day, a lock file or a Python")
        if end.kind is EndKind.PYTHON:
            return installed_pins(installed_in(end.path), f"the environment of {end.path}")
        if end.commit is None:
            return with_conda(read_pins(end.path, self.interpreter.version), self.index, end.text)
        pins = TrackedFile.at(end.path).pins_in(end.commit, self.interpreter.version)
        is_hash = end.text.endswith(end.commit.short)
        which = f"is of {end.day}" if is_hash else f"is of commit {end.commit.short}, {end.day}"
        return with_conda(evolve(pins, notes=(f"{end.text} {which}", *pins.notes)), self.index, end.text)

    def both(self, ends: Ends) -> tuple[Snapshot | None, Snapshot]:
        """Make the snapshots of the good and the bad end; the good one is None if it was not given.

        The snapshot of a release is that of the other end with the subject at that release; two releases use the newest
        packages. Raises `UserMistake` and `UnknownRelease`.
        """
        good, bad = ends.good, ends.bad
        other = good if good is not None and good.kind is not EndKind.RELEASE else self.newest
        snapshot = self.at_release(bad, self.of(other)) if bad.kind is EndKind.RELEASE else self.of(bad)
        if good is None:
            return None, snapshot
        return (self.at_release(good, snapshot) if good.kind is EndKind.RELEASE else self.of(good)), snapshot

    def left_to_files(self) -> Snapshots:
        """Return what makes the snapshots of two files: what one of them lists, the project does not require besides.

        So the files alone say how their packages differ, and what was typed. Raises `UserMistake` if a file can't be
        read.
        """
        question = self.question
        own = {text for text in question.repro.dependencies if shlex.quote(text) not in question.typed}  # not --with
        ends = [end for end in (question.good, question.bad) if end is not None and end.kind is EndKind.LOCK]
        files = [end for end in ends if end.path is not None]
        if len(files) < 2:
            return self
        names = {name_of(text) for end in files for text in self.pins_of(end).requirements}
        left = tuple(text for text in self.requirements if text not in own or name_of(text) not in names)
        return evolve(self, question=evolve(question, combination=evolve(question.combination, requirements=left)))

    def history(self) -> LockHistory | None:
        """Return what the project's repository says about the packages of earlier days, None if it says nothing."""
        names, root = set(map(name_of, self.requirements)), self.question.root
        return LockHistory.of(root, names, self.interpreter.version) if root is not None else None

    def building_only(self, names: Collection[str]) -> Snapshots:
        """Snapshots for days that the user did not name: only what another end had to build is worth a build."""
        combination = self.question.combination
        combination = evolve(combination, from_source=(*combination.from_source, *names, NO_SOURCE))
        return evolve(self, question=evolve(self.question, combination=combination))

    def required(self) -> tuple[Snapshots, Snapshot] | None:
        """Make the snapshot of the exact versions that a repro requires, on the day of the newest of them.

        Also returns what makes the snapshots before it, in which these versions are free. None without exact versions.
        Raises `UserMistake` if they can't be installed together.
        """
        requirements, repro = self.requirements, self.question.repro
        loose = tuple(map(unpinned, requirements))
        if repro.argv or loose == requirements:
            return None
        exact = [text for text, free in zip(requirements, loose, strict=True) if text != free]
        moment = era_of(exact, self.index)
        if moment is None:
            return None
        resolution = self._resolved(self._required(requirements, moment))
        lock = resolution.lock
        if lock is None:
            raise UserMistake(
                f"the repro's own versions can't be installed ({', '.join(exact)}): {_in_one_line(resolution)}",
                hint="take a version out of its dependencies, or name the ends with --good and --bad",
            )
        free = evolve(self, question=evolve(self.question, combination=self._required(loose)))
        note = f"bad end: what the repro requires: {', '.join(exact)} (--bad changes it)"
        end = day_end(moment)
        combination = self._required(loose, moment)
        return free, Snapshot(end=end, repro=repro, combination=combination, lock=lock, way=Way.NEAR, notes=(note,))

    def _resolved(self, combination: Combination, near: Lock | None = None) -> Resolution:
        return self.prober.resolve(Probe(self.question.repro, combination, near))

    def _of_day(self, end: End) -> Snapshot:
        """Resolve the packages of a day; what had no wheel then is built.

        On an earlier day than today, bounds of the project that can't be met are lifted. Raises `UserMistake`.
        """
        required, repro = self.requirements, self.question.repro
        combination = evolve(self._required(required, end.moment), from_source=self._any_source)
        resolution = self._resolved(combination)
        lifting = Lifting(required)
        if resolution.lock is None and not end.is_today:

            def has_solution(requirements: tuple[str, ...]) -> bool:
                return self._resolved(evolve(combination, requirements=requirements)).lock is not None

            lifting = lift_bounds(required, repro.dependencies, end, self.index, has_solution)
            resolution = self._resolved(evolve(combination, requirements=lifting.requirements))
        lock = resolution.lock
        if lock is None:
            self._refuse_early_day(end)
            lacks = lacks_wheels(resolution.words)
            names = sorted(projects_without_wheels(resolution.words)) if lacks else []
            hint, python = self._hint_for_day(resolution.words, combination) if lacks else ("", "")
            build = " ".join(f"--build {name}" for name in names if not python)
            hint = " or ".join(filter(None, (hint, build and f"{build}, which builds from source")))
            hint = hint or self._hint_on_bounds(resolution.words, lifting.requirements)
            why = f"no wheel of {listed(names)} for Python {self.interpreter.minor}" if names else ""
            what = f"nothing can be installed as of {end.text}: {why or _in_one_line(resolution)}"
            raise NoSolution(what, hint=hint, way_on=(end.text, python) if python else None, is_for_wheels=lacks)
        changed = tuple(f"{end.text}: {text}" for text in resolution.drift if CANT_BUILD in text)
        return Snapshot(
            end=end,
            repro=repro,
            combination=self._required(lifting.requirements, end.moment),
            lock=lock,
            way=Way.DAY,
            notes=(*lifting.notes, *_built_words(end, lock), *changed),
            changed=changed,
            lifted=lifting.lifted,
        )

    def _refuse_early_day(self, end: End) -> None:
        """Raise `UserMistake` if a required project did not exist yet."""
        for name in map(name_of, self.requirements):
            dates = [release.uploaded for release in self.index.releases(name) if release.uploaded is not None]
            if dates and not existed(name, end.moment, self.index):
                raise UserMistake(
                    f"{name} did not exist on {end.text}: its first release was on {min(dates):%Y-%m-%d}",
                    hint="choose a later day",
                )

    def _pinned(self, end: End, pins: Pins) -> Snapshot:
        """Make the snapshot of the packages that a file or an environment lists; what has no wheel is built.

        A pin that is not available is left out, and reported. Without exact versions, it is what the resolver chooses
        today, or on the day of the file's commit. Raises `UserMistake` if it can't be installed.
        """
        repro = self.question.repro
        named = {name_of(text) for text in pins.requirements}
        missing = [text for text in self.requirements if name_of(text) not in named]
        if not pins.is_exact:
            combination = self._required((*pins.requirements, *missing), end.moment)
            resolution = self._resolved(combination)
            if (chosen := resolution.lock) is None:
                raise UserMistake(f"{end.text} can't be installed: {_in_one_line(resolution)}")
            return Snapshot(end=end, repro=repro, combination=combination, lock=chosen, way=Way.NEAR, notes=pins.notes)
        # A project under test runs from its folder.
        changed = tuple(text for text in pins.notes if not (repro.project and LOCAL_PROJECT in text))
        exact = evolve(self._required(pins.requirements), only_named=True, holds=(), from_source=self._any_source)
        resolution = self._resolved(exact)
        if resolution.lock is None:
            requirements, replaced = self._available(exact)
            changed += replaced
            resolution = self._resolved(evolve(exact, requirements=requirements))
        lock = resolution.lock
        if lock is None:
            raise UserMistake(f"{end.text} can't be installed again: {_in_one_line(resolution)}")
        notes = (*dict.fromkeys((*pins.notes, *changed)), *_built_words(end, lock))
        # People also write lists of only what they import, and conda's packages need other ones than PyPI's.
        is_list = end.path is not None and (end.path.suffix in _LISTS or end.path.name == PIXI)
        if missing or is_list:
            lock, added = self._with_missing(end, lock, missing, pins.requirements if is_list else ())
            notes += added
        combination = self._required(pin.name for pin in lock.pins)
        return Snapshot(
            end=end, repro=repro, combination=combination, lock=lock, way=Way.NEAR, notes=notes, changed=changed
        )

    def _without_bounds(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot of a file or an environment with what the project requires now and that has older."""
        lifting = newer_bounds(self.requirements, self.question.repro.dependencies, snapshot.end, snapshot.lock)
        return evolve(snapshot, lifted=lifting.lifted, notes=(*snapshot.notes, *lifting.notes))

    def at_release(self, end: End, other: Snapshot) -> Snapshot:
        """Put the subject of another end's snapshot at a release. Raises `UserMistake` and `UnknownRelease`."""
        subject = self.question.subject
        check_ends(self.index, subject, [end.text])
        resolution = self.prober.resolve(other.at(self.prober, {subject: end.text}))
        if resolution.lock is None:
            hint = "name another release, or let other packages be older with --as-of DAY"
            if lacks_wheels(resolution.words):
                both = (self.index.release(subject, end.text), *self.index.releases(subject)[-1:])
                hint = self._python_hint(both)[0] or hint
            what = f"{subject} {end.text} can't be installed {end_words(other.end)}"
            raise UserMistake(f"{what}: {_in_one_line(resolution)}", hint=hint)
        return evolve(other, end=end, lock=resolution.lock, way=Way.NEAR, notes=())

    def _with_missing(
        self, end: End, lock: Lock, missing: Sequence[str], own: Sequence[str]
    ) -> tuple[Lock, tuple[str, ...]]:
        """Return the lock with `missing` requirements and with what its `own` require, and sentences about them.

        What is added is as new as its newest package, or of the day of its commit. No version of the lock is changed.
        Raises `UserMistake`.
        """
        uploads = [datetime.fromisoformat(pin.uploaded) for pin in lock.pins if pin.uploaded]
        newest = max(uploads) + ERA_MARGIN if uploads and len(uploads) == len(lock.pins) else None
        day = end.moment or newest
        wholes = [((*missing, *own), day)] if own else []  # which may contradict each other
        resolution = None
        for wanted, as_of in dict.fromkeys((*wholes, (tuple(missing), day), (tuple(missing), None))):
            if not wanted:
                return lock, ()
            pinned: list[str] = []
            while True:
                buildable = evolve(
                    self._required((*wanted, *pinned), as_of),
                    near=lock.id,
                    from_source=self._any_source,
                    prereleases=prereleases_of(lock),
                )
                answer = self._resolved(buildable, lock)
                resolution = resolution or answer
                if answer.lock is None:
                    break
                moved = [change for change in lock.diff(answer.lock) if change.before and change.after]
                if not moved:
                    locked = {pin.name for pin in lock.pins}
                    added = [pin for pin in answer.lock.pins if pin.name not in locked]
                    named = listed(map(name_of, missing) if missing else [pin.name for pin in added], _SHOWN)
                    when = f", as of {as_of:%Y-%m-%d}" if as_of is not None else ""
                    notes = (f"{end.text} has no {named}: installed as well{when}",) if added else ()
                    return evolve(lock, pins=(*lock.pins, *added)), notes
                pinned += [f"{change.name}=={change.before}" for change in moved]
        words = _in_one_line(resolution) if resolution is not None else ""
        raise UserMistake(
            f"{', '.join(missing)} can't be installed beside the packages of {end.text}: {words}",
            hint=f"add what the command needs to {end.text}, or change a requirement with --with",
        )

    def _available(self, exact: Combination) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the pins that have a wheel or can be built, and sentences about the others, which are left out.

        Raises `UserMistake` if one of those is required.
        """
        required = set(map(name_of, self.requirements)) | {self.question.subject}
        available: list[str] = []
        notes: list[str] = []
        for text in exact.requirements:
            name, version = exact_version(text) or (name_of(text), "")
            release = self.index.known_release(name, version)
            why = "is not on the index" if release is None else self._why_unavailable(release, name, exact)
            if not why:
                available.append(f"{name}=={release.version}" if release is not None and "+" in version else text)
                if "+" in version:
                    notes.append(f"{name} {version} is not on the index: replaced by {version.partition('+')[0]}")
                continue
            if name in required:
                hint = self._python_hint([release], _UNPIN)[0] or "change the pin, or name another end"
                raise UserMistake(f"{name} {version} {why}", hint=hint)
            notes.append(f"{name} {version} {why}: left out")
        return tuple(available), tuple(notes)

    def _why_unavailable(self, release: Release, name: str, exact: Combination) -> str:
        """Say why a release can't be installed here; "" if it has a wheel or can be built."""
        why = f"has no wheel for Python {self.interpreter.minor}"
        if release.has_wheel_for(self.interpreter.target):
            return ""
        if not release.has_sdist:
            return why
        if not may_be_built(name, exact):
            return f"{why}, and --no-build forbids building it"
        built = self.prober.builder.builds.release(name, str(release.version))
        return f"{why} and {CANT_BUILD}: {built.words}" if isinstance(built, NotBuilt) else ""

    def limits_of(self, snapshot: Snapshot) -> tuple[str, ...]:
        """Return the requirements that exclude the newest release of a snapshot's day; none if it has no day.

        Raises `NoNetwork`.
        """
        limits: dict[str, None] = {}
        for text in self.requirements:
            requirement = Requirement(text)
            installed = parsed_version(snapshot.lock.version_of(normalized_name(requirement.name)) or "")
            if installed is None or not requirement.specifier or snapshot.as_of is None:
                continue
            fitting = (
                release.version
                for release in self.index.known_releases(requirement.name)
                if release.uploaded is not None and release.uploaded <= snapshot.as_of
                if release.left_out_because(self.interpreter.target) is None
            )
            newest = max(fitting, default=installed)
            if newest > installed and newest not in requirement.specifier:
                limits[text] = None
        return tuple(limits)

    # -- what would have a solution

    def _hint_on_bounds(self, words: str, requirements: Sequence[str]) -> str:
        """Say which options lift the bounds in a resolver's message."""
        named = set(re.findall(r"[a-z0-9][\w.-]*", words.lower()))
        bounds = [text for text in requirements if Requirement(text).specifier and name_of(text) in named]
        typed = set(map(name_of, set(self.requirements).difference(self.question.repro.dependencies)))
        ways = [f"--with {name_of(text)} lifts {text}" for text in bounds if name_of(text) not in typed]
        ways += [f"leave out --with '{text}'" for text in bounds if name_of(text) in typed]
        return " or ".join(ways) or "choose a later day, or change a requirement with --with"

    def _hint_for_day(self, words: str, combination: Combination) -> tuple[str, str]:
        """Say which Python has wheels for the projects in a resolver's message; see `_python_hint`.

        A project that is pinned needs a wheel of that release, another one of its newest release of the day. Raises
        `NoNetwork`.
        """
        pinned = dict(filter(None, map(exact_version, combination.requirements)))
        projects, index = sorted(projects_without_wheels(words)), self.index
        exact = [
            release for name in projects if name in pinned and (release := index.known_release(name, pinned[name]))
        ]
        moment = combination.as_of or datetime.now(UTC)
        if exact:
            return self._python_hint(exact, _UNPIN)
        return self._python_hint([newest_with_wheels(name, moment, index) for name in projects])

    def _python_hint(self, releases: Sequence[Release | None], also: str = "") -> tuple[str, str]:
        """Say which Python has wheels of all these releases, after `also`; and return it if this machine has it.

        Both are "" if there is none, or this Python has them, too: then wheels are not why there is no solution.
        """
        fitting = pythons_for(releases)
        if not fitting or self.interpreter.minor in fitting:
            return "", ""
        installed = self._on_this_machine(fitting)
        names = listed(f"{release.project} {release.version}" for release in releases if release is not None)
        where = "" if installed else ", and is not on this machine"
        hint = f"{also}--python {(installed or fitting)[-1]} has wheels of {names}{where}"
        return hint, installed[-1] if installed else ""

    def _on_this_machine(self, pythons: Sequence[str]) -> list[str]:
        """Return those of some Pythons that this machine has."""
        installed = []
        for python in pythons:
            with contextlib.suppress(UserMistake):
                self.prober.builder.uv.find_python(python)
                installed.append(python)
        return installed


def _in_one_line(resolution: Resolution) -> str:
    """Return what the resolver says, in one line, without its advice on options of its own."""
    return one_line(resolution.words.partition(" Consider using `exclude-newer")[0], 400).rstrip(".")


def _built_words(end: End, lock: Lock) -> tuple[str, ...]:
    built = [f"{pin.name} {pin.version}" for pin in lock.pins if is_source(pin.wheel)]
    why = f"built from source, because there is no wheel for Python {lock.minor}"
    return (f"{end.text}: {why}: {', '.join(built)}",) if built else ()
