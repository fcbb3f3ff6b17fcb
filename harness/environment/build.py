"""From a lock to an environment: built whole or not at all, never altered afterwards.

An environment is built under a name that nothing looks up, then renamed to its place (`harness.environment.place`):
the address of its lock, or a folder that the user named. A file lock keeps a second harness from building the same one;
a build that was killed leaves only rubbish that the next one removes.
"""

from __future__ import annotations

import json
import os
import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import field, frozen
from filelock import FileLock

from harness.atomic import is_out_of_space
from harness.environment.bytecode import BytecodeStore
from harness.environment.disk import Room
from harness.environment.need import Foresight, Need, size_in_lock
from harness.environment.place import MARK, Place
from harness.environment.pylock import is_source
from harness.environment.uv import Uv, spoken_by_uv
from harness.errors import NoSpace
from harness.events import Note

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator

    from harness.environment.interpreter import Interpreter
    from harness.environment.workspace import Workspace
    from harness.model import Lock, Pin

_WORTH_TELLING = 100 * 2**20


# What uv says where it took a file that the lock does not name: one that was added to the release after the lock's day.
_OTHER_FILE = "Hash mismatch"


@frozen
class Environment:
    """A Python to run and what is installed beside it.

    `pycache` is the bytecode tree for PYTHONPYCACHEPREFIX; None where the harness did not build the environment.
    """

    python: Path
    lock: Lock
    folder: Path | None = None
    pycache: Path | None = None
    is_mixture: bool = False


@frozen
class Uninstallable:
    """Why a lock could not be installed, in the installer's own words."""

    words: str


@frozen
class Builder:
    """Builds environments for one interpreter and keeps them by the id of their lock.

    With `at`, a folder of the user's, each environment is put there instead, in place of the one before. `room` keeps
    the disk from filling up; `size_of` gives the bytes of a wheel, None where nobody tells.
    """

    uv: Uv
    interpreter: Interpreter
    workspace: Workspace
    bytecode: BytecodeStore = field()
    from_source: tuple[str, ...] = ()
    at: Path | None = None
    room: Room = field()
    size_of: Callable[[Pin], int | None] = size_in_lock

    @bytecode.default
    def _default_bytecode(self) -> BytecodeStore:
        return BytecodeStore(self.workspace.bytecode, self.interpreter.cache_tag)

    @room.default
    def _default_room(self) -> Room:
        return Room(self.workspace)

    def need(self, lock: Lock) -> Need | None:
        """What the environment of a lock will take of the disk, None where it exists."""
        if (self.workspace.environments / lock.id).is_dir():
            return None
        return self._need(lock)

    def build(self, lock: Lock, *, cancel: threading.Event | None = None) -> Environment | Uninstallable:
        """The environment of a lock, built now if it does not exist.

        Raises `NoSpace`, `NoNetwork`, and `UserMistake` where the user's folder holds something else.
        """
        place = Place.given(self.at) if self.at is not None else Place.under_lock(self.workspace, lock)
        if not place.holds(lock):
            with FileLock(self.workspace.locks / f"{place.name}.lock"):
                failure = None if place.holds(lock) else self._build(lock, place, cancel)
            if failure is not None:
                return failure
        os.utime(place.folder)  # when it was last used: `harness clean` frees the oldest first
        return Environment(
            python=place.folder / "bin" / "python", lock=lock, folder=place.folder, pycache=place.pycache
        )

    def after_run(self, environment: Environment) -> None:
        """Keep what a run compiled, for every later environment with the same wheels."""
        if environment.pycache is not None and environment.folder is not None and not environment.is_mixture:
            self.bytecode.harvest(environment.lock, site_packages(environment.folder), environment.pycache)

    def _build(self, lock: Lock, place: Place, cancel: threading.Event | None) -> Uninstallable | None:
        need = self._need(lock)
        self.room.make(need, self.uv.cache_folder)
        if need.download >= _WORTH_TELLING or need.unsized:
            self.room.reporter.report(Note(str(need)))
        partial = place.partial()
        try:
            words = self._install(lock, partial, cancel)
            if words is not None:
                return Uninstallable(words)
            pycache = place.pycache_of(partial)
            shutil.rmtree(pycache, ignore_errors=True)
            # Bytecode is looked up by the path the environment will have, not by the one it is built at.
            self.bytecode.link(lock, site_packages(partial), pycache, shown_as=site_packages(place.folder, partial))
            self.bytecode.share_stdlib(self.interpreter.stdlib, pycache)
            place.put(partial)
        except OSError as error:
            if is_out_of_space(error):
                raise NoSpace(
                    "no space left for a new environment", hint="harness clean frees old environments"
                ) from error
            raise
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        return None

    def _need(self, lock: Lock) -> Need:
        return Foresight(self.uv.wheels_folder, self.size_of).need(lock, self.workspace.building)

    def _install(self, lock: Lock, partial: Path, cancel: threading.Event | None) -> str | None:
        requirements = partial / "requirements.txt"
        requirements.write_text(lock.as_requirements(), encoding="utf-8")
        try:
            install = self._install_into(partial, lock, requirements)
            for call in (self._venv(partial), install):
                answer = self.uv.call("--quiet", *call, cwd=partial, cancel=cancel)
                if answer.returncode != 0 and call is install and _OTHER_FILE in answer.words:
                    answer = self.uv.call("--quiet", *call, *_not_newer(lock), cwd=partial, cancel=cancel)
                if answer.returncode != 0:
                    return spoken_by_uv(answer.words)
        finally:
            requirements.unlink(missing_ok=True)
        (partial / MARK).write_text(json.dumps({"lock": lock.id, "python": lock.python}), encoding="utf-8")
        return None

    def _venv(self, partial: Path) -> list[str | Path]:
        options = ["--relocatable", "--allow-existing", "--no-project"]
        return ["venv", *options, "--python", self.interpreter.path, partial]

    def _install_into(self, partial: Path, lock: Lock, requirements: Path) -> list[str | Path]:
        options = ["--no-deps", "--link-mode", "hardlink"]
        if not self.from_source:
            options += ["--only-binary", ":all:", *_from_source(lock)]
        if all(pin.sha256 for pin in lock.pins):
            options.append("--require-hashes")
        return ["pip", "install", *options, "--python", partial / "bin" / "python", "--requirements", requirements]


def _from_source(lock: Lock) -> Iterator[str]:
    """Options for what the lock has as source only: whoever resolved it was allowed to."""
    for pin in lock.pins:
        if is_source(pin.wheel):
            yield from ("--no-binary", pin.name)


def _not_newer(lock: Lock) -> Iterator[str]:
    """Options that leave out files of a locked release that came later than all that the lock knows of."""
    for pin in lock.pins:
        if pin.uploaded:
            yield from ("--exclude-newer-package", f"{pin.name}={_a_second_after(pin.uploaded)}")


def _a_second_after(moment: str) -> str:
    return (datetime.fromisoformat(moment) + timedelta(seconds=1)).isoformat()


def site_packages(folder: Path, built_at: Path | None = None) -> Path:
    """The site-packages of an environment; `built_at` is where it can be looked at if it is not there yet."""
    found = next((built_at or folder).glob("lib/python*/site-packages"))
    return folder / found.relative_to(built_at or folder)
