"""What one run gets: an environment, or a mixture of one, that matches its lock before the run and is compared after.

Environments share files through hard links, so a repro that writes into one changes others too, and it is unknown which
of the runs changed it. With `apart`, a run gets an environment that shares no file, and its result is sure.

A mixture is a copy of a finished environment with some files exchanged, cheap enough for a single run. Packages with
exchanged files are copies; the others are symbolic links.

An alias is another path to an environment, so that a bug that depends on the path is not the same in each repetition
of a run: a small folder whose programs are copies and whose other entries are links. It is named by a number, so that a
run can be repeated at the same path.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath

from attrs import define, evolve, field

from harness.environment.build import Builder, Environment, Uninstallable
from harness.environment.bytecode import BytecodeTree
from harness.environment.ledger import Location, Manifest, files_below, signature
from harness.environment.workspace import Busy, acquire, claimed_folder, site_packages
from harness.errors import HarnessError
from harness.model import Mixture
from harness.run.launch import remove_tree
from harness.run.process import Cancelled

_TRIES = 3
_COPIED = ("bin", "pyvenv.cfg")  # into an alias
_LARGE = 2**20  # bytes
_MOST_KEPT = 20_000  # answers about the syntax of mixed files


class CannotBuild(Exception):
    """The environment is gone and can't be built again; the message is the installer's."""


@define
class _Base:
    """An environment that is ready. `location` is None unless it is shared."""

    folder: Path
    manifest: Manifest
    location: Location | None = None
    is_broken: bool = False


@define
class WatchedEnvironment:
    """What one run gets: an environment, a scratch folder, and the prefix of its bytecode (None: the default one).

    `bytecode` is the tree that the prefix leads to.
    """

    environment: Environment
    scratch: Path
    pycache: Path | None = None
    bytecode: Path | None = None
    _look: Callable[[], tuple[str, ...]] = field(default=tuple, alias="look")

    def altered(self) -> tuple[str, ...]:
        """Compare the environment after the run, once: the files that changed. If none, its bytecode is kept."""
        return self._look()


@contextlib.contextmanager
def watched_environment(
    builder: Builder,
    environment: Environment,
    *,
    mixture: Mixture | None = None,
    apart: bool = False,
    alias: int = 0,
    cancel: threading.Event | None = None,
) -> Iterator[WatchedEnvironment]:
    """Share an environment with other runs while the context lasts; no process removes or rebuilds it meanwhile.

    It is compared with its manifest first, unless this process did so a moment ago, and rebuilt if it differs.
    `mixture`: this run gets a copy with some files exchanged. With `apart` this run gets an environment that shares no
    file. An `alias` other than 0 is another path to a shared environment. Raises `CannotBuild`, `NoSpace`, `NoNetwork`
    and `Cancelled`.
    """
    workspace = builder.workspace
    with claimed_folder(workspace.scratch, "") as scratch, contextlib.ExitStack() as stack:
        if environment.folder is None:
            bytecode = scratch / "pycache"  # nothing is written into the user's environment
            bytecode.mkdir()
            yield WatchedEnvironment(environment, scratch, bytecode)
            return
        base = None if apart else stack.enter_context(_shared(builder, environment, cancel))
        if base is None:
            base = _unshared(builder, environment, scratch / "environment", cancel)
        folder = base.folder
        if mixture is not None:
            folder = scratch / "mixture"
            build_mixture(base.folder, mixture, folder)
        tree = stack.enter_context(_bytecode(builder, environment, base, folder, scratch, mixture))
        look = _comparison(builder, base, folder if mixture is not None else None, tree, scratch, cancel)
        prefix = tree.folder
        if alias and mixture is None and base.location is not None:
            folder, prefix = alias_of(base.location, alias), scratch / "prefix"
            stdlib = builder.interpreter.stdlib
            link_bytecode(prefix, tree.folder, {folder: base.folder, base.folder: base.folder, stdlib: stdlib})
        where = evolve(environment, folder=folder, python=folder / "bin" / "python")
        yield WatchedEnvironment(where, scratch, prefix, tree.folder, look)


def _bytecode(
    builder: Builder, environment: Environment, base: _Base, folder: Path, scratch: Path, mixture: Mixture | None
) -> AbstractContextManager[BytecodeTree]:
    """The bytecode for a run in `folder`, without that of the files that a mixture exchanges."""
    return BytecodeTree.opened(
        builder.bytecode,
        builder.sources(environment.lock, folder, base.folder if mixture is not None else None),
        scratch / "pycache",
        shared=base.location if mixture is None else None,
        without=mixture.files if mixture is not None else (),
    )


def _comparison(
    builder: Builder, base: _Base, mixed: Path | None, tree: BytecodeTree, scratch: Path, cancel: threading.Event | None
) -> Callable[[], tuple[str, ...]]:
    """The comparison to do after the run; `mixed` is the folder of a mixture, which is recorded now."""
    before = files_below(mixed) if mixed is not None else {}

    def look() -> tuple[str, ...]:
        differs = _differences(builder, base)
        if mixed is not None:
            differs += _differences_of_mixture(before, mixed)
        differs += tree.differences()
        if not differs and mixed is None:
            tree.keep(base.manifest, builder.interpreter.path, scratch, cancel)
        base.is_broken = bool(differs)
        return tuple(dict.fromkeys(differs))

    return look


@contextlib.contextmanager
def _shared(builder: Builder, environment: Environment, cancel: threading.Event | None) -> Iterator[_Base | None]:
    """The environment that other runs share; None if it must be rebuilt while others still run in it."""
    lock = environment.lock
    location = builder.location(lock)
    for _ in range(_TRIES):
        hold = acquire(location.in_use, shared=True, cancel=cancel)
        compared = builder.compared.manifest(location.name, lock.id) if location.python.exists() else None
        manifest = compared if compared is not None else builder.sound(location, lock)
        if manifest is not None:
            break
        hold.release()
        try:
            with acquire(location.in_use, wait=not location.folder.exists(), cancel=cancel):
                failure = builder.renew(lock, location, cancel)
        except Busy:
            break
        if failure is not None:
            raise CannotBuild(failure.words)
    if manifest is None:
        yield None
        return
    base = _Base(location.folder, manifest, location)
    try:
        yield base
    finally:
        hold.release()
        if base.is_broken:
            # If this fails, the next user rebuilds it. The finished run must not be lost.
            with contextlib.suppress(Busy, Cancelled, HarnessError), acquire(location.in_use, wait=False):
                builder.renew(lock, location, cancel)


def _unshared(builder: Builder, environment: Environment, folder: Path, cancel: threading.Event | None) -> _Base:
    folder.mkdir()
    built = builder.build_at(folder, environment.lock, apart=True, cancel=cancel)
    if isinstance(built, Uninstallable):
        raise CannotBuild(built.words)
    return _Base(folder, built)


def _differences(builder: Builder, base: _Base) -> list[str]:
    """Files that differ from what was built. The store drops the wheels that they belong to."""
    is_users = base.location is not None and base.location.is_users
    differs = base.manifest.differences(base.folder, builder.wheels.ledger, is_users=is_users)
    if base.location is not None:
        if differs:
            builder.compared.forget()
            builder.wheels.drop(base.manifest.wheels_with(differs))
        else:
            builder.compared.note(base.location.name, base.manifest)
    return list(differs)


def _differences_of_mixture(before: dict[str, os.stat_result], folder: Path) -> list[str]:
    after = files_below(folder)
    return [
        path
        for path in before.keys() | after.keys()
        if path not in before or path not in after or _identity(before[path]) != _identity(after[path])
    ]


def _identity(found: os.stat_result) -> tuple[int, ...]:
    return found.st_mode, *signature(found)


def flaw_of(mixture: Mixture, python: str) -> str:
    """Why a mixture can't run with this Python version ("3.11.7"), "" if it may run."""
    return mixture.flaw or _not_python(mixture, python)


def build_mixture(base: Path, mixture: Mixture, folder: Path) -> None:
    """Build a mixture of a finished environment at `folder`, which must not exist yet. Raises `OSError`."""
    folder.mkdir()
    (folder / "bin").symlink_to(base / "bin", target_is_directory=True)
    shutil.copy2(base / "pyvenv.cfg", folder / "pyvenv.cfg")
    packages = site_packages(base)
    inside = folder / packages.relative_to(base)
    _copy(packages, inside, [PurePosixPath(path).parts for path in mixture.files])
    for path, content in mixture.files.items():
        exchange(inside, path, content)


def _copy(source: Path, target: Path, exchanged: Sequence[tuple[str, ...]], *, is_top: bool = True) -> None:
    """Copy a folder whose exchanged files are listed as the parts of their paths.

    At the top, packages without an exchanged file are linked. All folders of the others are real, and their files are
    copied with their times: code that follows the links in its own path must not leave the mixture. Only large files,
    which are compiled, are linked there.
    """
    target.mkdir(parents=True)
    below: dict[str, list[tuple[str, ...]]] = {}
    for parts in exchanged:
        below.setdefault(parts[0], []).append(parts[1:])
    for entry in os.scandir(source):
        inside, place = below.get(entry.name, []), target / entry.name
        if entry.is_dir():
            if inside or not is_top:
                _copy(source / entry.name, place, [parts for parts in inside if parts], is_top=False)
            else:
                place.symlink_to(source / entry.name, target_is_directory=True)
        elif entry.name not in below:
            if is_top or entry.stat().st_size > _LARGE:
                place.symlink_to(source / entry.name)
            else:
                shutil.copy2(entry.path, place)


def exchange(inside: Path, path: str, content: bytes | None) -> None:
    """Replace a file, or remove it."""
    place = inside / path
    place.unlink(missing_ok=True)
    if content is not None:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        return
    # Python would treat an empty folder as a namespace package, or as metadata of a distribution.
    folder = place.parent
    while folder != inside and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def _not_python(mixture: Mixture, python: str) -> str:
    """The first syntax error in a mixed file, if this interpreter can judge that version of the language, else ""."""
    if tuple(int(part) for part in python.split(".")[:2]) > sys.version_info[:2]:
        return ""
    for path, content in mixture.files.items():
        if content is not None and path.endswith(".py") and (problem := _problem(content)):
            return f"the mixture is not valid Python: {path}: {problem}"
    return ""


_problems: dict[bytes, str] = {}


def _problem(content: bytes) -> str:
    """The first syntax error of a text, "" if there is none; cached."""
    key = hashlib.blake2b(content, digest_size=16).digest()
    if key not in _problems:
        if len(_problems) >= _MOST_KEPT:
            _problems.clear()
        try:
            compile(content, "<mixed>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            _problems[key] = str(error)
        else:
            _problems[key] = ""
    return _problems[key]


def alias_of(location: Location, number: int) -> Path:
    """Return the alias `number` of an environment, made now if it is missing or was changed.

    Call it with the shared lock of the environment held. Raises `OSError`.
    """
    parent = location.aliases
    parent.mkdir(parents=True, exist_ok=True)
    folder, wanted = parent / str(number), _entries(location.folder)
    if _entries(folder, is_alias=True) == wanted:
        return folder
    part = Path(tempfile.mkdtemp(prefix=".", dir=parent))
    for name, content in wanted.items():
        path = part / name
        path.parent.mkdir(exist_ok=True)
        if isinstance(content, str):
            path.symlink_to(content)
        else:
            shutil.copy2(location.folder / name, path)
    former = Path(tempfile.mkdtemp(prefix=".", dir=parent))
    with contextlib.suppress(FileNotFoundError):
        folder.rename(former / "former")
    with contextlib.suppress(OSError):  # another run has made it meanwhile
        part.rename(folder)
    remove_tree(former)
    remove_tree(part)
    return folder


def _entries(folder: Path, *, is_alias: bool = False) -> dict[str, str | tuple[int, bytes]]:
    """The entries of an alias, or of one that an environment should have: the target of a link, or mode and content."""
    found: dict[str, str | tuple[int, bytes]] = {}
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for entry in os.scandir(folder):
            if entry.name == "bin" and entry.is_dir(follow_symlinks=False):
                found |= {f"bin/{one.name}": _entry(one) for one in os.scandir(entry.path)}
            else:
                is_own = is_alias or entry.name in _COPIED or entry.is_symlink()
                found[entry.name] = _entry(entry) if is_own else entry.path
    return found


def _entry(entry: os.DirEntry[str]) -> str | tuple[int, bytes]:
    if entry.is_symlink():
        return os.readlink(entry.path)  # noqa: PTH115 - the target as it is written
    if not entry.is_file():
        return f"{entry.path}/"  # a folder, which an alias never has
    return entry.stat().st_mode, Path(entry.path).read_bytes()


def link_bytecode(prefix: Path, tree: Path, folders: dict[Path, Path]) -> None:
    """Let a run that has its bytecode below `prefix` find, and write, that of a tree.

    `folders` maps each folder of sources as the run sees it to the one that the tree knows it by.
    """
    for seen, known in folders.items():
        target, link = tree / known.relative_to(known.anchor), prefix / seen.relative_to(seen.anchor)
        target.mkdir(parents=True, exist_ok=True)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
