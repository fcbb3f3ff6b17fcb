"""Shared by all tests: a house of tiny wheels, one cache for uv, one for environments, and a way to run the command."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from attrs import define, evolve, field, fields_dict, frozen
from click.testing import CliRunner
from wheelhouse import Wheelhouse

from harness.bisection.answer import Answer, Failure, QuestionRecord, Status
from harness.cli import cli
from harness.environment import Builder, Index, PipSettings, Resolver, Uv, Workspace, find_interpreter
from harness.environment.manifest import Ledger
from harness.events import SILENT, Event, Judged, Note, Reporter, Started
from harness.model import Change, Repro, Verdict
from harness.model.boundary import Boundary
from harness.model.culprit import Culprit
from harness.probing import Prober
from harness.probing.resolutions import Resolutions
from harness.search import LineSearch, Noise, Trial
from harness.session import Session
from harness.settings import Settings
from harness.store import Store


def take_ctrl_c() -> None:
    """Let SIGINT reach the children of these tests even if a script started the tests in the background.

    A shell ignores SIGINT there, and child processes inherit that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


take_ctrl_c()

ROOT = Path(__file__).parent.parent
PATH = os.environ["PATH"]
# Each run has a stub for each Python tool on the PATH, of which the machines of developers have hundreds.
SHORT_PATH = os.pathsep.join((str(Path(shutil.which("git") or "/usr/bin/git").parent), os.defpath))
MESSAGE = "the step is broken"


def step_source(number: int, *, broken: bool, start: str = "") -> str:
    """A module whose step works or not; `start` is code that runs on import."""
    body = f"raise RuntimeError({MESSAGE!r})" if broken else "return NUMBER"
    return f"{start}\nNUMBER = {number}\nLOSS = {2.5 if broken else 1.0}\n\ndef step():\n    {body}\n"


def fill(house: Wheelhouse, name: str, states: str, *, first: int = 0, **more: Any) -> None:
    """Add releases 1.0, 1.1, ... of a project, one per month; each letter of `states` is G(ood) or B(roken)."""
    for i, state in enumerate(states, first):
        month = f"{2023 + i // 12}-{i % 12 + 1:02}-01T12:00:00Z"
        source = step_source(i, broken=state == "B")
        house.add(name, f"1.{i}", files={f"{name}.py": source}, **{"uploaded": month, **more})


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Wheelhouse:
    """All projects that tests probe.

    `brittle` breaks in 1.6 and is fixed in 1.10; `stale` is broken in every release; `early` breaks in a pre-release;
    `wavering` is broken twice; the releases around the break of `edgy` fail to import; `mixed` has releases that can't
    be installed, and neither can `damaged` and `unmet`; `helper` has releases at different times.
    """
    house = Wheelhouse(tmp_path_factory.mktemp("house"))
    fill(house, "brittle", "GGGGGGBBBBGGG")
    fill(house, "stale", "BBBB")
    fill(house, "wavering", "GGBBBGGGBBGG")
    for number, state in enumerate("GGXBBXGG"):
        start = "import a_module_that_is_missing" if state == "X" else ""
        house.add("edgy", f"1.{number}", files={"edgy.py": step_source(number, broken=state == "B", start=start)})
    for version, broken in {"1.0": False, "1.1": False, "1.2rc1": True, "1.2": True}.items():
        house.add("early", version, files={"early.py": step_source(0, broken=broken)})
    good = {"mixed.py": step_source(0, broken=False)}
    house.add("mixed", "1.0", files=good)
    house.add("mixed", "1.1", files=good, yanked="it deletes files")
    house.add("mixed", "1.2", files=good, requires_python=">=3.99")
    house.add("mixed", "1.3", files=good, tag="cp311-cp311-win_amd64")
    house.add_sdist("mixed", "1.4")
    house.add("mixed", "1.5rc1", files=good)
    house.add("mixed", "1.6", files={"mixed.py": step_source(6, broken=True)})
    house.add("helper", "1.0", files={"helper.py": "NUMBER = 1\n"}, uploaded="2023-01-15T12:00:00Z")
    house.add("helper", "2.0", files={"helper.py": "NUMBER = 2\n"}, uploaded="2023-03-15T12:00:00Z")
    house.add("helper", "3.0", files={"helper.py": "NUMBER = 3\n"}, uploaded="2023-05-15T12:00:00Z")
    house.add("damaged", "1.3", files=good, damaged=True)
    house.add("unmet", "1.3", files=good, requires=("a-project-that-is-nowhere",))
    return house


@pytest.fixture(scope="session")
def uv_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache of uv for all tests."""
    return tmp_path_factory.mktemp("uv")


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache of the harness. Where tests look into it or damage it, their file imports `own_cache` as `cache`."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_CACHE_DIR", str(folder))
        Workspace.opened()  # which marks it, whatever uses it first
    return folder


@pytest.fixture
def own_cache(tmp_path: Path) -> Path:
    """A cache of the harness for one test."""
    return tmp_path / "cache"


@frozen
class Ended:
    """How a command ended."""

    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """All of stdout as one JSON document."""
        assert self.stdout, f"nothing on stdout; stderr: {self.stderr}"
        return json.loads(self.stdout)


@frozen
class Harness:
    """The command line: a call runs it in this process, `start` in a separate one."""

    folder: Path
    environ: dict[str, str]

    def __call__(self, *arguments: str | Path, **environ: str | None) -> Ended:
        """Run a command to its end; keywords are environment variables."""
        told = {**dict.fromkeys(_SETTINGS, None), **self.environ, **environ}
        ended = CliRunner().invoke(
            cli, [str(a) for a in arguments], env=told, catch_exceptions=False, prog_name="harness"
        )
        return Ended(ended.exit_code, ended.stdout, ended.stderr)

    def start(self, *arguments: str | Path, **environ: str) -> subprocess.Popen[str]:
        """Start a command as a separate process."""
        return subprocess.Popen(
            [sys.executable, "-m", "harness", *map(str, arguments)],
            env={**outer_environ(), **self.environ, **environ},
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def with_environ(self, **environ: str) -> Harness:
        """The same with other settings."""
        return Harness(self.folder, {**self.environ, **environ})


_AGENTS = ("AGENT", "CLAUDECODE", "CODEX_THREAD_ID", "GEMINI_CLI", "COPILOT_CLI")
_SETTINGS = [name for name in os.environ if name.startswith(("UV_", "PIP_", "HARNESS_")) or name in _AGENTS]


def outer_environ() -> dict[str, str]:
    """The environment of a command in a process of its own, without the settings of this machine's user."""
    return {**{key: value for key, value in os.environ.items() if key not in _SETTINGS}, "PYTHONPATH": str(ROOT)}


@pytest.fixture
def harness(tmp_path: Path, house: Wheelhouse, uv_cache: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Harness:
    """The command in an empty working directory, with the house as its only index and few tools on the PATH."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", SHORT_PATH)
    return harness_in(folder, house, uv_cache, cache)


def harness_in(folder: Path, house: Wheelhouse, uv_cache: Path, cache: Path) -> Harness:
    """The command with the house as its only index; the folder has to be the working directory of its calls."""
    return Harness(
        folder,
        {
            **house.environ,
            "UV_CACHE_DIR": str(uv_cache),
            "HARNESS_CACHE_DIR": str(cache),
            "PIP_CONFIG_FILE": os.devnull,
            "HARNESS_RESULTS": "results",
            # Many repros of these tests tell what they did by files outside of their own folders.
            "HARNESS_SANDBOX": "off",
        },
    )


def repro_text(project: str, *, tool: str = "", body: str | None = None, dependencies: str | None = None) -> str:
    """A repro that runs the step of a project; `tool` is the content of [tool.harness]."""
    metadata = f"dependencies = {dependencies or json.dumps([project])}\n[tool.harness]\n{textwrap.dedent(tool)}"
    block = "".join(f"# {line}".rstrip() + "\n" for line in metadata.splitlines())
    told = body if body is not None else f"import {project}\n\n{project}.step()\n"
    return f'"""Takes the step of {project}."""\n\n# /// script\n{block}# ///\n\n{textwrap.dedent(told)}'


SIGNED = f"""
[signature]
exception = "RuntimeError"
message = "{MESSAGE}"
""".replace("[signature]", "[tool.harness.signature]")


@pytest.fixture
def write_repro(harness: Harness):
    """Write a repro to `repros/` of the working directory, named after its project."""
    return partial(repro_in, harness.folder)


def repro_in(folder: Path, project: str, *, name: str = "", **parts: Any) -> Path:
    """Write a repro to `repros/` of a folder, named after its project."""
    path = folder / "repros" / f"{name or project + '_step'}.py"
    path.parent.mkdir(exist_ok=True)
    told = {"tool": SIGNED, **parts}
    if f"subjects.{project}" not in told["tool"]:
        told["tool"] += f"\n[tool.harness.subjects.{project}]\n"
    path.write_text(repro_text(project, **told), encoding="utf-8")
    return path


@define
class Heard:
    """A reporter that records events."""

    events: list[Event] = field(factory=list)

    def report(self, event: Event) -> None:
        """Record it."""
        self.events.append(event)

    def of(self, kind: type) -> list[Any]:
        """The events of one kind, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def notes(self) -> list[str]:
        """The notes' sentences."""
        return [event.sentence for event in self.of(Note)]

    @property
    def started(self) -> list[str]:
        """The labels of started runs."""
        return [event.label for event in self.of(Started)]

    @property
    def judged(self) -> list[tuple[str, Verdict, bool]]:
        """Each judged label, its verdict, and whether it was cached."""
        return [(event.label, event.judgement.verdict, event.cached) for event in self.of(Judged)]


@frozen
class Parts:
    """The parts that run a probe, below the command line."""

    store: Store
    index: Index
    resolver: Resolver
    builder: Builder
    workspace: Workspace
    prober: Prober


def sessions_of(parts: Parts, reporter: Reporter = SILENT) -> dict[str | None, Session]:
    """The session of the harness's own Python, for the cells of a matrix."""
    interpreter = parts.builder.interpreter
    return {None: Session(Settings(), reporter, parts.store, parts.index, interpreter, parts.prober, ())}


@pytest.fixture(scope="session")
def interpreter(uv_cache: Path):
    """The interpreter that a probe gets by default."""
    return find_interpreter(None, Uv(PipSettings(), extra_environment={"UV_CACHE_DIR": str(uv_cache)}))


@pytest.fixture
def parts(
    tmp_path: Path, house: Wheelhouse, uv_cache: Path, cache: Path, interpreter, monkeypatch: pytest.MonkeyPatch
) -> Parts:
    """Store, index, resolver, builder and prober, with results of their own."""
    monkeypatch.setenv("PATH", SHORT_PATH)
    return make_parts(tmp_path, PipSettings(index_url=house.url), uv_cache, interpreter, cache=cache)


def make_parts(folder: Path, settings: PipSettings, uv_cache: Path, interpreter, *, cache: Path | None = None) -> Parts:
    """The parts that run a probe, with all their files in one folder, except a `cache` that they share."""
    workspace = Workspace(cache or folder / "cache")
    uv = Uv(
        settings,
        extra_environment={"UV_CACHE_DIR": str(uv_cache)},
        scratch=workspace.scratch,
        ledger=Ledger.of(workspace),
    )
    index = Index(settings, workspace.index, environ={})
    store = Store(folder / "results")
    builder = Builder(uv, interpreter, workspace)
    resolver = Resolver(index, builder.builds)
    return Parts(store, index, resolver, builder, workspace, Prober(store, Resolutions(store, resolver), builder))


def processes_below(folder: Path, program: str = "") -> list[psutil.Process]:
    """Processes that have a path below a folder in their command line, and the name of a program."""
    found = []
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
            is_below = any(str(folder) in word for word in words) and program in " ".join(words)
            if is_below and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def make_answer(subject: str = "shop", **parts: Any) -> Answer:
    """An answer about one failure and, if its status is a change, one culprit; for `parts` see `changed`."""
    failure = Failure((), None, Status.FOUND, (Culprit(Boundary(Change(subject, None, None))),))
    return changed(Answer(QuestionRecord(subject, Repro("step", "d")), Status.FOUND, failures=(failure,)), **parts)


def changed(answer: Answer, **parts: Any) -> Answer:
    """The answer with these parts exchanged, wherever they are: in its question, failure, culprit or boundary.

    `named` are the two ends as they were asked for.
    """

    def part_of(value: Any, *names: str, **more: Any) -> Any:
        known = {name: parts.pop(name) for name in list(parts) if name in names or (not names and name in _own(value))}
        return evolve(value, **{**known, **more})

    status = parts.get("status", answer.status)
    (failure,) = answer.failures
    guilty = (
        failure.culprits[0]
        if failure.culprits
        else Culprit(failure.boundary or Boundary(Change(answer.question.subject, None, None)))
    )
    boundary = guilty.boundary
    for name in ("change", "certainty"):
        boundary = evolve(boundary, **{name: part_of(getattr(boundary, name))})
    guilty = part_of(guilty, "findings", "evidence", boundary=part_of(boundary))
    asked = {"ends": parts.pop("named")} if "named" in parts else {}
    asked = part_of(answer.question, "repro", "device", "python", "requirements", "holds", "as_of", "find_fix", **asked)
    culprits, boundary = ((guilty,), None) if status.is_change else ((), guilty.boundary)
    failure = part_of(failure, "tests", "signature", "note", status=status, culprits=culprits, boundary=boundary)
    nested = {name: part_of(getattr(answer, name)) for name in ("comparison", "effort")}
    return evolve(answer, question=asked, failures=(failure,), **nested, **parts)


def _own(value: Any) -> set[str]:
    return set(fields_dict(type(value)))


def bisection(count, **ends):
    """A plain bisection: a search over a line that takes each verdict as final."""
    return LineSearch(count, noise=Noise(confirm=0), **ends)


def knowing(search, verdicts):
    """A search over a line that was told some verdicts, by position."""
    for position, verdict in verdicts.items():
        search.tell(Trial(position), verdict)
    return search
