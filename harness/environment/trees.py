"""Folders kept by a hash over their content: what first steps wrote, and inputs. Nothing in them ever changes.

A folder is checked before each use; the ledger knows the contents of files that did not change since they were read.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from harness.environment.manifest import UNREADABLE, Ledger, files_below
from harness.environment.workspace import Workspace
from harness.run.launch import remove_tree
from harness.run.locks import acquire, claimed_folder

if TYPE_CHECKING:
    from collections.abc import Iterator


_READ_ONLY_FILE, _READ_ONLY_FOLDER, _EXECUTABLE = 0o444, 0o555, 0o111


class NotKept(Exception):
    """A folder that can't be kept; the message is a short reason."""


@frozen
class Trees:
    """The folders in the cache of a workspace."""

    workspace: Workspace

    def keep(self, folder: Path) -> str:
        """Copy the content of a folder into the cache, and return its hash. Raises `NotKept` if it is empty."""
        if not any(folder.iterdir()):
            raise NotKept("nothing was written")
        digest = self.digest(folder)
        with acquire(self.workspace.locks / f"tree-{digest[:32]}.lock"):
            if self.folder(digest) is None:
                self._put(folder, digest)
        return digest

    def _put(self, folder: Path, digest: str) -> None:
        """Put a read-only copy of a folder in place of what is missing or was changed."""
        place = self.workspace.trees / digest
        with claimed_folder(self.workspace.building, f"tree-{digest[:12]}-") as partial:
            inside = partial / "tree"
            shutil.copytree(folder, inside, symlinks=True)
            for path in _walk(inside):
                if not path.is_symlink():
                    keeps = path.stat().st_mode & _EXECUTABLE if path.is_file() else 0
                    path.chmod(_READ_ONLY_FILE | keeps if path.is_file() else _READ_ONLY_FOLDER)
            if place.is_dir():
                place.chmod(0o700)
                remove_tree(place)
            inside.rename(place)
            place.chmod(_READ_ONLY_FOLDER)

    def folder(self, digest: str) -> Path | None:
        """Return the folder with this hash, or None if it is not in the cache or was changed there."""
        place = self.workspace.trees / digest
        with contextlib.suppress(NotKept, OSError):
            if digest and self.digest(place) == digest:
                return place
        return None

    def digest(self, folder: Path) -> str:
        """Return a hash over the names and contents of all files below a folder, and over which can be executed.

        Raises `NotKept` for a link out of the folder, a pipe, or a socket, and `OSError`.
        """
        root, digest = folder.resolve(), hashlib.sha256()
        states = Ledger.of(self.workspace).states(files_below(folder), folder)
        for path in _walk(folder):
            name = path.relative_to(folder).as_posix()
            if path.is_symlink():
                target = path.readlink()
                if target.is_absolute() or not path.resolve().is_relative_to(root):
                    raise NotKept(f"{name} is a link to a place elsewhere")
                state = f"link {target}"
            elif path.is_dir():
                state = "folder"
            elif name in states and states[name].content != UNREADABLE:
                state = f"file {bool(states[name].mode & _EXECUTABLE)} {states[name].content}"
            else:
                raise NotKept(f"{name} {UNREADABLE}")
            digest.update(f"{name}\0{state}\0".encode("utf-8", "surrogateescape"))
        return digest.hexdigest()


def _walk(folder: Path) -> Iterator[Path]:
    """Yield everything below a folder in a fixed order, without following links."""
    for path in sorted(folder.iterdir()):
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _walk(path)
