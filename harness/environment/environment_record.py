"""What is known about one built environment: its locks, its manifest, and whether it still matches.

Two locks guard it. Runs share `in_use`; building and removing need it exclusively. A process that may read the
environment shares `kept` for its lifetime; only removal needs that one exclusively.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from attrs import frozen

from harness.environment.file_locks import Busy, locked
from harness.environment.file_state import in_turn
from harness.environment.location import held_lock
from harness.environment.manifest import Manifest
from harness.environment.wheel_store import WheelStore
from harness.run.launch import remove_tree

if TYPE_CHECKING:
    from pathlib import Path

    from harness.environment.location import Location
    from harness.environment.workspace import Workspace


@frozen
class EnvironmentRecord:
    """The record of an environment, kept outside of it, by its name."""

    workspace: Workspace
    name: str

    @property
    def in_use(self) -> Path:
        """The lock that a run shares."""
        return self.workspace.locks / f"{self.name}.lock"

    @property
    def kept(self) -> Path:
        """The lock that a process shares while it may read the environment."""
        return self.workspace.locks / f"{self.name}.kept.lock"

    @property
    def bytecode_lock(self) -> Path:
        """The lock of the run that uses the bytecode tree."""
        return self.workspace.locks / f"{self.name}.bytecode.lock"

    @property
    def manifest_path(self) -> Path:
        """The path of the manifest."""
        return self.workspace.records / f"{self.name}.json"

    @property
    def bytecode_path(self) -> Path:
        """The path of the bytecode tree's record."""
        return self.workspace.records / f"{self.name}.bytecode.json"

    @property
    def pycache(self) -> Path:
        """The bytecode tree."""
        return self.workspace.pycache / self.name

    def is_built(self, location: Location, lock_id: str) -> bool:
        """Whether the environment of this lock was built there; it may have changed since."""
        return held_lock(location.folder) == lock_id and self.manifest_path.is_file()

    def sound(self, location: Location, lock_id: str, store: WheelStore) -> Manifest | None:
        """The manifest if every file of the environment matches it, else None."""
        manifest = Manifest.read(self.manifest_path) if self.is_built(location, lock_id) else None
        if manifest is None or manifest.lock != lock_id:
            return None
        with in_turn:
            differs, now = manifest.look(location.folder, store.ctimes, is_users=location.is_users)
        if differs:
            store.drop(manifest.wheels_with(set(differs)))
            return None
        # If the Python that it was built for is gone, the link to it is broken.
        if not location.python.exists():
            return None
        if now is not manifest:
            now.write(self.manifest_path)
            store.compared(now.wheels, now.files)
        return now

    def forget(self) -> None:
        """Remove the record; the next user rebuilds the environment."""
        for path in (self.manifest_path, self.bytecode_path):
            path.unlink(missing_ok=True)
        remove_tree(self.pycache)

    def remove(self, folder: Path) -> bool:
        """Remove the environment at `folder` unless it is in use; returns whether it was removed."""
        try:
            with locked(self.kept, wait=False), locked(self.in_use, wait=False):
                if not folder.is_dir():
                    return False
                self.discard(folder)
        except Busy:
            return False
        return True

    def discard(self, folder: Path) -> None:
        """Remove the environment at `folder`. Call it with the exclusive lock held."""
        # Renamed first: a half-removed folder must not be taken for an environment.
        doomed = self.workspace.building / f"{self.name}-removed"
        remove_tree(doomed)
        manifest = Manifest.read(self.manifest_path)
        with contextlib.suppress(FileNotFoundError):
            folder.rename(doomed)
        self.forget()
        if manifest is not None:
            files = {key: {path: manifest.files[path] for path in paths} for key, paths in manifest.wheels.items()}
            WheelStore.named(self.workspace, manifest.kind).unlinked(doomed, files)
        remove_tree(doomed)
