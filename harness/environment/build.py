"""Builds an environment from a lock: completely or not at all, and again if it changed since it was built.

It is built under a temporary name, then renamed to its location. Wheels come from the harness's wheel store; uv
installs what the store lacks, as copies, which the store then keeps.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from datetime import datetime, timedelta
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen

from harness.atomic import is_out_of_space
from harness.environment.bytecode import BytecodeStore, BytecodeTree, Sources
from harness.environment.disk_space import DiskEstimate, DiskSpace
from harness.environment.ledger import EnvironmentRecord, Manifest, RecentlyCompared
from harness.environment.source_builds import CANT_BUILD, NotBuilt, SourceBuilds
from harness.environment.uv import Uv, spoken_by_uv
from harness.environment.wheel_store import WheelStore
from harness.environment.workspace import MARK, Hold, Location, acquire, site_packages
from harness.errors import NoSpace
from harness.events import Note

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Container, Iterable, Iterator
    from pathlib import Path

    from harness.environment.bytecode import BytecodeStore
    from harness.environment.interpreter import Interpreter
    from harness.environment.ledger import FileState
    from harness.environment.wheel_store import WheelStore
    from harness.environment.workspace import Workspace
    from harness.model import Lock, Pin


_WORTH_TELLING = 100 * 2**20
_KEPT_ON_A_FULL_DISK = 3  # the one being built, and the two sides of a change
_KEPT_AT_MOST = 200  # each takes a file descriptor


@frozen
class Environment:
    """A Python interpreter and what is installed for it; `folder` is None if the harness did not build it."""

    python: Path
    lock: Lock
    folder: Path | None = None


@frozen
class Builder:
    """Builds environments for one interpreter and keeps them by the id of their lock.

    With `at`, a folder that the user named, each environment replaces the one before in that folder. `disk_space` keeps
    the disk from filling up; `size_of` returns the bytes of a wheel, None if unknown. `compared` knows which
    environments matched their manifests a moment ago.
    """

    uv: Uv
    interpreter: Interpreter
    workspace: Workspace
    bytecode: BytecodeStore = field()
    at: Path | None = None
    disk_space: DiskSpace = field()
    size_of: Callable[[Pin], int | None] = attrgetter("size")
    compared: RecentlyCompared = field(factory=RecentlyCompared, eq=False, repr=False)
    _kept: dict[str, Hold] = field(factory=dict, init=False, repr=False, eq=False)
    _keeping: threading.Lock = field(factory=threading.Lock, init=False, repr=False, eq=False)

    @bytecode.default
    def _default_bytecode(self) -> BytecodeStore:
        return BytecodeStore.of(self.workspace, self.interpreter.cache_tag)

    @disk_space.default
    def _default_disk_space(self) -> DiskSpace:
        return DiskSpace(self.workspace)

    @cached_property
    def builds(self) -> SourceBuilds:
        """The wheels that were built from source distributions."""
        return SourceBuilds(self.uv, self.interpreter, self.workspace, self.disk_space.reporter)

    @property
    def wheels(self) -> WheelStore:
        """The installed wheels that environments of this interpreter share."""
        return WheelStore.of(self.workspace, self.interpreter)

    def estimate(self, lock: Lock) -> DiskEstimate | None:
        """The disk space that the environment of a lock needs, None if it exists."""
        if (self.workspace.environments / lock.id).is_dir():
            return None
        return self._estimate(lock)

    def location(self, lock: Lock) -> Location:
        """Where the environment of a lock belongs. Raises `UserMistake` if the user's folder can't be used."""
        return Location.given(self.at) if self.at is not None else Location.under_lock(self.workspace, lock)

    def record(self, location: Location) -> EnvironmentRecord:
        """The record of the environment at a location."""
        return EnvironmentRecord(self.workspace, location.name)

    def sources(self, lock: Lock, folder: Path, at: Path | None = None) -> Sources:
        """Where the sources of an environment are; `at` is where it is now, if it was not moved to `folder` yet."""
        return Sources(lock, site_packages(folder, at), site_packages(at or folder), self.interpreter.stdlib)

    def build(
        self, lock: Lock, *, look: bool = True, cancel: threading.Event | None = None
    ) -> Environment | Uninstallable:
        """The environment of a lock, built now if it does not exist or was changed.

        With `look=False` it is not compared with its manifest; the caller does that later. No other harness removes it
        before this process ends. Raises `NoSpace`, `NoNetwork`, and `UserMistake` if the user's folder holds something
        else.
        """
        location = self.location(lock)
        record = self.record(location)
        self._keep(record)
        with acquire(record.in_use, shared=True, cancel=cancel):
            is_ready = record.is_built(location, lock.id)
            if is_ready and look:
                is_ready = self.sound(location, lock) is not None
        if not is_ready:
            with acquire(record.in_use, cancel=cancel):
                failure = self.renew(lock, location, cancel)
            if failure is not None:
                return failure
            if look:
                with acquire(record.in_use, shared=True, cancel=cancel):
                    self.sound(location, lock)
        with contextlib.suppress(FileNotFoundError):
            os.utime(location.folder)  # when it was last used: `harness clean` frees the oldest first
        return Environment(location.python, lock, location.folder)

    def sound(self, location: Location, lock: Lock) -> Manifest | None:
        """The manifest if every file of the environment matches it now, else None."""
        manifest = self.record(location).sound(location, lock.id, self.wheels.ledger, self.wheels.drop)
        if manifest is not None:
            self.compared.note(location.name, manifest)
        return manifest

    def was_just_compared(self, lock: Lock) -> bool:
        """Whether the environment of a lock matched its manifest a moment ago."""
        return self.compared.manifest(self.location(lock).name, lock.id) is not None

    def renew(self, lock: Lock, location: Location, cancel: threading.Event | None) -> Uninstallable | None:
        """Build an environment at its location unless it is sound. Call it with the exclusive lock held."""
        record = self.record(location)
        if record.sound(location, lock.id, self.wheels.ledger, self.wheels.drop) is not None:
            return None
        with location.partial() as partial:
            built = self.build_at(partial, lock, cancel=cancel)
            if isinstance(built, Uninstallable):
                return built
            with self._disk():
                if location.is_users:
                    record.forget()
                elif location.folder.exists():
                    record.discard(location.folder)
                built.write(record.manifest_path)
                location.put(partial)
                BytecodeTree.prepare(self.bytecode, self.sources(lock, location.folder), record)
        return None

    def forget(self, lock: Lock) -> None:
        """Make the next user of an environment rebuild it."""
        self.record(self.location(lock)).manifest_path.unlink(missing_ok=True)

    def build_at(
        self, folder: Path, lock: Lock, *, apart: bool = False, cancel: threading.Event | None = None
    ) -> Manifest | Uninstallable:
        """Build an environment in an empty folder and record its files; with `apart` it shares no file with others."""
        estimate = self._estimate(lock)
        self._reserve(estimate)
        if estimate.download >= _WORTH_TELLING or estimate.unsized:
            self.disk_space.reporter.report(Note(str(estimate)))
        with self._disk():
            installer = Installer(self.uv, self.interpreter, self.wheels, self.bytecode, self.builds)
            return installer.install(lock, folder, apart=apart, cancel=cancel)

    def _reserve(self, estimate: DiskEstimate) -> None:
        try:
            self.disk_space.reserve(estimate, self.uv.cache_folder)
        except NoSpace:
            self.let_go(but=_KEPT_ON_A_FULL_DISK)
            self.disk_space.make_room(estimate)
            self.disk_space.reserve(estimate, self.uv.cache_folder)

    def _keep(self, record: EnvironmentRecord) -> None:
        """Keep an environment from being removed while this process lives; the most recently used come last."""
        with self._keeping:
            hold = self._kept.pop(record.name, None)
            self._kept[record.name] = hold if hold is not None else acquire(record.kept, shared=True)
        self.let_go(but=_KEPT_AT_MOST)

    def let_go(self, but: int = 0) -> None:
        """Let others remove the environments that this process keeps, except the `but` most recently used."""
        with self._keeping:
            while len(self._kept) > but:
                self._kept.pop(next(iter(self._kept))).release()

    @contextlib.contextmanager
    def _disk(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if is_out_of_space(error):
                raise NoSpace(
                    "no space left for a new environment", hint="harness clean frees old environments"
                ) from error
            raise

    def _estimate(self, lock: Lock) -> DiskEstimate:
        missing = (pin for pin in lock.pins if not self.wheels.has(pin))
        return DiskEstimate.of(missing, self.size_of, self.uv.wheels_folder)


# uv's message if it chose a file that is not in the lock, because it was added to the release later.
_OTHER_FILE = "Hash mismatch"


@frozen
class Uninstallable:
    """Why a lock could not be installed, in the installer's words."""

    words: str


@frozen
class Installer:
    """Installs locks for one interpreter; `builds` has the wheels of source distributions."""

    uv: Uv
    interpreter: Interpreter
    wheels: WheelStore
    bytecode: BytecodeStore
    builds: SourceBuilds

    def install(
        self, lock: Lock, folder: Path, *, apart: bool = False, cancel: threading.Event | None = None
    ) -> Manifest | Uninstallable:
        """Install a lock into an empty folder and record its files.

        With `apart` it shares no file with other environments. Raises `OSError`, `NoNetwork` and `Cancelled`.
        """
        answer = self.uv.call("--quiet", *self._venv(folder), cwd=folder, cancel=cancel)
        if answer.returncode != 0:
            return Uninstallable(spoken_by_uv(answer.words))
        wheels = self.wheels.install(lock.pins, folder, apart=apart, cancel=cancel)
        words: str | None = "cancelled"
        try:
            with self.wheels.claimed(() if apart else self._missing(lock, wheels), cancel):
                # Another build may have stored some of them while this one waited.
                wheels |= self.wheels.install(self._missing(lock, wheels), folder, apart=apart, cancel=cancel)
                missing = self._missing(lock, wheels)
                words = self._install_with_uv(evolve(lock, pins=missing), folder, cancel)
                if words is None and not apart:
                    wheels |= self._take_in(lock, missing, folder, cancel)
        finally:
            if words is not None:
                self.wheels.unlink(folder, wheels)
        if words is not None:
            return Uninstallable(words)
        (folder / MARK).write_text(json.dumps({"lock": lock.id, "python": lock.python}), encoding="utf-8")
        return Manifest.of(folder, lock.id, self.wheels.kind, wheels, self.wheels.ledger)

    def _missing(self, lock: Lock, wheels: Container[str]) -> tuple[Pin, ...]:
        return tuple(pin for pin in lock.pins if self.wheels.key(pin) not in wheels)

    def _take_in(
        self, lock: Lock, missing: Iterable[Pin], folder: Path, cancel: threading.Event | None
    ) -> dict[str, dict[str, FileState]]:
        """Store what uv installed.

        Wheels that do not match their RECORD were changed in uv's cache and are fetched again.
        """
        kept, damaged = self.wheels.take_in(missing, folder, site_packages(folder))
        if damaged and (
            self._install_with_uv(evolve(lock, pins=damaged), folder, cancel, "--no-cache", "--reinstall") is None
        ):
            kept |= self.wheels.take_in(damaged, folder, site_packages(folder))[0]
        self.bytecode.forget(kept)
        return kept

    def _install_with_uv(self, lock: Lock, folder: Path, cancel: threading.Event | None, *options: str) -> str | None:
        """Install pins as copies from uv's cache; returns uv's error message if that fails."""
        if not lock.pins:
            return None
        wheels = self.builds.installable(lock.pins, cancel)
        if isinstance(wheels, NotBuilt):
            return f"{wheels.release} {CANT_BUILD}: {wheels.words}"
        lock, options = evolve(lock, pins=wheels.pins), (*options, *self.builds.options(wheels.folders))
        requirements = folder / "requirements.txt"
        requirements.write_text(lock.as_requirements(), encoding="utf-8")
        try:
            install = [*self._install_into(folder, lock, requirements), *options]
            answer = self.uv.call("--quiet", *install, cwd=folder, cancel=cancel)
            if answer.returncode != 0 and _OTHER_FILE in answer.words:
                answer = self.uv.call("--quiet", *install, *_not_newer(lock), cwd=folder, cancel=cancel)
        finally:
            for left in (requirements, folder / ".lock"):
                left.unlink(missing_ok=True)
        return spoken_by_uv(answer.words) if answer.returncode != 0 else None

    def _venv(self, folder: Path) -> list[str | Path]:
        options = ["--relocatable", "--allow-existing", "--no-project"]
        return ["venv", *options, "--python", self.interpreter.path, folder]

    def _install_into(self, folder: Path, lock: Lock, requirements: Path) -> list[str | Path]:
        options = ["--no-deps", "--link-mode", "copy"]
        options += ["--only-binary", ":all:"]
        if all(pin.sha256 for pin in lock.pins):
            options.append("--require-hashes")
        return ["pip", "install", *options, "--python", folder / "bin" / "python", "--requirements", requirements]


def _not_newer(lock: Lock) -> Iterator[str]:
    """Options that exclude files which were added to a locked release later than everything in the lock."""
    for pin in lock.pins:
        if pin.uploaded:
            yield from ("--exclude-newer-package", f"{pin.name}={_a_second_after(pin.uploaded)}")


def _a_second_after(moment: str) -> str:
    return (datetime.fromisoformat(moment) + timedelta(seconds=1)).isoformat()
