"""Where an environment lies: among all others under the id of its lock, or in a folder that the user named.

Under its lock it is never altered. A folder of the user's holds one lock at a time and is remade for another.
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
    """Where the environment of a lock is to be: its folder, and a name for its locks and records.

    `building` is where it is built, on the same file system; `is_users` says that the user named the folder.
    """

    folder: Path
    name: str
    building: Path
    is_users: bool = False

    @classmethod
    def under_lock(cls, workspace: Workspace, lock: Lock) -> Location:
        """The place that each lock has in the workspace."""
        return cls(workspace.environments / lock.id, lock.id, workspace.building)

    @classmethod
    def given(cls, folder: Path) -> Location:
        """A folder of the user's. Raises `UserMistake` if something else is in it, or it can't be written."""
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
        """Move a finished environment here, in place of the one that was there."""
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
    """The id of the lock that an environment of the harness holds, None if there is none."""
    try:
        return str(json.loads((folder / MARK).read_text(encoding="utf-8"))["lock"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def check_ours(folder: Path) -> None:
    """Raise `UserMistake` unless a folder may be replaced: absent, empty, the harness's own, or a bare environment."""
    if not folder.exists() or held_lock(folder) is not None:
        return
    if folder.is_dir() and (not any(folder.iterdir()) or _is_bare(folder)):
        return
    raise UserMistake(
        f"{folder} is not an environment that the harness made, and would be replaced",
        hint="--environment takes a folder that does not exist yet",
    )


def _is_bare(folder: Path) -> bool:
    """Whether it is a virtual environment in which nothing is installed but installers."""
    if not (folder / "pyvenv.cfg").is_file() or any(path.name not in _OF_A_BARE_VENV for path in folder.iterdir()):
        return False
    packages = [path.name for inside in folder.glob("lib/python*/site-packages") for path in inside.iterdir()]
    return all(re.split(r"[-.]", name)[0] in _OF_BARE_PACKAGES for name in packages)
