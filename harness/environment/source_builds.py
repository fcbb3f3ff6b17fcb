"""Builds source distributions into wheels, each once, with the build requirements of the day it was uploaded.

It is the only place that builds releases: the resolver is offered the wheels as a folder of links, and the installer
takes them from there. A lock names the source distribution, so that another machine can build it again.

A build has no network and does not see the user's indexes. What it requires is resolved and fetched outside of it, as
wheels, and it is offered only that folder. uv names what is missing, also what only the backend asks for, so it is
fetched and the build starts again. A requirement that has no wheel is built in the same way.
"""

from __future__ import annotations

import contextlib
import math
import re
import shutil
import threading
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen
from packaging.requirements import InvalidRequirement, Requirement

from harness.atomic import sha256_of
from harness.environment.attempt import LockedFile, locked_files, projects_without_wheels
from harness.environment.pages import download
from harness.environment.uv import Uv, UvAnswer, spoken_by_uv
from harness.environment.workspace import Workspace
from harness.events import SILENT, Note, Reporter
from harness.model import Pin, name_of, normalized_name
from harness.model.text import one_line
from harness.records import read_record, write_record
from harness.run.locks import acquire, claimed_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from harness.environment.interpreter import Interpreter


_MARGIN = timedelta(hours=1)  # what a release needs to be built is often uploaded just after it
_LONGEST_TRY_S = 120.0
_WORD_S = 60.0  # between two notes on a build
CANT_BUILD = "can't be built"
_RECORD = "source.json"
_LONGEST_WORDS = 300
# A build of its upload day may not know a Python that came later. These two know Pythons, not packages.
_TOOLS = ("setuptools", "wheel")
_RAISED = re.compile(r"(?:[A-Za-z_][\w.]*(?:Error|Exception|Exit)\b|(?:fatal )?error:).*")
# What uv itself says about a failed build.
_OF_UV = re.compile(r"error: (?:Failed to build|No solution found)|hint:|.*\bbuild backend returned an error")


@frozen
class BuiltWheel:
    """A wheel that was built here, and the pin of the source distribution that it was built from."""

    path: Path
    sha256: str
    source: Pin

    @property
    def pin(self) -> Pin:
        """The pin of the wheel, for the installer."""
        return Pin(self.source.name, self.source.version, self.path.name, self.sha256)


@frozen
class NotBuilt:
    """Why a release ("pyyaml==5.3.1") can't be built, in one line."""

    release: str
    words: str


@frozen
class _Built:
    """What is recorded beside a wheel: its file and hash, and the source distribution that it was built from."""

    built: str
    sha256: str
    source: Pin


@frozen
class SourceBuilds:
    """The wheels that were built for one interpreter, kept in the cache; each build is reported to `reporter`."""

    uv: Uv
    interpreter: Interpreter
    workspace: Workspace
    reporter: Reporter = SILENT
    _failed: dict[str, NotBuilt] = field(factory=dict, init=False, repr=False, eq=False)
    _sources: dict[str, Pin] = field(factory=dict, init=False, repr=False, eq=False)

    def release(self, project: str, version: str) -> BuiltWheel | NotBuilt:
        """Return the wheel of a release, built now if it is not kept. Raises `NoNetwork`, `NoSpace`, `Cancelled`."""
        name = normalized_name(project)
        for record in self._root.glob(f"{name}-{version}-*/{_RECORD}"):
            if (wheel := self._stored(record.parent)) is not None:
                return wheel
        source = self._on_index(name, version)
        return (
            self.build(source)
            if source
            else NotBuilt(f"{name}=={version}", "it has no source distribution on the index")
        )

    def of(self, pin: Pin) -> BuiltWheel | NotBuilt:
        """Return the wheel of a locked source distribution, built now if it is not kept. Raises as `release`."""
        wheel = self._stored(self._folder(pin))
        if wheel is not None:
            return wheel
        source = self._on_index(pin.name, pin.version)
        if source is None or source.pin.sha256 != pin.sha256:
            return NotBuilt(_named(pin), f"the index no longer has {pin.wheel}")
        return self.build(source)

    def sources_in(self, pylock: str) -> dict[str, LockedFile]:
        """The source distributions in a lock file of uv, by project."""
        return {file.pin.name: file for file in locked_files(pylock, self.interpreter) if file.is_source}

    def _on_index(self, name: str, version: str) -> LockedFile | None:
        _, lock = _source_of(self.uv, self.interpreter, f"{name}=={version}")
        return self.sources_in(lock).get(name)

    def as_sources(self, pins: Iterable[Pin]) -> tuple[Pin, ...]:
        """Return pins with the source distribution in place of each wheel that was built here."""
        return tuple(self._sources.get(pin.sha256, pin) for pin in pins)

    @property
    def _root(self) -> Path:
        return self.workspace.built / f"{self.interpreter.cache_tag}-{self.interpreter.platform}"

    def _folder(self, pin: Pin) -> Path:
        return self._root / f"{pin.name}-{pin.version}-{pin.sha256[:16]}"

    def _stored(self, folder: Path) -> BuiltWheel | None:
        known = read_record(folder / _RECORD, _Built)
        path = folder / known.built if known is not None else folder
        if known is None or not path.is_file() or sha256_of(path) != known.sha256:
            return None
        source = evolve(known.source, siblings=())
        self._sources[known.sha256] = source
        return BuiltWheel(path, known.sha256, source)

    def build(self, source: LockedFile) -> BuiltWheel | NotBuilt:
        """Return the wheel of a source distribution, built now if it is not kept. Raises as `release`."""
        pin, folder = source.pin, self._folder(source.pin)
        with acquire(self.workspace.locks / f"built-{folder.name}.lock"):
            if (stored := self._stored(folder)) is not None:
                return stored
            if (failed := self._failed.get(folder.name)) is not None:
                return failed
            python = f"Python {self.interpreter.minor}"
            self.reporter.report(
                Note(f"building {pin.name} {pin.version} from its source, because it has no wheel for {python}")
            )
            with claimed_folder(self.workspace.scratch, "build-") as scratch:
                archive = scratch / pin.wheel
                download(self.uv.settings, source.url, archive, pin.sha256)
                wheel = self.build_wheel(archive, scratch / "wheel", pin.uploaded)
                if isinstance(wheel, str):
                    return self._failed.setdefault(folder.name, NotBuilt(_named(pin), wheel))
                self._keep(folder, wheel, pin)
            return self._stored(folder) or NotBuilt(_named(pin), "its wheel could not be kept")

    def build_wheel(self, archive: Path, output: Path, uploaded: str) -> Path | str:
        """Build a source distribution into a wheel below `output`; returns the reason if that fails.

        `uploaded` is its time (ISO 8601), "" if unknown. Its build requirements are those of that day; if it fails
        soon, newer build tools are tried, then today's build requirements. All of it takes at most as long as `Uv` lets
        a build take.
        """
        first, begun = "", time.monotonic()
        with self._spoken(begun):
            for dated in _dated(uploaded):
                until = begun + self.uv.longest_build_s
                build = OfflineBuild(self.uv, self.interpreter, tuple(dated), until=until)
                wheel, answer = build.wheel(archive, output)
                if wheel is not None:
                    return wheel
                first = first or reason_of(answer.words)
                if time.monotonic() - begun > _LONGEST_TRY_S:
                    break
        return first

    @contextlib.contextmanager
    def _spoken(self, begun: float) -> Iterator[None]:
        """Report every minute that a build is still running, while the context lasts."""
        ended = threading.Event()

        def speak() -> None:
            while not ended.wait(_WORD_S):
                minutes, most = (time.monotonic() - begun) / 60, self.uv.longest_build_s / 60
                note = f"a build from source has run for {minutes:.0f} min; it is stopped after {most:.0f} min"
                self.reporter.report(Note(note))

        speaker = threading.Thread(target=speak, name="build", daemon=True)
        speaker.start()
        try:
            yield
        finally:
            ended.set()
            speaker.join()

    def _keep(self, folder: Path, wheel: Path, source: Pin) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        shutil.copy2(wheel, folder / wheel.name)
        write_record(folder / _RECORD, _Built(wheel.name, sha256_of(wheel), source))


def _dated(uploaded: str) -> Iterable[list[str]]:
    """Options of the builds to try, one after the other."""
    if uploaded:
        limit = ["--exclude-newer", (datetime.fromisoformat(uploaded) + _MARGIN).isoformat()]
        yield limit
        yield [*limit, *(word for tool in _TOOLS for word in ("--exclude-newer-package", f"{tool}=false"))]
    yield []


def reason_of(words: str) -> str:
    """Return the line of a failed build's output that says most, else uv's own words, in one line."""
    lines = [line.strip(" │├╰─▶") for line in words.splitlines()]
    raised = [line for line in lines if _RAISED.match(line) and not _OF_UV.match(line)]
    return one_line(raised[-1] if raised else spoken_by_uv(words), _LONGEST_WORDS)


def _named(pin: Pin) -> str:
    return f"{pin.name}=={pin.version}"


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
    """Builds for one interpreter until a time (`time.monotonic`).

    `dated` are options of uv that limit what a build may require to a day.
    """

    uv: Uv
    interpreter: Interpreter
    dated: tuple[str, ...] = ()
    depth: int = 0
    until: float = math.inf

    def wheel(self, source: Path, output: Path, *options: str) -> tuple[Path | None, UvAnswer]:
        """Build a folder or an archive into `output`, below the folder of `source`; None with uv's words if it fails.

        Raises `NoNetwork`, `NoSpace`, `IndexFault`, `Cancelled` and `UserMistake`.
        """
        folder = output.parent
        links = folder / f"requirements-{self.depth}"
        shutil.rmtree(links, ignore_errors=True)  # those of another day
        links.mkdir()
        words = ["build", "--wheel", "--no-sources", "--no-create-gitignore", "--offline", "--no-index"]
        words += ["--find-links", str(links), "--python", str(self.interpreter.path), "--out-dir", str(output)]
        before = set(output.glob("*.whl"))
        known: tuple[str, ...] = ()
        for _ in range(_ROUNDS):
            left = min(self.uv.longest_build_s, max(1.0, self.until - time.monotonic()))
            answer = evolve(self.uv, longest_build_s=left).call(*words, *options, source, cwd=folder)
            wheel = next((path for path in output.glob("*.whl") if path not in before), None)
            if answer.returncode == 0 and wheel is not None:
                return wheel, answer
            wanted = _wanted(answer.words)
            if not wanted or wanted == known:
                break
            failed = self._fetch(wanted, links)
            if failed is not None:
                return None, failed
            known = wanted
        if _OFFLINE.search(answer.words) and self.uv.sandbox is not None and not self.uv.sandbox.network:
            answer = evolve(answer, words=f"{answer.words}\n{_NO_NETWORK}")
        return None, answer

    def _fetch(self, wanted: Sequence[str], links: Path) -> UvAnswer | None:
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
            answer, files = self._resolved(wanted, links, own)
            if answer.returncode == 0:
                break
            missing = sorted(projects_without_wheels(answer.words).difference(own))
            if not missing or self.depth == _DEEPEST:
                return answer
            for name in missing:
                text = next((text for text in wanted if name_of(text) == name), name)
                failed = self._build_requirement(text, links)
                if failed is not None:
                    return failed
            own = (*own, *missing)
        for file in files:
            if not (links / file.pin.wheel).is_file():
                download(self.uv.settings, file.url, links / file.pin.wheel, file.pin.sha256)
        return None

    def _resolved(self, wanted: Iterable[str], links: Path, own: Sequence[str]) -> tuple[UvAnswer, list[LockedFile]]:
        """Resolve requirements to wheels; `own` are projects that were built here, whose wheels are in `links`."""
        undated = [word for name in own for word in ("--exclude-newer-package", f"{name}=false") if self.dated]
        options = (*self.uv.offering([links] if own else []), *self.dated, *undated)
        answer, lock = self.uv.compile(wanted, *options, python=self.interpreter.path)
        return answer, locked_files(lock, self.interpreter)

    def _build_requirement(self, text: str, links: Path) -> UvAnswer | None:
        """Build a wheel of a requirement that has none into `links`; the failure, if there is one."""
        answer, lock = _source_of(self.uv, self.interpreter, text, self.dated)
        sources = [file for file in locked_files(lock, self.interpreter) if file.is_source]
        if not sources:
            return answer if answer.returncode else UvAnswer(1, f"error: there is no file of {text}")
        archive = links.parent / sources[0].pin.wheel
        download(self.uv.settings, sources[0].url, archive, sources[0].pin.sha256)
        wheel, answer = evolve(self, depth=self.depth + 1).wheel(archive, links)
        return None if wheel is not None else answer


def _source_of(uv: Uv, interpreter: Interpreter, text: str, dated: Sequence[str] = ()) -> tuple[UvAnswer, str]:
    """Resolve one requirement to its source distribution, without building it; as `Uv.compile`."""
    options = (*dated, "--no-deps", "--no-binary", name_of(text))
    return uv.compile([text], *options, python=interpreter.path, settings=without_requirements([name_of(text)]))


def without_requirements(projects: Iterable[str]) -> str:
    """Settings of uv that let it choose releases of these projects without building them to read their metadata."""
    return "\n".join(f'[[dependency-metadata]]\nname = "{name}"\nrequires-dist = []\n' for name in projects)


def _wanted(words: str) -> tuple[str, ...]:
    """The requirements that a build has asked for in vain."""
    lists = _WANTED.findall(words)
    return tuple(" ".join(re.sub(r"[│|]", " ", text).split()) for text in _QUOTED.findall(lists[-1])) if lists else ()
