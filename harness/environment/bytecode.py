"""Bytecode is compiled once per wheel, by the harness, and linked into the trees of later environments.

A run compiles what it imports into a tree next to its environment (PYTHONPYCACHEPREFIX). The harness only uses that
tree to learn which modules were needed. It compiles these from sources that match their wheel. Nothing that a run
wrote is executed by another run. Bytecode stays valid because environments share sources with the same time stamps.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import posixpath
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from harness.atomic import write_whole
from harness.environment.compiled_files import LEDGER, compiled_name, link_compiled, read_ledger, source_name
from harness.environment.file_locks import Busy, locked
from harness.environment.file_state import FileState, state_of
from harness.run.launch import Limits
from harness.run.process import run_guarded

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable, Iterator, Mapping

    from harness.environment.manifest import Manifest
    from harness.environment.workspace import Workspace
    from harness.model import Lock, Pin

_COMPILE = Path(__file__).with_name("compile_sources.py")
_LONGEST_S = 300.0


@frozen
class Sources:
    """Where the sources of a lock's wheels and of the standard library are.

    `packages` is the site-packages as a run sees it, `at` where it is now.
    """

    lock: Lock
    packages: Path
    at: Path
    stdlib: Path


@frozen
class BytecodeStore:
    """Compiled modules below `root`, by interpreter (`cache_tag` of sys.implementation) and wheel.

    Hold `lock` to add or remove files.
    """

    root: Path
    cache_tag: str
    lock: Path

    @classmethod
    def of(cls, workspace: Workspace, cache_tag: str) -> BytecodeStore:
        """The store of a workspace."""
        return cls(workspace.bytecode, cache_tag, workspace.locks / "bytecode.lock")

    def remove_all(self) -> None:
        """Remove the bytecode of every interpreter."""
        with locked(self.lock):
            shutil.rmtree(self.root, ignore_errors=True)

    def fill(
        self,
        tree: Path,
        sources: Sources,
        *,
        without: Iterable[str] = (),
        only: frozenset[str] | None = None,
    ) -> dict[str, FileState]:
        """Link known bytecode into a tree; returns the states of its files, by their paths in the tree.

        `without` are sources, relative to site-packages, that do not match their wheel; `only` limits it to some paths
        of the tree. A file that changed since it was compiled is removed from the store.
        """
        filled: dict[str, FileState] = {}
        stale = {compiled_name(name, self.cache_tag) for name in without}
        for folder, shown in self._folders(sources):
            ledger = read_ledger(folder)
            moved: dict[str, FileState] = {}
            prefix = shown.relative_to(shown.anchor).as_posix()
            made: dict[str, bool] = {}
            for name, state in ledger.items():
                parent = posixpath.dirname(name)
                target = f"{tree}/{prefix}/{name}"
                if only is not None and f"{prefix}/{name}" not in only:
                    continue
                if name in stale:
                    continue
                if parent not in made:
                    made[parent] = shown != sources.packages or (sources.at / parent).is_dir()
                    if made[parent]:
                        os.makedirs(posixpath.dirname(target), exist_ok=True)  # noqa: PTH103 - for speed
                if not made[parent]:
                    continue
                source = f"{sources.at if shown == sources.packages else shown}/{source_name(name, self.cache_tag)}"
                if (linked := link_compiled(f"{folder}/{name}", target, state, source)) is not None:
                    filled[f"{prefix}/{name}"] = linked
                    if linked.inode == state.inode:
                        moved[name] = linked
            self._note(folder, moved)
        return filled

    def ctimes(self, sources: Sources) -> dict[str, int]:
        """The change times that the last link from this store left on its files, by their paths in a tree."""
        known: dict[str, int] = {}
        for folder, shown in self._folders(sources):
            prefix = shown.relative_to(shown.anchor).as_posix()
            known |= {f"{prefix}/{name}": state.ctime_ns for name, state in read_ledger(folder).items()}
        return known

    def unlink(self, tree: Path, sources: Sources, files: Mapping[str, FileState]) -> None:
        """Remove the unchanged `files` of a tree that is no longer used, and record the change times that this leaves.

        Otherwise all of them would have to be read when they are linked again.
        """
        for folder, shown in self._folders(sources):
            prefix = shown.relative_to(shown.anchor).as_posix()
            moved: dict[str, FileState] = {}
            for name, state in read_ledger(folder).items():
                target = f"{tree}/{prefix}/{name}"
                if f"{prefix}/{name}" not in files:
                    continue
                with contextlib.suppress(OSError):
                    before = os.lstat(target)
                    if not state.is_like(before) or before.st_ctime_ns != state.ctime_ns:
                        continue
                    os.unlink(target)  # noqa: PTH108 - for speed
                    moved[name] = state_of(folder / name, state.content)
            self._note(folder, moved)

    def _note(self, folder: Path, moved: Mapping[str, FileState]) -> None:
        """Record the change times that new links left, so that nobody reads these files again."""
        with contextlib.suppress(Busy), locked(self.lock, wait=False):
            ledger = read_ledger(folder)
            newer = {
                name: state for name, state in moved.items() if name in ledger and state.is_newer_than(ledger[name])
            }
            if newer:
                write_whole(folder / LEDGER, json.dumps({**ledger, **newer}))

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
        order.write_text(json.dumps([entry.order for entry in wanted]), encoding="utf-8")
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
        with locked(self.lock, cancel=cancel):
            for folder in {entry.folder for entry in wanted}:
                new = {}
                for entry in wanted:
                    if entry.folder == folder and entry.target in made:
                        with contextlib.suppress(FileNotFoundError):  # removed by `harness clean`
                            new[entry.name] = state_of(entry.target)
                write_whole(folder / LEDGER, json.dumps({**read_ledger(folder), **new}))
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
                return _Wanted(self._of_stdlib(shown), compiled_name(name, self.cache_tag), source, "")
            inside = sources.at.relative_to(sources.at.parents[2]).as_posix()
            wheel = owners.get(f"{inside}/{name}")
            if wheel is None:
                return None
            digest = manifest.files[f"{inside}/{name}"].content
            return _Wanted(self.root / self.cache_tag / wheel, compiled_name(name, self.cache_tag), source, digest)
        return None


@frozen
class _Wanted:
    """One module to compile: into `folder` under `name`, from a source with this SHA-256 ("": any)."""

    folder: Path
    name: str
    source: str
    digest: str

    @property
    def target(self) -> str:
        return str(self.folder / self.name)

    @property
    def order(self) -> list[str]:
        return [self.source, self.digest, self.target]


def below(tree: Path, path: Path) -> Path:
    """Where an interpreter keeps the bytecode of a folder under a prefix (PYTHONPYCACHEPREFIX)."""
    return tree / path.relative_to(path.anchor)
