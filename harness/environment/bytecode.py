"""Bytecode is compiled once per wheel, by the harness, kept beside it, and linked into the trees of later environments.

A run compiles what it imports into a tree next to its environment (PYTHONPYCACHEPREFIX). The harness only uses that
tree to learn which modules were needed. It compiles these from sources that match their wheel. Nothing that a run
wrote is executed by another run. Bytecode stays valid because environments share sources with the same time stamps.

An environment has one lasting tree, which one run at a time uses. A concurrent run, or a run in a mixture, gets a tree
that is removed after the run. Before a run, a tree is made to hold exactly what is known.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import posixpath
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from attrs import define, frozen

from harness.atomic import write_whole
from harness.environment.manifest import FileState, Manifest, content_of, differing, read_states
from harness.environment.wheel_store import WheelStore, share
from harness.environment.workspace import Location
from harness.run.launch import Limits, remove_tree
from harness.run.locks import Busy, acquire
from harness.run.process import run_guarded

_COMPILE = Path(__file__).with_name("compile_sources.py")
_LONGEST_S = 300.0
_COMPILED, _LEDGER = "bytecode", "bytecode.json"
_HEADER = 16  # bytes


@frozen
class Sources:
    """Where the sources of an environment's wheels and of the standard library are.

    `packages` is the site-packages as a run sees it, `at` where it is now.
    """

    manifest: Manifest
    packages: Path
    at: Path
    stdlib: Path

    @property
    def inside(self) -> str:
        """Where the site-packages is in its environment, with a slash at the end."""
        return f"{self.at.relative_to(self.at.parents[2]).as_posix()}/"

    @property
    def unclear(self) -> frozenset[str]:
        """The files that several wheels have, by path relative to site-packages; their bytecode is not kept."""
        return frozenset(path.removeprefix(self.inside) for path in self.manifest.overwritten)


@frozen
class BytecodeStore:
    """Compiled modules of the wheels of a store, each beside its wheel, and of the standard library.

    They are of one kind of interpreter: `cache_tag` of sys.implementation.
    """

    wheels: WheelStore
    cache_tag: str

    def fill(self, tree: Path, sources: Sources, *, without: Iterable[str] = ()) -> dict[str, FileState]:
        """Make a tree hold the known bytecode of a lock, and nothing else; returns the states of its files by path.

        `without` are sources, relative to site-packages, that do not match their wheel. Bytecode of another source is
        left out, and a file that changed since it was compiled is removed from the store.
        """
        stale = {compiled_name(name, self.cache_tag) for name in (*without, *sources.unclear)}
        stored = {file.path: file for file in self._stored(sources) if file.name not in stale}
        filled = {path: file.state for path, file in stored.items()}
        try:
            # A sandbox shows only folders that exist.
            tree.mkdir(parents=True, exist_ok=True)
            missing, added = self.wheels.ledger.compare(tree, filled)
            for path in (*missing, *added):
                (tree / path).unlink(missing_ok=True)
        except OSError:
            remove_tree(tree)
            missing = list(filled)
        wanted = {stored[path].origin: stored[path].state for path in missing}
        for origin in differing(wanted, self.wheels.ledger.states(_lstats(wanted))):
            del wanted[origin]
            Path(origin).unlink(missing_ok=True)
        noted = []
        made: set[str] = set()
        for path in missing:
            origin, state, target = stored[path].origin, filled.pop(path), f"{tree}/{path}"
            if origin not in wanted or not _fits(origin, stored[path].source):
                continue
            if (folder := posixpath.dirname(target)) not in made:
                os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - for speed
                made.add(folder)
            with contextlib.suppress(FileNotFoundError, FileExistsError):  # `harness clean` may have removed it
                share(origin, target)
                linked = os.lstat(target)
                if state.is_like(linked):
                    filled[path] = state
                    noted.append((linked, state.content))
        self.wheels.ledger.note(noted)
        return filled

    def _stored(self, sources: Sources) -> Iterator[_Stored]:
        """The bytecode that is known for the sources of an environment."""
        suffix = f".{self.cache_tag}.pyc"
        entries = [(key, sources.packages, sources.at) for key in sources.manifest.wheels]
        for key, shown, at in [(_of_stdlib(sources.stdlib), sources.stdlib, sources.stdlib), *entries]:
            entry, inside = self.wheels.root / key, _inside(shown)
            for name, state in read_states(entry / _LEDGER).items():
                source = f"{at}/{name.removesuffix(suffix)}.py"
                yield _Stored(f"{entry}/{_COMPILED}/{name}", name, f"{inside}/{name}", source, state)

    def learn(
        self,
        fresh: Iterable[str],
        sources: Sources,
        python: Path,
        scratch: Path,
    ) -> None:
        """Compile the modules that a run compiled (`fresh`: paths in its tree), for later runs.

        Each source must match the manifest, except the standard library. `python` is the interpreter outside of any
        environment, `scratch` a folder for temporary files.
        """
        owners = sources.manifest.owners()
        targets = (self._target(path, sources, owners) for path in fresh)
        wanted = [target for target in targets if target is not None]
        if not wanted:
            return
        order, done, output = scratch / "compile.json", scratch / "compiled.json", scratch / "compile.log"
        jobs = [(target.source, target.digest, f"{target.entry}/{_COMPILED}/{target.name}") for target in wanted]
        order.write_text(json.dumps(jobs), encoding="utf-8")
        run_guarded(
            [python, "-I", "-S", "-B", _COMPILE, order, done],
            env={"PATH": os.defpath},
            cwd=scratch,
            limits=Limits(_LONGEST_S),
            output=output,
        )
        if not done.is_file():
            return
        made = set(json.loads(done.read_bytes()))
        with acquire(self.wheels.lock):
            for entry in {target.entry for target in wanted}:
                folder = f"{entry}/{_COMPILED}"
                new, noted = {}, []
                for name in (
                    target.name for target in wanted if target.entry == entry and f"{folder}/{target.name}" in made
                ):
                    with contextlib.suppress(FileNotFoundError):  # removed by `harness clean`
                        status = os.lstat(f"{folder}/{name}")
                        new[name] = FileState.of(status, content_of(f"{folder}/{name}", status))
                        noted.append((status, new[name].content))
                write_whole(entry / _LEDGER, json.dumps({**read_states(entry / _LEDGER), **new}))
                self.wheels.ledger.note(noted)

    def _target(self, path: str, sources: Sources, owners: Mapping[str, str]) -> _Wanted | None:
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
                return _Wanted(source, "", self.wheels.root / _of_stdlib(shown), compiled_name(name, self.cache_tag))
            key = owners.get(sources.inside + name)
            if key is None or name in sources.unclear:
                return None
            digest = sources.manifest.files[sources.inside + name].content
            return _Wanted(source, digest, self.wheels.root / key, compiled_name(name, self.cache_tag))
        return None


class _Wanted(NamedTuple):
    """One module to compile: from a source with this SHA-256 ("": any), as `name` of an `entry` of the wheel store."""

    source: str
    digest: str
    entry: Path
    name: str


class _Stored(NamedTuple):
    """A compiled module: its file `origin`, its name, its path in a tree, its source, and the state of the file."""

    origin: str
    name: str
    path: str
    source: str
    state: FileState


@define
class BytecodeTree:
    """A tree with the states of its files at the start; `fresh` are the files that the run added."""

    folder: Path
    store: BytecodeStore
    sources: Sources
    files: dict[str, FileState]
    fresh: tuple[str, ...] = ()

    @classmethod
    @contextlib.contextmanager
    def opened(
        cls, store: BytecodeStore, sources: Sources, own: Path, *, shared: Location | None, without: Iterable[str] = ()
    ) -> Iterator[BytecodeTree]:
        """The lasting tree of `shared` if no other run uses it, else a new one at `own`."""
        folder = own
        with contextlib.ExitStack() as stack:
            if shared is not None:
                with contextlib.suppress(Busy):
                    stack.enter_context(acquire(shared.bytecode_lock, wait=False))
                    folder = shared.pycache
            tree = cls(folder, store, sources, store.fill(folder, sources, without=without))
            yield tree
            for path in tree.fresh:  # the next run gets links to what was compiled for all
                (folder / path).unlink(missing_ok=True)

    def differences(self) -> list[str]:
        """Compare the tree after a run: the files that were changed or removed."""
        try:
            differs, added = self.store.wheels.ledger.compare(self.folder, self.files)
        except OSError:
            differs, added = list(self.files), []
        self.fresh = tuple(added)
        inside = _inside(self.sources.packages)
        return [f"{path.removeprefix(f'{inside}/')} (bytecode)" for path in differs]


def compiled_name(source: str, cache_tag: str) -> str:
    """The name of the bytecode of a source (both end with their suffix)."""
    return f"{source.removesuffix('.py')}.{cache_tag}.pyc"


def _of_stdlib(stdlib: Path) -> str:
    """The name of the entry with the bytecode of a standard library."""
    return f"stdlib-{hashlib.sha256(str(stdlib).encode()).hexdigest()[:16]}"


def _lstats(paths: Iterable[str]) -> dict[str, os.stat_result]:
    states = {}
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            states[path] = os.lstat(path)
    return states


def _inside(folder: Path) -> str:
    """Where the bytecode of a folder is in a tree."""
    return folder.relative_to(folder.anchor).as_posix()


def _fits(compiled: str, source: str) -> bool:
    """Whether bytecode was compiled from this source, by the time stamp and size in its header (PEP 552)."""
    try:
        status = os.stat(source)  # noqa: PTH116 - for speed
        with open(compiled, "rb") as file:  # noqa: PTH123 - for speed
            header = file.read(_HEADER)
    except OSError:
        return False
    return header[8:] == struct.pack("<II", int(status.st_mtime) & 0xFFFFFFFF, status.st_size & 0xFFFFFFFF)
