"""A user's project: a fresh copy of the files tracked by git, built once, with its own requirements."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen
from filelock import FileLock
from packaging.requirements import Requirement

from harness.errors import UnknownProject, UserMistake
from harness.model import normalized_name
from harness.model.text import listed
from harness.request.lockfiles import environment_of
from harness.request.project_build import INSTALLABLE, Wheels
from harness.request.project_files import content_digest, copy_files, files_of, last_commit, version_of_tag
from harness.request.project_requirements import Wanted, requirements_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.environment import Index, Interpreter, Uv, Workspace


# Projects that publish their wheels under another name.
_WITH_WHEELS = {"psycopg2": "psycopg2-binary"}


@frozen
class Project:
    """A project as used by a probe.

    Each run gets a copy of `tree`; `built` is the unpacked wheel, None if it could not be built; `told` are sentences
    about the choices made. `requirements` are its own, with the chosen extras and groups.
    """

    root: Path
    digest: str
    tree: Path
    built: Path | None
    name: str = ""
    requirements: tuple[str, ...] = ()
    told: tuple[str, ...] = ()

    @property
    def search_path(self) -> tuple[str, ...]:
        """Where its modules are found: the built ones first, then the copy itself."""
        built = [str(self.built)] if self.built is not None else []
        return (*built, ".", *(["src"] if (self.tree / "src").is_dir() else []))


def find_project(start: Path) -> Path | None:
    """Return the nearest project folder from `start` upwards, or None.

    The search ends at the root of a git repository and at the home folder.
    """
    for folder in (start, *start.parents):
        if any((folder / name).is_file() for name in INSTALLABLE) or any(folder.glob("requirements*.txt")):
            return folder
        if (folder / ".git").exists() or folder == Path.home():
            return None
    return None


def _name(text: str) -> str:
    return normalized_name(Requirement(text).name)


@frozen
class Projects:
    """Reads projects and builds them, each content once.

    With an `index`, test requirements without a file for this machine are left out.
    """

    workspace: Workspace
    uv: Uv
    interpreter: Interpreter
    index: Index | None = None

    def read(
        self,
        root: Path,
        extras: Iterable[str] = (),
        groups: Iterable[str] = (),
        *,
        find: bool = False,
        for_tests: bool = True,
        as_of: str = "",
        day: str = "",
    ) -> Project:
        """Copy and build a project and read its requirements; with `find` also those of its tests, from any file.

        Without `for_tests` no extra or group for tests is chosen. It is built with the packages of a day (ISO 8601):
        `as_of`, else that of its last commit, else `day`. Raises `UserMistake` if the folder is missing or
        lacks what was named.
        """
        root = root.expanduser().absolute()
        if not root.is_dir():
            raise UserMistake(f"{root} is not a folder", hint="--project takes a project's folder")
        files = sorted(files_of(root))
        if not files:
            raise UserMistake(f"{root} has no files tracked by git", hint="git add its files first")
        digest = content_digest(root, files)
        home = self.workspace.projects / digest
        wheels = Wheels(self.workspace, self.uv, self.interpreter)
        with FileLock(self.workspace.locks / f"project-{digest}.lock"):
            if not (home / "tree").is_dir():
                copy_files(root, files, home)
            built, words = wheels.unpacked(home, as_of or last_commit(root) or day, version_of_tag(root))
        wanted = Wanted(tuple(extras), tuple(groups), find, for_tests)
        found = requirements_of(home / "tree", built, wanted, environment_of(self.interpreter.version))
        told = found.told
        if words:
            told = (*told, f"could not be built, so its modules are imported from the folder: {words}")
        missing = [text for text in found.for_tests if not self._can_be_had(text)]
        if missing:
            told = (*told, f"not installed for the tests, because there is no file for this machine: {listed(missing)}")
        kept = (text for text in found.requirements if text not in missing)
        requirements = (*kept, *(_WITH_WHEELS[name] for name in map(_name, missing) if name in _WITH_WHEELS))
        return Project(root, digest, home / "tree", built, found.name, requirements, told)

    def _can_be_had(self, text: str) -> bool:
        """Whether the index has a usable release, or no compiled wheel at all: such sources rarely need a compiler."""
        if self.index is None:
            return True
        try:
            releases = self.index.releases(Requirement(text).name)
        except UnknownProject:
            return False
        version, tags = self.interpreter.version, frozenset(self.interpreter.wheel_tags())
        compiled = any(not wheel.endswith("-any.whl") for release in releases for wheel in release.wheels)
        return not compiled or any(release.left_out_because(python=version, tags=tags) is None for release in releases)
