"""An environment while one repro runs in it: it is what its lock says when the run begins, and looked at again after.

Files of an environment may be shared with others (hard links), so that a probe that writes into one reaches runs beside
it. Where an environment was altered while more than one run went on, nobody can say which of them did it, and what
they showed is not sure. Run `apart`, in an environment that shares nothing, it is.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from attrs import define, evolve, field, frozen

from harness.environment.build import Environment, Uninstallable
from harness.environment.bytecode_tree import BytecodeTree
from harness.environment.file_locks import Busy, acquire, claimed_folder, is_claimed, locked
from harness.environment.file_state import files_below
from harness.environment.mixing import build_mixture
from harness.errors import HarnessError
from harness.run.process import Cancelled

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from harness.environment.build import Builder
    from harness.environment.environment_record import EnvironmentRecord
    from harness.environment.location import Location
    from harness.environment.manifest import Manifest
    from harness.model import Mixture

_TRIES = 3


class CannotBuild(Exception):
    """The environment is not there any more and can't be built again: the installer's words."""


@frozen
class Altered:
    """What was changed in an environment during a run; `is_sure` unless another run went on at the same time."""

    files: tuple[str, ...] = ()
    is_sure: bool = True


@define
class _Base:
    """An environment that is ready; `location` and `record` where it is shared."""

    folder: Path
    manifest: Manifest
    location: Location | None = None
    record: EnvironmentRecord | None = None
    is_broken: bool = False


@define
class WatchedEnvironment:
    """Where one run goes: an environment, a scratch folder of its own, and a bytecode tree (None: the default one)."""

    environment: Environment
    scratch: Path
    pycache: Path | None = None
    _look: Callable[[], Altered] = field(default=Altered, alias="look")

    def altered(self) -> Altered:
        """Look at the environment after the run, once; what the run compiled is kept where nothing was altered."""
        return self._look()


@contextlib.contextmanager
def watched_environment(
    builder: Builder,
    environment: Environment,
    *,
    mixture: Mixture | None = None,
    apart: bool = False,
    cancel: threading.Event | None = None,
) -> Iterator[WatchedEnvironment]:
    """Share an environment with other runs for as long as the context lasts; nobody removes or rebuilds it meanwhile.

    It is compared with what was built first, and built anew where it differs. `mixture` makes one for this run alone,
    with files exchanged; with `apart` there is an environment for this run alone, which shares no file. Raises
    `CannotBuild`, `NoSpace`, `NoNetwork` and `Cancelled`.
    """
    workspace = builder.workspace
    with claimed_folder(workspace.scratch, "") as scratch, contextlib.ExitStack() as stack:
        if environment.folder is None:
            yield WatchedEnvironment(environment, scratch)
            return
        base = None if apart else stack.enter_context(_shared(builder, environment, cancel))
        if base is None:
            base = _of_its_own(builder, environment, scratch / "environment", cancel)
        is_alone = _watch_for_others(scratch, workspace.locks / "runs.count")
        folder, exchanged = base.folder, {}
        if mixture is not None:
            folder = scratch / "mixture"
            build_mixture(base.folder, mixture, folder)
            exchanged = files_below(folder)
        sources = builder.sources(environment.lock, folder, base.folder if mixture is not None else None)
        tree = stack.enter_context(
            BytecodeTree.opened(
                builder.bytecode,
                sources,
                scratch / "pycache",
                shared=base.record if mixture is None else None,
                without=mixture.files if mixture is not None else (),
            )
        )

        def look() -> Altered:
            differs = _differences(builder, base)
            if mixture is not None:
                differs += _differences_of_mixture(exchanged, folder)
            differs += tree.differences()
            if not differs and mixture is None:
                tree.keep(base.manifest, builder.interpreter.path, scratch, cancel)
            base.is_broken = bool(differs)
            return Altered(tuple(dict.fromkeys(differs)), base.record is None or is_alone())

        where = evolve(environment, folder=folder, python=folder / "bin" / "python")
        yield WatchedEnvironment(where, scratch, tree.folder, look)


@contextlib.contextmanager
def _shared(builder: Builder, environment: Environment, cancel: threading.Event | None) -> Iterator[_Base | None]:
    """The environment in its place; None if it must be built anew and others still run in it."""
    lock = environment.lock
    location = builder.location(lock)
    record = builder.record(location)
    for _ in range(_TRIES):
        hold = acquire(record.in_use, shared=True, cancel=cancel)
        manifest = record.sound(location, lock.id, builder.wheels)
        if manifest is not None:
            break
        hold.release()
        try:
            with locked(record.in_use, wait=not location.folder.exists(), cancel=cancel):
                failure = builder.renew(lock, location, cancel)
        except Busy:
            break
        if failure is not None:
            raise CannotBuild(failure.words)
    if manifest is None:
        yield None
        return
    base = _Base(location.folder, manifest, location, record)
    try:
        yield base
    finally:
        hold.release()
        if base.is_broken:
            # Who can't do it now leaves it to the next user; the run that is over is not lost for that.
            with contextlib.suppress(Busy, Cancelled, HarnessError), locked(record.in_use, wait=False):
                builder.renew(lock, location, cancel)


def _of_its_own(builder: Builder, environment: Environment, folder: Path, cancel: threading.Event | None) -> _Base:
    folder.mkdir()
    built = builder.build_at(folder, environment.lock, apart=True, cancel=cancel)
    if isinstance(built, Uninstallable):
        raise CannotBuild(built.words)
    return _Base(folder, built)


def _differences(builder: Builder, base: _Base) -> list[str]:
    """Files of an environment that are not what was built; wheels that lost files so lose their place in the store."""
    is_users = base.location is not None and base.location.is_users
    differs, now = base.manifest.look(base.folder, builder.wheels.ctimes, is_users=is_users)
    if base.record is not None:
        if differs:
            builder.wheels.drop(base.manifest.wheels_with(set(differs)))
        elif now is not base.manifest:
            now.write(base.record.manifest_path)
    return list(differs)


def _differences_of_mixture(before: dict[str, os.stat_result], folder: Path) -> list[str]:
    after = files_below(folder)
    return [path for path in before.keys() | after.keys() if _told(before.get(path)) != _told(after.get(path))]


def _told(found: os.stat_result | None) -> tuple[int, ...]:
    if found is None:
        return ()
    return found.st_mode, found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns


def _watch_for_others(mine: Path, count: Path) -> Callable[[], bool]:
    """Begin to watch for other runs on this cache; what is returned tells whether there was none from now on.

    `mine` is the claimed scratch folder of this run; each run that begins makes the file `count` a byte longer.
    """
    descriptor = os.open(count, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        os.write(descriptor, b".")
        begun = os.lseek(descriptor, 0, os.SEEK_CUR)
    finally:
        os.close(descriptor)
    was_alone = not any(is_claimed(folder) for folder in mine.parent.iterdir() if folder != mine)
    return lambda: was_alone and count.stat().st_size == begun
