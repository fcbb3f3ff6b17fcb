"""The files of an environment, recorded when it was built, and compared before and after each run.

The record is kept outside of the environment, away from the code that runs in it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from harness.atomic import write_whole
from harness.environment.file_state import FileState, compare, files_below, settle, state_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

_SCHEMA = 1


@frozen
class Manifest:
    """The files of a folder by their relative paths, and which of them came from which wheel of the store.

    `lock` is the id of the lock that was installed, `kind` the store's name for its kind of interpreter.
    """

    lock: str
    kind: str
    files: Mapping[str, FileState]
    wheels: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, folder: Path, lock: str, kind: str, wheels: Mapping[str, Mapping[str, FileState]]) -> Manifest:
        """Record a newly built folder; `wheels` has the files of each wheel that are recorded already."""
        known = {path: state for files in wheels.values() for path, state in files.items()}
        files = {path: known[path] if path in known else state_of(folder / path) for path in files_below(folder)}
        named = {key: tuple(path for path in rows if path in files) for key, rows in wheels.items()}
        return cls(lock, kind, files, named)

    @classmethod
    def read(cls, path: Path) -> Manifest | None:
        """Read a manifest, None if there is no valid one."""
        try:
            told: dict[str, Any] = json.loads(path.read_bytes())
            if told["schema"] != _SCHEMA:
                return None
            files = {name: FileState(*row) for name, row in told["files"].items()}
            named = {key: tuple(names) for key, names in told["wheels"].items()}
            return cls(str(told["lock"]), str(told["kind"]), files, named)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None

    def write(self, path: Path) -> None:
        """Write it to a file. Raises `OSError`."""
        told = {"schema": _SCHEMA, "lock": self.lock, "kind": self.kind, "files": self.files, "wheels": self.wheels}
        write_whole(path, json.dumps(told))

    def owners(self) -> dict[str, str]:
        """The wheel of each file that came from the store."""
        return {path: key for key, paths in self.wheels.items() for path in paths}

    def wheels_with(self, paths: set[str]) -> list[str]:
        """The wheels that these files came from."""
        return [key for key, names in self.wheels.items() if not paths.isdisjoint(names)]

    def look(
        self, folder: Path, known_ctimes: Callable[[str], Mapping[str, int]], *, is_users: bool = False
    ) -> tuple[tuple[str, ...], Manifest]:
        """Compare a folder with the record: the paths that differ, and the manifest with newer change times.

        `known_ctimes` returns, for a wheel, the change times that the store left on its files. In a user's folder
        (`is_users`), other files do not count. Bytecode that a process wrote next to a source, despite
        PYTHONPYCACHEPREFIX, is removed.
        """
        try:
            found = files_below(folder)
        except OSError:
            return (".",), self
        seen = compare(self.files, found)
        same: dict[str, FileState] = {}
        changed = seen.changed
        if seen.touched:
            moved = set(seen.touched)
            hints: dict[str, int] = {}
            for key in self.wheels_with(moved):
                hints.update(known_ctimes(key))
            same, differing = settle(folder, self.files, seen.touched, hints.get)
            changed = [*changed, *differing]
        ours = {path.partition("/")[0] for path in self.files}
        added = []
        for path in seen.added:
            if path.endswith(".pyc") and "__pycache__" in path.split("/"):
                (folder / path).unlink(missing_ok=True)
            elif not is_users or path.partition("/")[0] in ours:
                added.append(path)
        differs = tuple(sorted([*changed, *seen.missing, *added]))
        return differs, evolve(self, files={**self.files, **same}) if same else self
