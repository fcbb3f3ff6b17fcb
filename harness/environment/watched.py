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
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path, PurePosixPath

from attrs import define, evolve, field

from harness.environment import copy_folders
from harness.environment.build import Builder, CannotBuild, Environment
from harness.environment.bytecode import BytecodeTree
from harness.environment.copy_folders import copy_file
from harness.environment.manifest import Ledger, Manifest, files_below, signatures
from harness.environment.wheel_store import share
from harness.environment.workspace import Location, site_packages
from harness.errors import HarnessError
from harness.model import Lock, Mixture
from harness.run.locks import Busy, acquire, claimed_folder, put_in_place
from harness.run.process import Cancelled

_TRIES = 3


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
    within: Path | None = None,
    as_is: bool = False,
    is_writable: bool = True,
) -> Iterator[WatchedEnvironment]:
    """Share an environment with other runs while the context lasts; no process removes or rebuilds it meanwhile.

    It is compared with its manifest first, unless this process did so a moment ago, and rebuilt if it differs; one that
    is taken `as_is`, for a run that only guides a search, is not, and the run has the bytecode that there is.
    `mixture`: this run gets a copy with some files exchanged. With `apart` this run gets an environment that shares no
    file. An `alias` other than 0 is another path to a shared environment. The scratch folder is one of the cache, or
    `within` another. What a run can't write to is not compared after it: in a sandbox an environment is not
    `is_writable`, unless it is `apart`. Raises `CannotBuild`, `NoSpace`, `NoNetwork` and `Cancelled`.
    """
    workspace = builder.workspace
    with claimed_folder(within or workspace.scratch, "") as scratch, contextlib.ExitStack() as stack:
        if environment.folder is None:
            bytecode = scratch / "pycache"  # nothing is written into the user's environment
            bytecode.mkdir()
            yield WatchedEnvironment(environment, scratch, bytecode)
            return
        location, manifest = builder.location(environment.lock), None
        if as_is:
            stack.enter_context(acquire(location.in_use, shared=True))
            yield WatchedEnvironment(environment, scratch, location.pycache)
            return
        if not apart:
            manifest = _share(builder, environment.lock, location, stack)
        base, is_shared = location.folder, manifest is not None
        if manifest is None:
            base = scratch / "environment"
            manifest = _unshared(builder, environment, base)
        folder = base
        if mixture is not None:
            folder = scratch / "mixture"
            build_mixture(base, mixture, folder)
        exchanged = mixture.files if mixture is not None else ()
        sources = builder.sources(manifest, folder, base)
        lasting = location if is_shared and mixture is None else None
        tree = stack.enter_context(
            BytecodeTree.opened(builder.bytecode, sources, scratch / "pycache", shared=lasting, without=exchanged)
        )
        may_change = is_writable or not is_shared
        before = signatures(folder) if mixture is not None and may_change else set()

        def look() -> tuple[str, ...]:
            differs = builder.differences(manifest, base, location if is_shared else None) if may_change else []
            if mixture is not None and may_change:
                differs += sorted({path for path, _ in before ^ signatures(folder)})
            differs += tree.differences()
            if not differs and mixture is None:
                builder.bytecode.learn(tree.fresh, sources, builder.interpreter.path, scratch)
            return tuple(dict.fromkeys(differs))

        visible, prefix = folder, tree.folder
        if alias and lasting is not None:
            visible, prefix = alias_of(location, alias), scratch / "prefix"
            stdlib = builder.interpreter.stdlib
            link_bytecode(prefix, tree.folder, {visible: base, base: base, stdlib: stdlib})
        where = evolve(environment, folder=visible, python=visible / "bin" / "python")
        yield WatchedEnvironment(where, scratch, prefix, tree.folder, look)


@contextlib.contextmanager
def copied_environment(place: WatchedEnvironment, stdlib: Path, within: Path) -> Iterator[WatchedEnvironment]:
    """Another copy of a mixture, with a scratch folder in `within`, while the context lasts; made quickly.

    It shares the files, and the bytecode: a file must be replaced, not written to. Raises `OSError`.
    """
    original = place.environment.folder
    with claimed_folder(within, "") as scratch:
        folder, pycache = scratch / "mixture", scratch / "pycache"
        trees = [] if original is None else [(original, folder)]
        if place.pycache is not None:
            for known, seen in (*trees, (stdlib, stdlib)):
                inside = place.pycache / known.relative_to(known.anchor)
                trees += [(inside, pycache / seen.relative_to(seen.anchor))] if inside.is_dir() else []
        for source, target in trees:
            shutil.copytree(source, target, symlinks=True, copy_function=share)
        environment = evolve(place.environment, folder=folder, python=folder / "bin" / "python")
        yield WatchedEnvironment(environment, scratch, pycache)


def _share(builder: Builder, lock: Lock, location: Location, stack: ExitStack) -> Manifest | None:
    """Share an environment with other runs until `stack` ends; None if it must be rebuilt while others run in it."""
    for _ in range(_TRIES):
        hold = acquire(location.in_use, shared=True)
        if (manifest := builder.sound(location, recent=True)) is not None:
            stack.callback(_restore, builder, lock, location)
            stack.enter_context(hold)
            return manifest
        hold.release()
        try:
            with acquire(location.in_use, wait=not location.folder.exists()):
                builder.renew(lock, location)
        except Busy:
            break
    return None


def _restore(builder: Builder, lock: Lock, location: Location) -> None:
    """Rebuild an environment that a run has changed, unless others still run in it."""
    if builder.compared.manifest(location.name) is None:
        # If this fails, the next user rebuilds it. The finished run must not be lost.
        with contextlib.suppress(Busy, Cancelled, CannotBuild, HarnessError), acquire(location.in_use, wait=False):
            builder.renew(lock, location)


def _unshared(builder: Builder, environment: Environment, folder: Path) -> Manifest:
    folder.mkdir()
    return builder.build_at(folder, environment.lock, apart=True)


def flaw_of(mixture: Mixture, python: str) -> str:
    """Why a mixture can't run with this Python version ("3.11.7"), "" if it may run."""
    return mixture.flaw or _not_python(mixture, python)


def build_mixture(base: Path, mixture: Mixture, folder: Path) -> None:
    """Build a mixture of a finished environment at `folder`, which must not exist yet. Raises `OSError`.

    Packages without an exchanged file are linked, scripts are copied. All folders of the other packages are real, and
    their files are copied with their times: code that follows the links in its own path must not leave the mixture.
    """
    folder.mkdir()
    (folder / "bin").mkdir()
    for program in (base / "bin").iterdir():
        place = folder / "bin" / program.name
        # A script starts the Python beside the file that links lead to, which would be that of `base`.
        place.symlink_to(program) if program.is_symlink() else copy_file(str(program), str(place))
    shutil.copy2(base / "pyvenv.cfg", folder / "pyvenv.cfg")
    packages = site_packages(base)
    inside = folder / packages.relative_to(base)
    inside.mkdir(parents=True)
    exchanged, copied = {PurePosixPath(path).parts[0] for path in mixture.files}, list[Path]()
    for entry in packages.iterdir():
        if entry.name not in exchanged:
            (inside / entry.name).symlink_to(entry)
        elif entry.is_dir():
            copied += entry, inside / entry.name
    _copy_folders(copied)
    for path, content in mixture.files.items():
        exchange(inside, path, content)


def _copy_folders(pairs: list[Path]) -> None:
    """Copy folders, each followed by its target. Raises `OSError`."""
    if pairs:
        words = [sys.executable, "-I", "-S", "-B", copy_folders.__file__, *map(str, pairs)]
        ended = subprocess.run(words, capture_output=True, text=True, start_new_session=True, check=False)
        if ended.returncode:
            why = ended.stderr.strip().rpartition("\n")[2] or "it was stopped"
            raise OSError(abs(ended.returncode), f"copying an environment failed: {why}")


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


@lru_cache(maxsize=2000)
def _problem(content: bytes) -> str:
    """The first syntax error of a text, "" if there is none."""
    try:
        compile(content, "<mixed>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        return str(error)
    return ""


def alias_of(location: Location, number: int) -> Path:
    """Return the alias `number` of an environment, made now if it is missing or was changed.

    Call it with the shared lock of the environment held. Raises `OSError`.
    """
    parent, ledger = location.aliases, Ledger.of(location.workspace)
    parent.mkdir(parents=True, exist_ok=True)
    folder = parent / str(number)
    with claimed_folder(parent, ".") as spare:
        fresh = spare / "alias"
        shutil.copytree(location.folder / "bin", fresh / "bin", symlinks=True)
        shutil.copy2(location.folder / "pyvenv.cfg", fresh)
        for entry in location.folder.iterdir():
            if not (fresh / entry.name).exists():
                (fresh / entry.name).symlink_to(entry.readlink() if entry.is_symlink() else entry)
        if not folder.is_dir() or _contents(folder, ledger) != _contents(fresh, ledger):
            put_in_place(folder, fresh)
    return folder


def _contents(folder: Path, ledger: Ledger) -> dict[str, tuple[int, str]]:
    """Mode and content of each file, without those of linked folders."""
    states = ledger.states(files_below(folder), folder)
    return {path: (state.mode, state.content) for path, state in states.items()}


def link_bytecode(prefix: Path, tree: Path, folders: dict[Path, Path]) -> None:
    """Let a run that has its bytecode below `prefix` find, and write, that of a tree.

    `folders` maps each folder of sources as the run sees it to the one that the tree knows it by.
    """
    for visible, known in folders.items():
        target, link = tree / known.relative_to(known.anchor), prefix / visible.relative_to(visible.anchor)
        target.mkdir(parents=True, exist_ok=True)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
