"""Builds a wheel from source without network and without the user's indexes.

What a build requires is resolved and fetched outside of the build, as wheels, and the build is offered only that
folder. uv names what is missing, also what only the backend asks for, so it is fetched and the build starts again. A
requirement that has no wheel is built in the same way.
"""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen
from packaging.requirements import InvalidRequirement, Requirement

from harness.environment.attempt import project_of, projects_without_wheels
from harness.environment.index import download
from harness.environment.pylock import best_wheel, file_name
from harness.environment.uv import Uv, UvAnswer

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable, Sequence

    from harness.environment.interpreter import Interpreter

_ROUNDS = 5  # times that a build may ask for more
_DEEPEST = 3  # requirements of requirements that have no wheel
_WANTED = re.compile(r"No solution found when resolving:((?:[\s│|]*`[^`]+`,?)+)")
_QUOTED = re.compile(r"`([^`]+)`")
_OFFLINE = re.compile(
    r"Temporary failure in name resolution|Name or service not known|Network is unreachable|[Cc]ould(?: no|n')t resolve"
)
_NO_NETWORK = "error: builds have no network, and this one wants it: --network lets it have it"


@frozen
class OfflineBuild:
    """Builds for one interpreter. `dated` are options of uv that limit what a build may require to a day."""

    uv: Uv
    interpreter: Interpreter
    dated: tuple[str, ...] = ()
    depth: int = 0

    def wheel(
        self, source: Path, output: Path, *options: str, cancel: threading.Event | None = None
    ) -> tuple[Path | None, UvAnswer]:
        """Build a folder or an archive into `output`, below the folder of `source`; None with uv's words if it fails.

        Raises `NoNetwork`, `NoSpace`, `IndexFault`, `Cancelled` and `UserMistake`.
        """
        here = output.parent
        links = here / f"requirements-{self.depth}"
        shutil.rmtree(links, ignore_errors=True)  # those of another day
        links.mkdir()
        words = ["build", "--wheel", "--no-sources", "--no-create-gitignore", "--offline", "--no-index"]
        words += ["--find-links", str(links), "--python", str(self.interpreter.path), "--out-dir", str(output)]
        before = set(output.glob("*.whl"))
        known: tuple[str, ...] = ()
        for _ in range(_ROUNDS):
            answer = self.uv.call(*words, *options, source, cwd=here, cancel=cancel)
            wheel = next((path for path in output.glob("*.whl") if path not in before), None)
            if answer.returncode == 0 and wheel is not None:
                return wheel, answer
            wanted = _wanted(answer.words)
            if not wanted or wanted == known:
                break
            failed = self._fetch(wanted, links, cancel)
            if failed is not None:
                return None, failed
            known = wanted
        if _OFFLINE.search(answer.words) and not self.uv.builds.has_network:
            answer = evolve(answer, words=f"{answer.words}\n{_NO_NETWORK}")
        return None, answer

    def _fetch(self, wanted: Sequence[str], links: Path, cancel: threading.Event | None) -> UvAnswer | None:
        """Put wheels of these requirements, and of what they require, into a folder; the failure, if there is one."""
        for text in wanted:
            try:
                is_release = Requirement(text).url is None
            except InvalidRequirement:
                is_release = False
            if not is_release:
                return UvAnswer(1, f"error: the build requires {text}, and only releases are fetched for a build")
        own: tuple[str, ...] = ()
        while True:
            answer, files = self._resolved(wanted, links, own, cancel)
            if answer.returncode == 0:
                break
            more = sorted(projects_without_wheels(answer.words).difference(own))
            if not more or self.depth == _DEEPEST:
                return answer
            for name in more:
                text = next((text for text in wanted if project_of(text) == name), name)
                failed = self._build_requirement(text, links, cancel)
                if failed is not None:
                    return failed
            own = (*own, *more)
        for file in files:
            if not (links / file.name).is_file():
                download(self.uv.settings, file.url, links / file.name, file.sha256)
        return None

    def _resolved(
        self, wanted: Iterable[str], links: Path, own: Sequence[str], cancel: threading.Event | None
    ) -> tuple[UvAnswer, list[IndexFile]]:
        """Resolve requirements to wheels; `own` are projects that were built here, whose wheels are in `links`."""
        folders = (*self.uv.find_links, str(links)) if own else ()
        offered = [word for folder in folders for word in ("--find-links", folder)]
        undated = [word for name in own for word in ("--exclude-newer-package", f"{name}=false") if self.dated]
        options = ("--only-binary", ":all:", *offered, *self.dated, *undated)
        answer, text = compiled(self.uv, self.interpreter, wanted, options, links, cancel)
        best = [best_wheel(package, self.interpreter.wheel_tags()) for package in text.get("packages", [])]
        return answer, [IndexFile.of(wheel) for wheel in best if wheel is not None]

    def _build_requirement(self, text: str, links: Path, cancel: threading.Event | None) -> UvAnswer | None:
        """Build a wheel of a requirement that has none into `links`; the failure, if there is one."""
        name = project_of(text)
        options = (*self.dated, "--no-deps", "--only-binary", ":all:", "--no-binary", name)
        (links / "uv.toml").write_text(without_requirements([name]), encoding="utf-8")
        answer, found = compiled(self.uv, self.interpreter, [text], options, links, cancel)
        (links / "uv.toml").unlink()
        sources = [package.get("sdist") for package in found.get("packages", [])]
        if answer.returncode != 0 or not sources or not isinstance(sources[0], dict):
            return answer if answer.returncode else UvAnswer(1, f"error: there is no file of {text}")
        file = IndexFile.of(sources[0])
        archive = links.parent / file.name
        download(self.uv.settings, file.url, archive, file.sha256)
        wheel, answer = evolve(self, depth=self.depth + 1).wheel(archive, links, cancel=cancel)
        return None if wheel is not None else answer


@frozen
class IndexFile:
    """A file of an index, or of a local folder: its name, where it is, and its SHA-256 ("" if unknown)."""

    name: str
    url: str
    sha256: str

    @classmethod
    def of(cls, file: dict[str, Any]) -> IndexFile:
        """Read it from a lock file."""
        url = str(file.get("url") or "") or Path(str(file.get("path") or "")).absolute().as_uri()
        return cls(file_name(file), url, str(file.get("hashes", {}).get("sha256", "")))


def compiled(
    uv: Uv,
    interpreter: Interpreter,
    requirements: Iterable[str],
    options: Iterable[str],
    folder: Path,
    cancel: threading.Event | None = None,
) -> tuple[UvAnswer, dict[str, Any]]:
    """Resolve requirements in a folder, with its `uv.toml`; returns uv's answer and the lock file, {} if it failed."""
    (folder / "requirements.in").write_text("".join(f"{text}\n" for text in requirements), encoding="utf-8")
    lock = folder / "pylock.toml"
    lock.unlink(missing_ok=True)
    words = ["--quiet", "pip", "compile", "requirements.in", *options, "--python", str(interpreter.path)]
    words += ["--format", "pylock.toml", "--output-file", lock.name]
    answer = uv.call(*words, cwd=folder, cancel=cancel)
    return answer, tomllib.loads(lock.read_text(encoding="utf-8")) if answer.returncode == 0 else {}


def without_requirements(projects: Iterable[str]) -> str:
    """Settings of uv that let it choose releases of these projects without building them to read their metadata."""
    return "\n".join(f'[[dependency-metadata]]\nname = "{name}"\nrequires-dist = []\n' for name in projects)


def _wanted(words: str) -> tuple[str, ...]:
    """The requirements that a build has asked for in vain."""
    found = _WANTED.findall(words)
    return tuple(" ".join(re.sub(r"[│|]", " ", text).split()) for text in _QUOTED.findall(found[-1])) if found else ()
