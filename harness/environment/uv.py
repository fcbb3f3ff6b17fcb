"""Calls uv: under a guard, quietly, with pip's index settings, and classifies its failures."""

from __future__ import annotations

import itertools
import mmap
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import uv as uv_package
from attrs import field, frozen

from harness.environment.index import index_urls
from harness.environment.installer_errors import doubted_projects, raise_surroundings
from harness.environment.pip_settings import PipSettings, read_pip_settings
from harness.errors import HarnessFault, IndexFault, NoNetwork, UserMistake
from harness.run.process import Limits, run_guarded

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable, Mapping, Sequence

_LONGEST_S = 3600.0
# Settings of the user's shell and project that must not affect what is built here.
_NOT_PASSED = (
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYTHONPATH",
    "PYTHONHOME",
    "UV_PROJECT_ENVIRONMENT",
    "UV_EXCLUDE_NEWER",
)


@frozen
class UvAnswer:
    """How a call ended: exit code 0 is success; `words` is what uv printed."""

    returncode: int
    words: str


def _binary() -> Path:
    try:
        return Path(uv_package.find_uv_bin())
    except FileNotFoundError as error:
        raise HarnessFault("the uv program is missing", hint="pip install --force-reinstall uv") from error


@frozen
class Uv:
    """The installed uv, with the user's index settings."""

    settings: PipSettings = field(factory=read_pip_settings)
    binary: Path = field(factory=_binary)
    extra_environment: Mapping[str, str] = field(factory=dict)
    _folders: list[Path] = field(factory=list, init=False, repr=False, eq=False)
    _shelves: list[str] = field(factory=list, init=False, repr=False, eq=False)

    @property
    def cache_folder(self) -> Path:
        """The folder where it unpacks wheels."""
        if named := self._environment().get("UV_CACHE_DIR"):
            return Path(named).absolute()
        if not self._folders:  # its configuration may name one; called once
            answer = self.call("cache", "dir", cwd=Path.cwd())
            named = answer.words.strip() if answer.returncode == 0 else ""
            self._folders.append(Path(named or Path.home() / ".cache" / "uv"))
        return self._folders[0]

    @property
    def wheels_folder(self) -> Path:
        """The part of uv's cache with unpacked wheels; other versions of uv use other folders."""
        if not self._shelves:
            with self.binary.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                at = content.find(b"wheels-v")  # no uv command prints it
                found = re.match(rb"wheels-v\d+", content[at : at + 20]) if at >= 0 else None
                self._shelves.append(found.group().decode() if found else "wheels")
        return self.cache_folder / self._shelves[0]

    @property
    def has_torch_backend(self) -> bool:
        """Whether uv is configured, by us or by the user, to take PyTorch's builds from another index."""
        return bool(self._environment().get("UV_TORCH_BACKEND"))

    def call(self, *arguments: str | Path, cwd: Path, cancel: threading.Event | None = None) -> UvAnswer:
        """Run uv. Raises `NoNetwork` and `NoSpace`; any other failure is in the answer.

        If uv finds too little for some projects, their pages are checked, and uv runs again without its cache of them:
        it treats a network's login page as a project without releases, and caches that for ten minutes.
        """
        answer = self._answer(arguments, cwd, cancel)
        doubted = doubted_projects(answer.words) if answer.returncode != 0 else ()
        if not doubted or "pip" not in arguments:
            return answer
        self._check_pages(doubted)
        refreshed = [word for name in doubted for word in ("--refresh-package", name)]
        return self._answer((*arguments, *refreshed), cwd, cancel)

    def _check_pages(self, projects: Iterable[str]) -> None:
        """Raise `IndexFault` if the answer for one of these projects is not an index page."""
        from harness.environment.index_page import read_page

        urls = index_urls(self.settings, {**os.environ, **self.extra_environment})
        for url, name in itertools.product(urls, projects):
            try:
                read_page(url, name)
            except IndexFault:
                raise
            except NoNetwork:  # uv reached the index with its own settings
                continue

    def _answer(self, arguments: Sequence[str | Path], cwd: Path, cancel: threading.Event | None) -> UvAnswer:
        with tempfile.NamedTemporaryFile(prefix="harness-uv-", suffix=".log") as log:
            argv = [str(self.binary), "--no-progress", "--color", "never", *map(str, arguments)]
            ended = run_guarded(
                argv,
                env=self._environment(),
                cwd=cwd,
                # To resolve, uv's threads mostly wake each other up; on one CPU that takes half of the CPU time.
                limits=Limits(wall_s=_LONGEST_S, one_cpu="compile" in arguments),
                output=Path(log.name),
                cancel=cancel,
            )
            words = Path(log.name).read_text(encoding="utf-8", errors="replace").strip()
        if ended.returncode != 0:
            raise_surroundings(words)
        return UvAnswer(ended.returncode, words)

    def find_python(self, asked: str | None) -> Path:
        """The path of an interpreter for a version; None: the base interpreter of the running one."""
        if asked is None:
            return Path(getattr(sys, "_base_executable", None) or sys.executable)
        answer = self.call("python", "find", "--no-project", "--system", asked, cwd=Path.cwd())
        path = Path(answer.words.splitlines()[-1]) if answer.returncode == 0 and answer.words else None
        if path is None or not path.exists():
            raise UserMistake(
                f"no Python {asked} on this machine",
                hint=f"--python takes a path too; uv python install '{asked}' installs one",
            )
        return path

    def _environment(self) -> dict[str, str]:
        environ = {
            key: value for key, value in os.environ.items() if key not in _NOT_PASSED and not key.startswith("GIT_")
        }
        return {**environ, **self.settings.as_uv_environment(environ), **self.extra_environment}


def spoken_by_uv(words: str) -> str:
    """The resolver's message on one line, without its marks."""
    lines = (re.sub(r"^(error|cause|hint|x|\u00d7|╰─▶|├─▶)\s*:?\s*", "", line.strip()) for line in words.splitlines())
    text = " ".join(line for line in lines if line)
    return re.sub(r"^No solution found when resolving dependencies:?\s*", "", text)
