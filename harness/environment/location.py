"""Where an environment is: in the cache, named by its lock, or in a folder that the user named.

In the cache it never changes. A user's folder holds one lock at a time; another lock replaces it.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from harness.environment.file_locks import claimed_folder, remove_abandoned
from harness.errors import UserMistake

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from harness.environment.workspace import Workspace
    from harness.model import Lock

MARK = "harness.json"  # says which lock an environment holds
_OF_A_BARE_VENV = {"bin", "lib", "lib64", "include", "share", "pyvenv.cfg", ".gitignore", "CACHEDIR.TAG", ".lock"}
_OF_BARE_PACKAGES = {
    *("pip", "setuptools", "wheel", "pkg_resources"),
    *("_distutils_hack", "distutils", "_virtualenv", "__pycache__"),
}


@frozen
class Location:
    """The location of an environment: its folder, and a name for its locks and records.

    `building` is where it is built, on the same file system; `is_users` says that the user named the folder.
    """

    folder: Path
    name: str
    building: Path
    is_users: bool = False

    @classmethod
    def under_lock(cls, workspace: Workspace, lock: Lock) -> Location:
        """The location of a lock in the cache."""
        return cls(workspace.environments / lock.id, lock.id, workspace.building)

    @classmethod
    def given(cls, folder: Path) -> Location:
        """A folder that the user named. Raises `UserMistake` if it holds something else, or can't be written."""
        folder = folder.expanduser().absolute()
        check_ours(folder)
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserMistake(f"can't create {folder}: {error.strerror}") from error
        return cls(folder, f"at-{hashlib.sha256(str(folder).encode()).hexdigest()[:20]}", folder.parent, is_users=True)

    @property
    def python(self) -> Path:
        """The interpreter of the finished environment."""
        return self.folder / "bin" / "python"

    def partial(self) -> AbstractContextManager[Path]:
        """An empty folder to build in, removed at the end unless it was `put`."""
        if not self.is_users:
            return claimed_folder(self.building, f"{self.name}-")
        prefix = f".{self.folder.name}-building-"
        remove_abandoned(self.building, prefix)
        return claimed_folder(self.building, prefix)

    def put(self, partial: Path) -> None:
        """Move a finished environment here, and remove the previous one."""
        if not self.folder.exists():
            partial.rename(self.folder)
            return
        if self.is_users:
            check_ours(self.folder)
        former = partial.with_name(f"{partial.name}-former")
        self.folder.rename(former)
        partial.rename(self.folder)
        shutil.rmtree(former, ignore_errors=True)


def held_lock(folder: Path) -> str | None:
    """The id of the lock that a folder of the harness holds, None for any other folder."""
    try:
        return str(json.loads((folder / MARK).read_text(encoding="utf-8"))["lock"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def check_ours(folder: Path) -> None:
    """Raise `UserMistake` unless a folder may be replaced: missing, empty, ours, or a bare environment."""
    if not folder.exists() or held_lock(folder) is not None:
        return
    if folder.is_dir() and (not any(folder.iterdir()) or _is_bare(folder)):
        return
    raise UserMistake(
        f"{folder} was not created by the harness and would be overwritten",
        hint="--environment takes a folder that does not exist yet",
    )


def _is_bare(folder: Path) -> bool:
    """Whether it is a virtual environment with no packages but installers."""
    if not (folder / "pyvenv.cfg").is_file() or any(path.name not in _OF_A_BARE_VENV for path in folder.iterdir()):
        return False
    packages = [path.name for inside in folder.glob("lib/python*/site-packages") for path in inside.iterdir()]
    return all(re.split(r"[-.]", name)[0] in _OF_BARE_PACKAGES for name in packages)


def site_packages(folder: Path, built_at: Path | None = None) -> Path:
    """The site-packages of an environment; `built_at` is where it is now, if it was not moved yet."""
    found = next((built_at or folder).glob("lib/python*/site-packages"))
    return folder / found.relative_to(built_at or folder)
