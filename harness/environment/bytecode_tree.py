"""The bytecode tree of one run (PYTHONPYCACHEPREFIX): filled by the harness, and compared after the run.

An environment has one lasting tree, which one run at a time uses. A concurrent run, or a run in a mixture, gets a tree
that is removed after the run.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

from attrs import define

from harness.atomic import write_whole
from harness.environment.file_locks import Busy, acquire
from harness.environment.file_state import FileState, compare, files_below, in_turn, settle
from harness.run.launch import remove_tree

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from harness.environment.bytecode import BytecodeStore, Sources
    from harness.environment.environment_record import EnvironmentRecord
    from harness.environment.manifest import Manifest


@define
class BytecodeTree:
    """A tree with the states of its files at the start; `fresh` are the files that the run added."""

    folder: Path
    store: BytecodeStore
    sources: Sources
    files: dict[str, FileState]
    record: EnvironmentRecord | None = None
    fresh: tuple[str, ...] = ()
    is_spoilt: bool = False

    @classmethod
    @contextlib.contextmanager
    def opened(
        cls,
        store: BytecodeStore,
        sources: Sources,
        own: Path,
        *,
        shared: EnvironmentRecord | None,
        without: Iterable[str] = (),
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
        with in_turn:
            filled = store.fill(own, sources, without=without)
        tree = cls(own, store, sources, filled)
        try:
            yield tree
        finally:
            store.unlink(own, sources, tree.files)

    @classmethod
    def prepare(cls, store: BytecodeStore, sources: Sources, record: EnvironmentRecord) -> None:
        """Fill the lasting tree of a new environment, so that its first run starts sooner."""
        with contextlib.suppress(Busy):
            hold = acquire(record.bytecode_lock, wait=False)
            try:
                cls(record.pycache, store, sources, {}, record).make_sound()
            finally:
                hold.release()

    def make_sound(self) -> None:
        """Compare a lasting tree with its record, and refill it if it differs."""
        with in_turn:
            self.files = self._recorded()
            added, differing, same = self._look()
            self.files.update(same)
            is_stale = not self.files or added or differing
            if is_stale:
                self.remove()
                self.files = self.store.fill(self.folder, self.sources)
        if is_stale or same:
            self._write()
        # A sandbox shows only folders that exist.
        self.folder.mkdir(parents=True, exist_ok=True)

    def differences(self) -> list[str]:
        """Compare the tree after a run: the files that were changed or removed."""
        added, differing, same = self._look()
        self.fresh, self.is_spoilt = tuple(added), bool(differing)
        self.files.update(same)
        inside = self.sources.packages.relative_to(self.sources.packages.anchor).as_posix()
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

    def _look(self) -> tuple[list[str], list[str], dict[str, FileState]]:
        """New files, changed files, and newer change times of unchanged ones."""
        with in_turn:
            seen = compare(self.files, files_below(self.folder) if self.folder.is_dir() else {})
            known = self.store.ctimes(self.sources) if seen.touched else {}
            same, differing = settle(self.folder, self.files, seen.touched, known.get)
        return seen.added, [*seen.changed, *seen.missing, *differing], same

    def _recorded(self) -> dict[str, FileState]:
        if self.record is None:
            return {}
        try:
            told = json.loads(self.record.bytecode_path.read_bytes())
            return {path: FileState(*row) for path, row in told.items()}
        except (OSError, ValueError, TypeError, AttributeError, RecursionError):
            return {}

    def _write(self) -> None:
        if self.record is not None:
            write_whole(self.record.bytecode_path, json.dumps(self.files))
