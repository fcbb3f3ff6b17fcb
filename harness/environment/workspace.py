"""The folders that the harness keeps between runs, and the locks that guard them.

You can delete the cache folder at any time. An environment in it is named by its lock and never changes; a folder of
the user gets one lock at a time, and another lock replaces it.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from pathlib import Path
from typing import Any

from attrs import frozen

from harness.atomic import write_whole
from harness.errors import NoSpace, UserMistake
from harness.model import Lock
from harness.records import read_record, write_record
from harness.run.launch import remove_tree
from harness.run.locks import Busy, acquire

MARK = "harness.json"  # says which lock a folder of the user holds
# Backup programs leave out folders with this file (https://bford.info/cachedir/). The second line is the harness's own.
_TAG = "CACHEDIR.TAG"
_TAGGED = (
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# The cache of regression-harness, which removes what it finds in the folders beside this file.\n"
)
_OF_A_BARE_VENV = {"bin", "lib", "lib64", "include", "share", "pyvenv.cfg", ".gitignore", "CACHEDIR.TAG", ".lock"}
_OF_BARE_PACKAGES = {
    *("pip", "setuptools", "wheel", "pkg_resources"),
    *("_distutils_hack", "distutils", "_virtualenv", "__pycache__"),
}


class _Folder:
    """A folder of the cache, named like its attribute and created when it is used."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, workspace: Workspace, owner: type) -> Path:
        folder = workspace.root / self.name
        try:
            if not folder.is_dir():
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            hint = "harness clean frees what it keeps; HARNESS_CACHE_DIR names another folder"
            raise NoSpace(f"can't create the cache folder {folder}: {error.strerror}", hint=hint) from error
        return folder


@frozen
class Workspace:
    """One cache folder: environments, bytecode, index pages, and scratch folders of running probes."""

    root: Path

    environments = _Folder()  # finished environments, one folder per lock
    building = _Folder()  # environments under construction; nothing in it is used
    aliases = _Folder()  # other paths to environments, one folder each
    locks = _Folder()  # lock files, so that two harnesses do not do the same work
    built = _Folder()  # wheels built from source distributions, one folder each
    wheels = _Folder()  # installed wheels and their bytecode, one folder each, from which environments are linked
    records = _Folder()  # the manifests of finished environments
    pycache = _Folder()  # trees of linked bytecode, one per environment, that interpreters read and extend
    index = _Folder()  # cached lists of releases
    downloads = _Folder()  # wheels that uv is unpacking, one folder per lock, until they are stored
    clones = _Folder()  # bare clones of repositories, one per URL, and folders of commits
    imports = _Folder()  # import graphs of traced runs
    stubs = _Folder()  # what replaces the user's Python tools on the PATH of runs, one folder per set of them
    scratch = _Folder()  # scratch folders of running probes; see `harness.environment.watched`
    trees = _Folder()  # what first steps of repros wrote, and inputs, one read-only folder per content
    results = _Folder()  # the paths of results folders, one file each
    projects = _Folder()  # copies of users' projects with their built files, one folder per content

    @classmethod
    def default(cls) -> Workspace:
        """The folder named by HARNESS_CACHE_DIR, else the user's cache folder of this platform."""
        if named := os.environ.get("HARNESS_CACHE_DIR"):
            return cls(Path(named).expanduser().absolute())
        usual = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
        return cls(Path(os.environ.get("XDG_CACHE_HOME") or usual, "regression-harness").absolute())

    @classmethod
    def opened(cls) -> Workspace:
        """The default folder, marked as the harness's own, so that what is in it may be removed.

        Raises `UserMistake` for a folder with files of the user, with links, or with a colon in its path, which no list
        of folders (PATH) can name, and `NoSpace` if it can't be written.
        """
        workspace = cls.default()
        root, tag = workspace.root, workspace.root / _TAG
        if os.pathsep in str(root):
            raise UserMistake(
                f"the path of the cache has a colon, which separates the folders of PATH: {root}",
                hint="HARNESS_CACHE_DIR names another folder",
            )
        try:
            if not _is_tagged(tag) and _is_used(root) and not _is_tagged(tag):  # another process may have begun
                raise UserMistake(
                    f"{root} has files that are not of the harness's cache", hint="HARNESS_CACHE_DIR takes a new folder"
                )
            if not _is_tagged(tag):
                write_whole(tag, _TAGGED)
        except OSError as error:
            hint = "HARNESS_CACHE_DIR names another folder"
            raise NoSpace(f"can't write to the cache folder {root}: {error.strerror}", hint=hint) from error
        if linked := next((root / name for name in _FOLDERS if (root / name).is_symlink()), None):
            raise UserMistake(f"{linked} is a link", hint="HARNESS_CACHE_DIR puts the whole cache elsewhere")
        return workspace


_FOLDERS = {name for name, value in vars(Workspace).items() if isinstance(value, _Folder)}


def _is_tagged(tag: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return tag.read_text(encoding="utf-8", errors="replace") == _TAGGED
    return False


def _is_used(root: Path) -> bool:
    """Whether a folder has other entries than a cache that an older harness left without a mark."""
    names = {path.name for path in root.iterdir()} if root.exists() else set()
    names = {name for name in names if not name.startswith((_TAG, f".{_TAG}", "lost+found"))}
    return bool(names) and not (names <= _FOLDERS and (root / "locks" / "wheels.lock").is_file())


class _Kept:
    """A path of an environment: in a folder of the cache, named after it."""

    def __init__(self, folder: str, suffix: str = "") -> None:
        self._folder, self._suffix = folder, suffix

    def __get__(self, location: Location, owner: type) -> Path:
        parent: Path = getattr(location.workspace, self._folder)
        return parent / f"{location.name}{self._suffix}"


@frozen
class Location:
    """Where an environment is, and by its name what is kept outside of it: its record, its locks, its bytecode.

    Runs share the lock `in_use`; building and removing need it exclusively. A process that may read the environment
    shares `readers_lock` for its lifetime; only removal needs that one exclusively. The run that uses the bytecode tree
    `pycache` has `bytecode_lock`. `aliases` are other paths to it.
    """

    workspace: Workspace
    name: str

    folder = _Kept("environments")
    in_use = _Kept("locks", ".lock")
    readers_lock = _Kept("locks", ".kept.lock")
    bytecode_lock = _Kept("locks", ".bytecode.lock")
    manifest_path = _Kept("records", ".json")
    aliases = _Kept("aliases")
    pycache = _Kept("pycache")

    @property
    def python(self) -> Path:
        """The interpreter of the finished environment."""
        return self.folder / "bin" / "python"

    def remove(self) -> bool:
        """Remove the environment unless it is in use; returns whether it was removed."""
        try:
            with acquire(self.readers_lock, wait=False), acquire(self.in_use, wait=False):
                if not self.folder.is_dir():
                    return False
                self.discard()
        except Busy:
            return False
        return True

    def discard(self) -> None:
        """Remove the environment. Call it with the exclusive lock held."""
        # Renamed first: a half-removed folder must not be taken for an environment.
        doomed = self.workspace.building / f"{self.name}-removed"
        remove_tree(doomed)
        with contextlib.suppress(FileNotFoundError):
            self.folder.rename(doomed)
        self.manifest_path.unlink(missing_ok=True)
        remove_tree(self.pycache)
        remove_tree(self.aliases)
        remove_tree(doomed)


def write_mark(folder: Path, lock: Lock) -> None:
    """Say in an environment for the user which lock it holds, and what the harness put there. Raises `OSError`."""
    entries = sorted([MARK, *(path.name for path in folder.iterdir())])
    write_record(folder / MARK, {"lock": lock.id, "python": lock.python, "entries": entries})


def held_lock(folder: Path) -> str | None:
    """The id of the lock that the harness installed into a folder of the user.

    None for any other folder, and for one to which the user has added something.
    """
    mark = read_record(folder / MARK, dict[str, Any]) or {}
    lock, entries = mark.get("lock"), mark.get("entries")
    if not isinstance(lock, str) or not isinstance(entries, list) or not (folder / "pyvenv.cfg").is_file():
        return None
    return lock if all(path.name in entries for path in folder.iterdir()) else None


def check_ours(folder: Path) -> None:
    """Raise `UserMistake` unless a folder may be replaced: missing, empty, ours, or a bare environment."""
    if not folder.is_symlink():
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
    packages = next((built_at or folder).glob("lib/python*/site-packages"))
    return folder / packages.relative_to(built_at or folder)


def module_of(path: str) -> str:
    """The dotted name of the module at a path relative to site-packages."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
