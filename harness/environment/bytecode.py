"""Bytecode is compiled once per wheel, by the harness, and linked into the trees of later environments.

A run compiles what it imports into a tree next to its environment (PYTHONPYCACHEPREFIX). The harness only uses that
tree to learn which modules were needed. It compiles these from sources that match their wheel. Nothing that a run
wrote is executed by another run. Bytecode stays valid because environments share sources with the same time stamps.

An environment has one lasting tree, which one run at a time uses. A concurrent run, or a run in a mixture, gets a tree
that is removed after the run.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import posixpath
import shutil
import struct
import threading
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from attrs import define, frozen

from harness.atomic import write_whole
from harness.environment.ledger import FileState, Ledger, Location, Manifest, content_of, read_states, state_of
from harness.environment.wheel_store import sharing
from harness.environment.workspace import Busy, Workspace, acquire
from harness.model import Lock, Pin
from harness.run.launch import Limits, remove_tree
from harness.run.process import run_guarded

_COMPILE = Path(__file__).with_name("compile_sources.py")
_LONGEST_S = 300.0
BYTECODE_LOCK = "bytecode.lock"
_LEDGER = "ledger.json"
_HEADER = 16  # bytes


@frozen
class Sources:
    """Where the sources of a lock's wheels and of the standard library are.

    `packages` is the site-packages as a run sees it, `at` where it is now. Several wheels have the files `unclear`, by
    path relative to it; their bytecode is not kept.
    """

    lock: Lock
    packages: Path
    at: Path
    stdlib: Path
    unclear: frozenset[str] = frozenset()


@frozen
class BytecodeStore:
    """Compiled modules below `root`, by interpreter (`cache_tag` of sys.implementation) and wheel.

    Hold `lock` to add or remove files.
    """

    root: Path
    cache_tag: str
    lock: Path
    ledger: Ledger

    @classmethod
    def of(cls, workspace: Workspace, cache_tag: str) -> BytecodeStore:
        """The store of a workspace."""
        return cls(workspace.bytecode, cache_tag, workspace.locks / BYTECODE_LOCK, Ledger.of(workspace))

    def fill(
        self, tree: Path, sources: Sources, *, without: Iterable[str] = (), only: frozenset[str] | None = None
    ) -> dict[str, FileState]:
        """Link known bytecode into a tree; returns the states of its files, by their paths in the tree.

        `without` are sources, relative to site-packages, that do not match their wheel; `only` limits it to some paths
        of the tree. Bytecode of another source is left out, and a file that changed since it was compiled is removed
        from the store. A file that the ledger knows is not read.
        """
        stale = {compiled_name(name, self.cache_tag) for name in (*without, *sources.unclear)}
        stored = {
            origin: (path, source, state)
            for origin, name, path, source, state in self._stored(sources)
            if name not in stale and (only is None or path in only)
        }
        found: dict[str, os.stat_result] = {}
        for origin in stored:
            with contextlib.suppress(FileNotFoundError):
                found[origin] = os.lstat(origin)
        for origin in self.ledger.differing({origin: state for origin, (_, _, state) in stored.items()}, found):
            del stored[origin]
            Path(origin).unlink(missing_ok=True)
        filled: dict[str, FileState] = {}
        noted = []
        made: set[str] = set()
        for origin, (path, source, state) in stored.items():
            if not _fits(origin, source):
                continue
            target = f"{tree}/{path}"
            if (folder := posixpath.dirname(target)) not in made:
                os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - for speed
                made.add(folder)
            with contextlib.suppress(FileNotFoundError, FileExistsError):  # `harness clean` may have removed it
                sharing(self.root)(origin, target)
                linked = os.lstat(target)
                if state.is_like(linked):
                    filled[path] = state
                    noted.append((linked, state.content))
        self.ledger.note(noted)
        return filled

    def unlink(self, tree: Path, sources: Sources, files: Container[str]) -> None:
        """Remove the unchanged `files` of a tree that is no longer used."""
        stored = ((path, origin) for origin, _, path, _, _ in self._stored(sources))
        self.ledger.unlink((f"{tree}/{path}", origin) for path, origin in stored if path in files)

    def _stored(self, sources: Sources) -> Iterator[tuple[str, str, str, str, FileState]]:
        """The bytecode that is known for the sources of a lock: file, name, path in a tree, source, and state."""
        for folder, shown in self._folders(sources):
            at, suffix = sources.at if shown == sources.packages else shown, f".{self.cache_tag}.pyc"
            for name, state in read_states(folder / _LEDGER).items():
                yield (
                    f"{folder}/{name}",
                    name,
                    f"{_inside(shown)}/{name}",
                    f"{at}/{name.removesuffix(suffix)}.py",
                    state,
                )

    def learn(
        self,
        fresh: Iterable[str],
        sources: Sources,
        manifest: Manifest,
        *,
        python: Path,
        scratch: Path,
        cancel: threading.Event | None = None,
    ) -> int:
        """Compile the modules that a run compiled (`fresh`: paths in its tree); returns how many were new.

        Each source must match `manifest`, except the standard library. `python` is the interpreter outside of any
        environment, `scratch` a folder for temporary files.
        """
        owners = manifest.owners()
        targets = (self._target(path, sources, manifest, owners) for path in fresh)
        wanted = [target for target in targets if target is not None]
        if not wanted:
            return 0
        order, done, output = scratch / "compile.json", scratch / "compiled.json", scratch / "compile.log"
        jobs = [(one.source, one.digest, f"{one.folder}/{one.name}") for one in wanted]
        order.write_text(json.dumps(jobs), encoding="utf-8")
        run_guarded(
            [python, "-I", "-S", "-B", _COMPILE, order, done],
            env={"PATH": os.defpath},
            cwd=scratch,
            limits=Limits(_LONGEST_S),
            output=output,
            cancel=cancel,
        )
        if not done.is_file():
            return 0
        made = set(json.loads(done.read_bytes()))
        with acquire(self.lock, cancel=cancel):
            for folder in {one.folder for one in wanted}:
                new, noted = {}, []
                for name in (one.name for one in wanted if one.folder == folder and f"{folder}/{one.name}" in made):
                    with contextlib.suppress(FileNotFoundError):  # removed by `harness clean`
                        found = os.lstat(folder / name)
                        new[name] = state_of(found, content_of(folder / name, found))
                        noted.append((found, new[name].content))
                write_whole(folder / _LEDGER, json.dumps({**read_states(folder / _LEDGER), **new}))
                self.ledger.note(noted)
        return len(made)

    def forget(self, wheels: Iterable[str]) -> None:
        """Remove the bytecode of wheels that were installed again: their sources have new time stamps."""
        for key in wheels:
            shutil.rmtree(self.root / self.cache_tag / key, ignore_errors=True)

    def _folders(self, sources: Sources) -> Iterator[tuple[Path, Path]]:
        """Folders of this store, each with the folder of its sources."""
        yield self._of_stdlib(sources.stdlib), sources.stdlib
        for pin in sources.lock.pins:
            if pin.sha256:
                yield self._of_wheel(pin), sources.packages

    def _of_wheel(self, pin: Pin) -> Path:
        return self.root / self.cache_tag / f"{pin.name}-{pin.version}-{pin.sha256[:16]}"

    def _of_stdlib(self, stdlib: Path) -> Path:
        address = hashlib.sha256(str(stdlib).encode()).hexdigest()[:16]
        return self.root / self.cache_tag / f"stdlib-{address}"

    def _target(self, path: str, sources: Sources, manifest: Manifest, owners: Mapping[str, str]) -> _Wanted | None:
        """What to compile for a file in a tree; None if its source is unknown."""
        suffix = f".{self.cache_tag}.pyc"
        if not path.endswith(suffix):
            return None
        source = f"/{path.removesuffix(suffix)}.py"
        for shown, is_stdlib in ((sources.packages, False), (sources.stdlib, True)):
            if not source.startswith(f"{shown}/") or (is_stdlib and "-packages/" in source):
                continue
            name = source.removeprefix(f"{shown}/")
            if is_stdlib:
                return _Wanted(source, "", self._of_stdlib(shown), compiled_name(name, self.cache_tag))
            inside = sources.at.relative_to(sources.at.parents[2]).as_posix()
            wheel = owners.get(f"{inside}/{name}")
            if wheel is None or name in sources.unclear:
                return None
            digest = manifest.files[f"{inside}/{name}"].content
            return _Wanted(source, digest, self.root / self.cache_tag / wheel, compiled_name(name, self.cache_tag))
        return None


class _Wanted(NamedTuple):
    """One module to compile: from a source with this SHA-256 ("": any) to `name` in a `folder`."""

    source: str
    digest: str
    folder: Path
    name: str


@define
class BytecodeTree:
    """A tree with the states of its files at the start; `fresh` are the files that the run added."""

    folder: Path
    store: BytecodeStore
    sources: Sources
    files: dict[str, FileState]
    record: Location | None = None
    fresh: tuple[str, ...] = ()
    is_spoilt: bool = False

    @classmethod
    @contextlib.contextmanager
    def opened(
        cls, store: BytecodeStore, sources: Sources, own: Path, *, shared: Location | None, without: Iterable[str] = ()
    ) -> Iterator[BytecodeTree]:
        """The lasting tree of `shared` if no other run uses it, else a new one at `own`."""
        if shared is not None:
            with contextlib.suppress(Busy):
                hold = acquire(shared.bytecode_lock, wait=False)
                try:
                    tree = cls(shared.pycache, store, sources, {}, shared)
                    tree.make_sound()
                    yield tree
                    if tree.is_spoilt:
                        tree.remove()
                    return
                finally:
                    hold.release()
        tree = cls(own, store, sources, store.fill(own, sources, without=without))
        try:
            yield tree
        finally:
            store.unlink(own, sources, tree.files)

    @classmethod
    def prepare(cls, store: BytecodeStore, sources: Sources, record: Location) -> None:
        """Fill the lasting tree of a new environment, so that its first run starts sooner."""
        with contextlib.suppress(Busy), acquire(record.bytecode_lock, wait=False):
            cls(record.pycache, store, sources, {}, record).make_sound()

    def make_sound(self) -> None:
        """Compare a lasting tree with its record, and refill it if it differs."""
        self.files = read_states(self.record.bytecode_path) if self.record is not None else {}
        differing, added = self._look()
        if not self.files or added or differing:
            self.remove()
            self.files = self.store.fill(self.folder, self.sources)
            self._write()
        # A sandbox shows only folders that exist.
        self.folder.mkdir(parents=True, exist_ok=True)

    def differences(self) -> list[str]:
        """Compare the tree after a run: the files that were changed or removed."""
        differing, added = self._look()
        self.fresh, self.is_spoilt = tuple(added), bool(differing)
        inside = _inside(self.sources.packages)
        return [f"{path.removeprefix(f'{inside}/')} (bytecode)" for path in differing]

    def keep(self, manifest: Manifest, python: Path, scratch: Path, cancel: threading.Event | None) -> None:
        """Compile what the run compiled, and remove what the run itself wrote."""
        if not self.fresh:
            return
        self.store.learn(self.fresh, self.sources, manifest, python=python, scratch=scratch, cancel=cancel)
        if self.record is not None:
            for path in self.fresh:
                (self.folder / path).unlink(missing_ok=True)
            self.files.update(self.store.fill(self.folder, self.sources, only=frozenset(self.fresh)))
            self._write()

    def remove(self) -> None:
        """Remove a tree with its record."""
        if self.record is not None:
            self.record.bytecode_path.unlink(missing_ok=True)
        remove_tree(self.folder)

    def _look(self) -> tuple[list[str], list[str]]:
        """Files that differ from the record, and new ones."""
        if not self.folder.is_dir():
            return list(self.files), []
        return self.store.ledger.compare(self.folder, self.files)

    def _write(self) -> None:
        if self.record is not None:
            write_whole(self.record.bytecode_path, json.dumps(self.files))


def compiled_name(source: str, cache_tag: str) -> str:
    """The name of the bytecode of a source (both end with their suffix)."""
    return f"{source.removesuffix('.py')}.{cache_tag}.pyc"


def _inside(folder: Path) -> str:
    """Where the bytecode of a folder is in a tree."""
    return folder.relative_to(folder.anchor).as_posix()


def _fits(compiled: str, source: str) -> bool:
    """Whether bytecode was compiled from this source, by the time stamp and size in its header (PEP 552)."""
    try:
        found = os.stat(source)  # noqa: PTH116 - for speed
        with open(compiled, "rb") as file:  # noqa: PTH123 - for speed
            header = file.read(_HEADER)
    except OSError:
        return False
    return header[8:] == struct.pack("<II", int(found.st_mtime) & 0xFFFFFFFF, found.st_size & 0xFFFFFFFF)
