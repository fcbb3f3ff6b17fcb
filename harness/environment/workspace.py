"""The folders that the harness keeps between runs. You can delete them at any time."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import platformdirs
from attrs import frozen

from harness.errors import NoSpace


@frozen
class Workspace:
    """One cache folder: environments, bytecode, index pages, and scratch folders of running probes."""

    root: Path

    @classmethod
    def default(cls) -> Workspace:
        """The folder named by HARNESS_CACHE_DIR, else the user's cache folder of this platform."""
        named = os.environ.get("HARNESS_CACHE_DIR")
        return cls(Path(named).expanduser().absolute() if named else platformdirs.user_cache_path("regression-harness"))

    @property
    def environments(self) -> Path:
        """Finished environments, one folder per lock."""
        return self._folder("environments")

    @property
    def building(self) -> Path:
        """Environments under construction; nothing in it is used."""
        return self._folder("building")

    @property
    def locks(self) -> Path:
        """Lock files, so that two harnesses do not do the same work."""
        return self._folder("locks")

    @property
    def wheels(self) -> Path:
        """Installed wheels, one folder each, from which environments are linked."""
        return self._folder("wheels")

    @property
    def records(self) -> Path:
        """The manifests of finished environments."""
        return self._folder("records")

    @property
    def bytecode(self) -> Path:
        """Compiled modules, one folder per wheel and interpreter."""
        return self._folder("bytecode")

    @property
    def pycache(self) -> Path:
        """Trees of linked bytecode, one per environment, that interpreters read and extend."""
        return self._folder("pycache")

    @property
    def index(self) -> Path:
        """Cached lists of releases."""
        return self._folder("index")

    @property
    def clones(self) -> Path:
        """Bare clones of repositories, one per URL, and folders of commits."""
        return self._folder("clones")

    @property
    def imports(self) -> Path:
        """Import graphs of traced runs."""
        return self._folder("imports")

    @property
    def scratch(self) -> Path:
        """Scratch folders of running probes; see `harness.environment.watched`."""
        return self._folder("scratch")

    @property
    def projects(self) -> Path:
        """Copies of users' projects with their built files, one folder per content."""
        return self._folder("projects")

    def _folder(self, name: str) -> Path:
        folder = self.root / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise NoSpace(f"no space left for {folder}", hint="harness clean --all frees what it keeps") from error
            raise NoSpace(
                f"can't create the cache folder {folder}: {error.strerror}",
                hint="HARNESS_CACHE_DIR names another one",
            ) from error
        return folder
