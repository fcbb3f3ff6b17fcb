"""Folders kept by a hash over their content: what first steps wrote, and inputs. Nothing in them ever changes.

A folder is checked before each use: completely by the first use of a process, and by the sizes and times of its files
from then on.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import field, frozen

from harness.environment.ledger import files_below
from harness.environment.workspace import acquire, claimed_folder
from harness.run.launch import remove_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.environment.workspace import Workspace

_READ_ONLY_FILE, _READ_ONLY_FOLDER, _EXECUTABLE = 0o444, 0o555, 0o111
_Look = dict[str, tuple[int, int]]


class NotKept(Exception):
    """A folder that can't be kept; the message is a short reason."""


@frozen
class Trees:
    """The folders in the cache of a workspace."""

    workspace: Workspace
    _seen: dict[str, _Look] = field(factory=dict, init=False, eq=False, repr=False)

    def keep(self, folder: Path) -> str:
        """Copy the content of a folder into the cache, and return its hash. Raises `NotKept` if it is empty."""
        if not any(folder.iterdir()):
            raise NotKept("nothing was written")
        digest = tree_digest(folder)
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
        if not digest or not place.is_dir():
            return None
        look = {path: (found.st_size, found.st_mtime_ns) for path, found in files_below(place).items()}
        if self._seen.get(digest) != look:
            try:
                if tree_digest(place) != digest:
                    return None
            except (NotKept, OSError):
                return None
            self._seen[digest] = look
        return place


def tree_digest(folder: Path) -> str:
    """Return a hash over the names and contents of all files below a folder, and over which of them can be executed.

    Raises `NotKept` for a link out of the folder, a pipe, or a socket.
    """
    root, digest = folder.resolve(), hashlib.sha256()
    for path in _walk(folder):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            target = path.readlink()
            if target.is_absolute() or not path.resolve().is_relative_to(root):
                raise NotKept(f"{name} is a link to a place elsewhere")
            told = f"link {target}"
        elif path.is_dir():
            told = "folder"
        elif path.is_file():
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            told = f"file {bool(path.stat().st_mode & _EXECUTABLE)} {content}"
        else:
            raise NotKept(f"{name} is neither a file nor a folder")
        digest.update(f"{name}\0{told}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _walk(folder: Path) -> Iterator[Path]:
    """Yield everything below a folder in a fixed order, without following links."""
    for path in sorted(folder.iterdir()):
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _walk(path)
