"""Builds an environment from a lock: completely or not at all, and again if it changed since it was built.

It is built under a temporary name, then renamed to its location. Wheels come from the harness's wheel store. What the
store lacks, uv downloads and installs into a bare environment, from where the files are moved to the store.
"""

from __future__ import annotations

import contextlib
import os
import threading
from datetime import datetime, timedelta
from functools import cached_property, partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import Factory, evolve, field, frozen

from harness.atomic import is_out_of_space
from harness.environment.attempt import is_source
from harness.environment.bytecode import BytecodeStore, Sources
from harness.environment.disk_space import DiskEstimate, DiskSpace, cached_by_uv
from harness.environment.manifest import Manifest, RecentlyCompared
from harness.environment.source_builds import CANT_BUILD, BuiltWheel, NotBuilt, SourceBuilds
from harness.environment.uv import Uv, spoken_by_uv
from harness.environment.wheel_store import Tree, WheelStore
from harness.environment.without_gpu import BACKEND, CpuBuilds, left_out, replaced_by, stand_in, uncalled
from harness.environment.workspace import (
    Location,
    Workspace,
    check_ours,
    held_lock,
    site_packages,
    write_mark,
)
from harness.errors import NoSpace, UserMistake
from harness.events import Note
from harness.model import Lock, Pin
from harness.run.launch import remove_tree
from harness.run.locks import Busy, Hold, acquire, claimed_folder, remove_abandoned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from harness.environment.interpreter import Interpreter


_WORTH_TELLING = 100 * 2**20
_KEPT_ON_A_FULL_DISK = 3  # the one being built, and the two sides of a change
_KEPT_AT_MOST = 200  # each takes a file descriptor
_TRIES = 3
_FOR_CPUS = ("--torch-backend", BACKEND)


class CannotBuild(Exception):
    """An environment can't be built; the message is the installer's."""


@frozen
class Environment:
    """A Python interpreter and what is installed for it; `folder` is None if the harness did not build it.

    `installed` is the lock with other builds of PyTorch, if those of `lock` were not installed. `clashes` says which
    wheel's file is installed where several have one. `readable` is where its Python is.
    """

    python: Path
    lock: Lock
    folder: Path | None = None
    readable: tuple[Path, ...] = field(default=(), eq=False)
    clashes: tuple[str, ...] = field(default=(), eq=False)
    installed: Lock | None = field(default=None, eq=False)


@frozen
class _BareEnvironment:
    """The content of a relocatable environment, by path: of files with their mode, and the targets of links.

    It is kept in memory, where no run can change it. Writing it again is ten times faster than calling uv.
    """

    folders: tuple[str, ...]
    links: Mapping[str, str]
    files: Mapping[str, tuple[bytes, int]]

    @classmethod
    def read(cls, folder: Path) -> _BareEnvironment:
        paths = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*"))}
        links = {name: str(path.readlink()) for name, path in paths.items() if path.is_symlink()}
        folders = tuple(name for name, path in paths.items() if name not in links and path.is_dir())
        files = {name: path for name, path in paths.items() if name not in links and name not in folders}
        return cls(folders, links, {name: (path.read_bytes(), path.stat().st_mode) for name, path in files.items()})

    def write(self, target: Path) -> None:
        """Write it to an empty folder. Raises `OSError`."""
        for name in self.folders:
            (target / name).mkdir()
        for name, origin in self.links.items():
            (target / name).symlink_to(origin)
        for name, (content, mode) in self.files.items():
            (target / name).write_bytes(content)
            (target / name).chmod(mode)


@frozen
class Builder:
    """Builds environments for one interpreter and keeps them by the id of their lock.

    `disk_space` keeps the disk from filling up; `size_of` returns the bytes of a wheel, None if unknown. Without
    `has_gpu_libraries` NVIDIA's libraries are left out. `compared` knows which environments matched their manifests a
    moment ago.
    """

    uv: Uv
    interpreter: Interpreter
    workspace: Workspace
    disk_space: DiskSpace = field(default=Factory(lambda self: DiskSpace(self.workspace), takes_self=True))
    size_of: Callable[[Pin], int | None] = attrgetter("size")
    has_gpu_libraries: bool = True
    compared: RecentlyCompared = field(factory=RecentlyCompared, eq=False, repr=False)
    _holds: dict[str, Hold] = field(factory=dict, init=False, repr=False, eq=False)
    _noted: list[str] = field(factory=list, init=False, repr=False, eq=False)
    _keeping: threading.Lock = field(factory=threading.Lock, init=False, repr=False, eq=False)

    @cached_property
    def builds(self) -> SourceBuilds:
        """The wheels that were built from source distributions."""
        return SourceBuilds(self.uv, self.interpreter, self.workspace, self.disk_space.reporter)

    @cached_property
    def cpu_builds(self) -> CpuBuilds:
        """The builds of PyTorch for CPUs."""
        return CpuBuilds(self.uv, self.interpreter, self.workspace, self.disk_space.reporter)

    @cached_property
    def bare(self) -> _BareEnvironment:
        """An environment of this interpreter without packages. Raises `CannotBuild` and `OSError`."""
        with claimed_folder(self.workspace.building, "bare-") as folder:
            venv = ("venv", "--relocatable", "--allow-existing", "--no-project", "--python", self.interpreter.path)
            answer = self.uv.call("--quiet", *venv, folder, cwd=folder)
            if answer.returncode != 0:
                raise CannotBuild(spoken_by_uv(answer.words))
            (folder / ".lock").unlink(missing_ok=True)
            return _BareEnvironment.read(folder)

    @property
    def wheels(self) -> WheelStore:
        """The installed wheels that environments of this interpreter share."""
        return WheelStore(self.workspace, f"{self.interpreter.cache_tag}-{self.interpreter.stdlib.name}")

    @property
    def bytecode(self) -> BytecodeStore:
        """What was compiled of these wheels."""
        return BytecodeStore(self.wheels, self.interpreter.cache_tag)

    def estimate(self, lock: Lock) -> DiskEstimate | None:
        """The disk space that the environment of a lock needs, None if it exists."""
        if self.location(lock).folder.is_dir():
            return None
        return self._estimate(lock)

    def location(self, lock: Lock) -> Location:
        """Where the environment of a lock belongs."""
        without, builds = self._for_a_cpu(lock)
        return Location(self.workspace, f"{lock.id}{'-cpu' if builds else '-without-gpu' if without else ''}")

    def _for_a_cpu(self, lock: Lock) -> tuple[tuple[Pin, ...], tuple[Pin, ...]]:
        """The pins that are left out, and builds for CPUs that replace pins.

        Stand-ins for what is left out are only needed without such builds.
        """
        if self.has_gpu_libraries or not (without := uncalled(lock)):
            return (), ()
        return without, self.cpu_builds.of(lock)

    def _installed(self, lock: Lock) -> Lock:
        """The lock with the builds that are installed."""
        _, builds = self._for_a_cpu(lock)
        instead = {pin.name: pin for pin in builds}
        return evolve(lock, pins=[instead.get(pin.name, pin) for pin in lock.pins]) if builds else lock

    def sources(self, manifest: Manifest, folder: Path, at: Path | None = None) -> Sources:
        """Where the sources of an environment are; `at` is where it is now, if it was not moved to `folder` yet."""
        return Sources(manifest, site_packages(folder, at), site_packages(at or folder), self.interpreter.stdlib)

    def build(self, lock: Lock, *, recent: bool = False, as_is: bool = False) -> Environment:
        """The environment of a lock, built now if it does not exist or was changed.

        With `recent` it is not compared with its manifest if that was done a moment ago, with `as_is` not at all. No
        other harness removes it before this process ends. Raises `CannotBuild`, `NoSpace` and `NoNetwork`.
        """
        location = self.location(lock)
        self._keep(location)
        with acquire(location.in_use, shared=True):
            manifest = self._standing(location) if as_is else self.sound(location, recent=recent)
        if manifest is None:
            with acquire(location.in_use):
                manifest = self.renew(lock, location)
            self.compared.note(location.name, manifest)
        with contextlib.suppress(FileNotFoundError):
            os.utime(location.folder)  # when it was last used: `harness clean` frees the oldest first
        installed = self._installed(lock)
        return Environment(location.python, lock, location.folder, clashes=manifest.clashes, installed=installed)

    def give(self, lock: Lock, folder: Path) -> None:
        """Build the environment of a lock in a folder of the user, with all its libraries.

        A folder that has it already stays as it is. Raises `CannotBuild`, `NoSpace`, `NoNetwork`, and `UserMistake` if
        the folder has other content or can't be written.
        """
        folder = folder.expanduser().absolute()
        check_ours(folder)
        if held_lock(folder) == lock.id and (folder / "bin" / "python").exists():
            return
        prefix = f".{folder.name}.harness-part-"
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserMistake(f"can't create {folder}: {error.strerror}") from error
        remove_abandoned(folder.parent, prefix)
        with claimed_folder(folder.parent, prefix) as partial:
            fresh = partial / "new"
            fresh.mkdir()
            evolve(self, has_gpu_libraries=True).build_at(fresh, lock)
            write_mark(fresh, lock)
            check_ours(folder)
            with contextlib.suppress(FileNotFoundError):
                folder.rename(partial / "former")
            fresh.rename(folder)

    def sound(self, location: Location, *, recent: bool = False) -> Manifest | None:
        """The manifest if every file of the environment matches it now, or with `recent` a moment ago, else None."""
        is_there = recent and location.manifest_path.is_file() and location.python.exists()
        if is_there and (known := self.compared.manifest(location.name)) is not None:
            return known
        manifest = self._standing(location)
        return None if manifest is None or self.differences(manifest, location.folder, location) else manifest

    def _standing(self, location: Location) -> Manifest | None:
        """The manifest of an environment if it exists, changed or not."""
        # If the Python that it was built for is gone, the link to it is broken.
        return Manifest.read(location.manifest_path) if location.python.exists() else None

    def differing_entries(self, lock: Lock, other: Lock) -> frozenset[str] | None:
        """The entries of site-packages with files of wheels that only one of two environments has.

        None if one of them is not built.
        """
        locations = [self.location(each) for each in (lock, other)]
        first, second = (
            self.compared.manifest(location.name) or Manifest.read(location.manifest_path) for location in locations
        )
        if first is None or second is None:
            return None
        differing = first.wheels.keys() ^ second.wheels.keys()
        paths = [path for manifest in (first, second) for key in differing for path in manifest.wheels.get(key, ())]
        inside = (path.partition("-packages/")[2] for path in paths)
        return frozenset(path.split("/")[0].removesuffix(".py") for path in inside if path)

    def differences(self, manifest: Manifest, folder: Path, location: Location | None) -> list[str]:
        """The files of an environment that differ from what was built there; `location` is None if it is not shared.

        The store drops the wheels that they belong to.
        """
        differs = manifest.differences(folder, self.wheels.ledger)
        if location is not None and differs:
            self.compared.forget()
            self.wheels.drop(manifest.wheels_with(differs))
        elif location is not None:
            self.compared.note(location.name, manifest)
        return differs

    def renew(self, lock: Lock, location: Location) -> Manifest:
        """Build an environment at its location unless it is sound. Call it with the exclusive lock held.

        Raises as `build`.
        """
        if (manifest := self.sound(location)) is not None:
            return manifest
        with claimed_folder(self.workspace.building, f"{location.name}-") as partial:
            built = self.build_at(partial, lock)
            with self._disk():
                location.discard()
                built.write(location.manifest_path)
                partial.rename(location.folder)
                # So that its first run starts sooner.
                with contextlib.suppress(Busy), acquire(location.bytecode_lock, wait=False):
                    self.bytecode.fill(location.pycache, self.sources(built, location.folder))
        return built

    def forget(self, lock: Lock) -> None:
        """Make the next user of an environment rebuild it."""
        self.location(lock).manifest_path.unlink(missing_ok=True)

    def build_at(self, folder: Path, lock: Lock, *, apart: bool = False) -> Manifest:
        """Build an environment in an empty folder and record its files; with `apart` it shares no file with others.

        Raises as `build`.
        """
        estimate = self._estimate(lock)
        self.disk_space.reserve(estimate, lambda: self.let_go(but=_KEPT_ON_A_FULL_DISK))
        if estimate.download >= _WORTH_TELLING or estimate.unsized:
            self.disk_space.reporter.report(Note(str(estimate)))
        with self._disk():
            without, builds = self._for_a_cpu(lock)
            note = replaced_by(builds) if builds else left_out(without) if without else ""
            if note and not self._noted:
                self._noted.append(note)
                self.disk_space.reporter.report(Note(note))
            with contextlib.ExitStack() as stages:
                return _Installation(self, lock, folder, without, builds, stages).install(apart=apart)

    def _keep(self, location: Location) -> None:
        """Keep an environment from being removed while this process lives; the most recently used come last."""
        with self._keeping:
            hold = self._holds.pop(location.name, None)
            self._holds[location.name] = hold if hold is not None else acquire(location.readers_lock, shared=True)
        self.let_go(but=_KEPT_AT_MOST)

    def let_go(self, but: int = 0) -> None:
        """Let others remove the environments that this process keeps, except the `but` most recently used."""
        with self._keeping:
            while len(self._holds) > but:
                self._holds.pop(next(iter(self._holds))).release()

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

    def has_wheels(self, lock: Lock) -> bool:
        """Whether the store has all wheels that the environment of a lock needs."""
        return next(self._missing(lock), None) is None

    def _missing(self, lock: Lock) -> Iterator[Pin]:
        without, _ = self._for_a_cpu(lock)
        return (pin for pin in self._installed(lock).pins if pin not in without and not self.wheels.has(pin))

    def _estimate(self, lock: Lock) -> DiskEstimate:
        return DiskEstimate.of(self._missing(lock), self.size_of, self.uv.wheels_folder)


# uv's message if it chose a file that is not in the lock, because it was added to the release later.
_OTHER_FILE = "Hash mismatch"


@frozen
class _Installation:
    """Installs one lock into the empty folder `bare`.

    Stand-ins replace the pins `without`, other `builds` of PyTorch those of the lock. `stages` lasts until the end of
    it, `loose` has what is installed of wheels that can't be stored.
    """

    builder: Builder
    lock: Lock
    bare: Path
    without: Sequence[Pin]
    builds: Sequence[Pin]
    stages: contextlib.ExitStack
    loose: dict[str, Tree] = field(factory=dict, init=False)

    @property
    def wheels(self) -> WheelStore:
        """Where wheels are linked from."""
        return self.builder.wheels

    def install(self, *, apart: bool) -> Manifest:
        """Install the lock and record its files; with `apart` it shares no file with other environments.

        Raises `CannotBuild`, `OSError`, `NoNetwork` and `Cancelled`.
        """
        folder, lock = self.bare, self.lock
        self.builder.bare.write(folder)
        instead = {pin.name: pin for pin in self.builds}
        pins = [instead.get(pin.name, pin) for pin in lock.pins if pin not in self.without]
        for _ in range(_TRIES):  # another process may drop a wheel between the two steps
            if words := self._fetch(pins):
                raise CannotBuild(words)
            linked = self.wheels.install(pins, folder, loose=self.loose, apart=apart)
            if not linked.missing:
                break
        else:
            raise CannotBuild(f"uv did not install {', '.join(pin.name for pin in linked.missing)}")
        clashes, others = linked.clashes, linked.others
        if self.without:
            stand_in(self.without, folder)
            others = self.wheels.ledger.below(folder)
            clashes = (*clashes, replaced_by(self.builds) if self.builds else left_out(self.without))
        manifest = Manifest.of(linked.wheels, others)
        return evolve(manifest, overwritten=linked.overwritten, clashes=clashes)

    def _fetch(self, pins: Sequence[Pin]) -> str:
        """Store the wheels that the store lacks, as uv installs them; returns uv's error message, "" if there is none.

        uv starts the Python that it installs for, which runs code of what is installed there already. So each call has
        a stage of its own: another bare environment.
        """
        wanted = [pin for pin in pins if pin.name not in self.loose and not self.wheels.has(pin)]
        if not wanted:
            return ""
        with acquire(self.wheels.filling), self._downloads() as downloads:
            # Another build may have stored some of them while this one waited.
            wanted = [pin for pin in wanted if not self.wheels.has(pin)]
            cached = [pin for pin in wanted if not pin.sha256]  # never stored, so uv's cache should keep it
            missing = [pin for pin in wanted if pin.sha256]
            cached += cached_by_uv(missing, self.builder.uv.wheels_folder)
            fresh = [pin for pin in missing if pin not in cached]
            uv = self._install_with_uv
            fetch = partial(uv, cache=("--link-mode", "hardlink", "--cache-dir", downloads))
            groups: list[tuple[list[Pin], Callable[[Sequence[Pin], Path], str]]] = [
                (cached, uv),
                ([pin for pin in fresh if pin not in self.builds], fetch),
                ([pin for pin in fresh if pin in self.builds], partial(fetch, options=_FOR_CPUS)),
            ]
            while groups:
                group, install = groups.pop()
                if not group:
                    continue
                stage = self._stage()
                if words := install(group, stage):
                    if all(pin.name in self.loose for pin in group):  # can't be fetched again
                        continue
                    return words
                for path in downloads.iterdir():
                    remove_tree(path)  # before the change times are noted
                taken = self.wheels.take_in(group, stage)
                self.loose.update(taken.loose)
                # Each wheel in a stage of its own has all of its files.
                groups += [([pin], install) for pin in taken.overwritten]
                groups += [(list(taken.damaged), fetch)] if install == uv else []
            for pin in filter(self.wheels.has, wanted):
                self.loose.pop(pin.name, None)
        return ""

    @contextlib.contextmanager
    def _downloads(self) -> Iterator[Path]:
        """A cache of uv for what it downloads for the lock, removed at the end; an interrupted build leaves it.

        It is on the file system of the stages, so uv links from it, and a wheel is on the disk once.
        """
        folder = self.builder.workspace.downloads / self.lock.id
        folder.mkdir(exist_ok=True)
        with acquire(folder):
            yield folder
            remove_tree(folder)

    def _stage(self) -> Path:
        stage = self.stages.enter_context(claimed_folder(self.builder.workspace.building, "stage-"))
        self.builder.bare.write(stage)
        return stage

    def _install_with_uv(
        self,
        pins: Sequence[Pin],
        stage: Path,
        *,
        cache: Sequence[str | Path] = ("--link-mode", "copy"),
        options: Sequence[str] = (),
    ) -> str:
        """Install pins into a bare environment, by default as copies from uv's own cache.

        Returns uv's error message, "" if none.
        """
        uv = self.builder.uv
        built: dict[str, BuiltWheel] = {}
        for pin in pins:
            if is_source(pin.wheel):
                wheel = self.builder.builds.of(pin)
                if isinstance(wheel, NotBuilt):
                    return f"{wheel.release} {CANT_BUILD}: {wheel.words}"
                built[pin.name] = wheel
        wheels = [built[pin.name].pin if pin.name in built else pin for pin in pins]
        lock = Lock(python="", platform="", pins=wheels)
        with claimed_folder(uv.scratch, "install-") as folder:
            requirements = folder / "requirements.txt"
            requirements.write_text(lock.as_requirements(), encoding="utf-8")
            install = [
                *("--quiet", "pip", "install", "--no-deps", "--only-binary", ":all:"),
                *(["--require-hashes"] if all(pin.sha256 for pin in lock.pins) else []),
                *("--python", stage / "bin" / "python", "--requirements", requirements),
                *cache,
                *options,
                *uv.offering([wheel.path.parent for wheel in built.values()]),
                *uv.from_own_index(pin.name for pin in pins),
            ]
            answer = uv.call(*install, cwd=stage)
            if answer.returncode != 0 and _OTHER_FILE in answer.words:
                answer = uv.call(*install, *_not_newer(lock), cwd=stage)
        return spoken_by_uv(answer.words) or f"uv ended with code {answer.returncode}" if answer.returncode else ""


def _not_newer(lock: Lock) -> Iterator[str]:
    """Options that exclude files which were added to a locked release later than everything in the lock."""
    for pin in lock.pins:
        if pin.uploaded:
            after = datetime.fromisoformat(pin.uploaded) + timedelta(seconds=1)
            yield from ("--exclude-newer-package", f"{pin.name}={after.isoformat()}")
