"""A scenario: a row of a TOML file, its local index, its folder, and the run of its commands.

`test_scenarios.py` documents the format.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import cattrs
from attrs import field, frozen
from command_server import CommandServer
from git_project import GitProject, new_project
from jsonschema import Draft202012Validator
from support import SHORT_PATH, Ended, outer_environ
from wheelhouse import Wheel, Wheelhouse

from harness.bisection import showing
from harness.bisection.showing import json_of
from harness.model import Verdict
from harness.report.archive import Archive
from harness.store import Store

FOLDER = Path(__file__).parent
_JSON = "bisect", "history", "probe", "matrix", "nightly", "gate"
_MARK = re.compile(r"<(folder|index|links|good|bad|repository:[\w-]+|day-\d+)>")
_LIMIT_S = 300
_SERVER = CommandServer(SHORT_PATH)
_SCHEMA = Draft202012Validator(json.loads(Path(showing.__file__).with_name("answer.schema.json").read_text("utf-8")))


@frozen
class Release:
    """A release of a package of the index: a wheel, or with `sdist` a source distribution."""

    version: str
    files: dict[str, str] = field(factory=dict)
    day: str | int = "2024-01-01"
    requires: tuple[str, ...] = ()
    requires_python: str | None = None
    tag: str = "py3-none-any"
    yanked: str | None = None
    damaged: bool = False
    source_url: str | None = None
    sdist: bool = False

    def put(self, house: Wheelhouse, name: str) -> None:
        """Add it to an index."""
        day = self.day if isinstance(self.day, str) else day_before(-self.day)
        uploaded = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}" if self.day == 0 else f"{day}T12:00:00Z"
        shared = {"files": self.files, "requires": self.requires, "uploaded": uploaded}
        if self.sdist:
            house.add_sdist(name, self.version, **shared)
            return
        own = {key: getattr(self, key) for key in ("requires_python", "tag", "yanked", "damaged", "source_url")}
        house.add(name, self.version, **shared, **own)


@frozen
class Package:
    """A package of the index."""

    name: str
    releases: tuple[Release, ...]


@frozen
class Commit:
    """A commit of a repository: on `branch`, with a `tag`, or the merge of the branch `merge`.

    `day` (an ISO date) is instead of the day after the commit before.
    """

    subject: str
    files: dict[str, str | bool] = field(factory=dict)
    day: str = ""
    tag: str = ""
    branch: str = ""
    merge: str = ""

    def put(self, project: GitProject) -> None:
        """Add it to a repository."""
        if self.branch:
            known = project.git("branch", "--format=%(refname:short)").split()
            project.git("switch", "--quiet", *([] if self.branch in known else ["--create"]), self.branch)
        if self.merge:
            project.merge(self.merge, self.subject)
        else:
            files = {name: text if isinstance(text, str) else None for name, text in self.files.items()}
            project.commit(self.subject, files, self.day)
        if self.tag:
            project.git("tag", self.tag)


@frozen
class Repository:
    """A repository that commands name as <repository:NAME>."""

    name: str
    commits: tuple[Commit, ...]


@frozen
class LocalWheel:
    """A wheel in the folder <links>, which replaces one of the same name."""

    name: str
    version: str
    files: dict[str, str]


@frozen
class Step:
    """Files to write, commands to run, and what must be true of the last of them."""

    commands: tuple[str, ...]
    files: dict[str, str | bool] = field(factory=dict)
    packages: tuple[Package, ...] = ()
    wheels: tuple[LocalWheel, ...] = ()
    commits: tuple[Commit, ...] = ()
    environ: dict[str, str] = field(factory=dict)
    git: bool = False
    exit: int = 0
    runs: int | None = None
    facts: dict[str, Any] = field(factory=dict)
    says: tuple[str, ...] = ()
    says_not: tuple[str, ...] = ()


@frozen
class Row(Step):
    """A scenario: its first step with a name, and the steps after that."""

    name: str = field(kw_only=True)
    pythons: tuple[str, ...] = field(kw_only=True, default=())
    golden: bool = field(kw_only=True, default=False)
    broken: tuple[str, ...] = field(kw_only=True, default=())
    steps: tuple[Step, ...] = field(kw_only=True, default=())


@frozen
class Table:
    """The content of a file."""

    row: tuple[Row, ...] = ()
    packages: tuple[Package, ...] = ()
    repositories: tuple[Repository, ...] = ()
    files: dict[str, str] = field(factory=dict)


_READER = cattrs.Converter(forbid_extra_keys=True)
_READER.register_structure_hook(str | int, lambda value, _: value)
_READER.register_structure_hook(str | bool, lambda value, _: value)


def read(path: Path) -> Table:
    """Return the table in a file; raises `ValueError` where it has an unknown key or a value of another type."""
    try:
        table = _READER.structure(tomllib.loads(path.read_text(encoding="utf-8")), Table)
    except cattrs.BaseValidationError as error:
        raise ValueError(f"{path.name}: {'; '.join(cattrs.transform_error(error))}") from None
    names = [row.name for row in table.row]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"{path.name}: two rows have the name {', '.join(twice)}")
    return table


def day_before(days: int) -> str:
    """Return the day so many days before that on which these tests began; midnight changes nothing."""
    return (datetime.fromisoformat(os.environ["TESTS_BEGAN"]) - timedelta(days=days)).strftime("%Y-%m-%d")


@frozen
class Ground:
    """What the rows of a file share: the index and the repositories, in one folder."""

    folder: Path

    @classmethod
    def of(cls, table: Table, folder: Path) -> Ground:
        """Make it, unless another worker has done so."""
        if not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            new = Path(tempfile.mkdtemp(dir=folder.parent))
            house = Wheelhouse(new / "index")
            for package in table.packages:
                for release in package.releases:
                    release.put(house, package.name)
            for repository in table.repositories:
                project = new_project(new / "repositories" / repository.name)
                for commit in repository.commits:
                    commit.put(project)
            try:
                new.rename(folder)
            except OSError:  # another worker was faster
                shutil.rmtree(new)
        return cls(folder)

    @property
    def house(self) -> Wheelhouse:
        """The index."""
        return Wheelhouse(self.folder / "index")


@frozen
class Played:
    """How the last command of a step ended, with what it answered."""

    command: str
    ended: Ended
    answer: Any
    runs: int

    def __str__(self) -> str:
        """What it printed, JSON on one line."""
        printed = self.ended.stdout
        if printed.lstrip().startswith("{"):
            printed = json.dumps(self.ended.json)
        return f"$ harness {self.command}\n{self.ended.stderr[-4000:]}{printed[:4000]}"


@frozen
class Stage:
    """The folder of a row, where its commands run."""

    folder: Path
    ground: Ground
    environ: Mapping[str, str]
    house: Wheelhouse  # the index

    def filled_in(self, text: str) -> str:
        """Return a text with its marks replaced."""
        return _MARK.sub(lambda match: self._value(match[1]), text)

    def _value(self, mark: str) -> str:
        if mark.startswith("repository:"):
            return str(self.ground.folder / "repositories" / mark.partition(":")[2])
        if mark.startswith("day-"):
            return day_before(int(mark.partition("-")[2]))
        if mark in ("good", "bad"):
            return Archive(Store.opened(self._results)).get().answer.boundary.by_verdict[Verdict(mark)].key
        if mark == "links":
            return str(self.folder.with_name("links"))
        return str(self.folder) if mark == "folder" else self.house.url

    def play(self, step: Step, files: Mapping[str, str | bool], *, as_typed: bool) -> Played:
        """Write files, make commits, run all commands of a step, and return how the last one ended."""
        for name, text in files.items():
            path = self.folder / name
            if text is False:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.filled_in(str(text)), encoding="utf-8")
            if str(text).startswith("#!"):
                path.chmod(0o755)
        for commit in step.commits:
            commit.put(self._repository)
        for package in step.packages:
            for release in package.releases:
                release.put(self.house, package.name)
        for wheel in step.wheels:
            Wheel(wheel.name, wheel.version, dict(wheel.files)).write(self.folder.with_name("links"))
        if step.git:
            self._repository.commit("Change it", {})
        before = self._runs()
        for command in step.commands[:-1]:
            self.run(shlex.split(self.filled_in(command)), step.environ)
        words = shlex.split(self.filled_in(step.commands[-1]))
        adds = bool(step.facts) and not as_typed and words[0] in _JSON and "--json" not in words
        ended = self.run([*words, "--json"] if adds else words, step.environ)
        return Played(
            step.commands[-1], ended, self._answer(words, ended) if step.facts else None, self._runs() - before
        )

    def run(self, words: list[str], environ: Mapping[str, str]) -> Ended:
        """Run one command of the harness to its end, as a process."""
        own = {name: self.filled_in(value) for name, value in environ.items()}
        environ = {**outer_environ(), **self.environ, **own}
        return Ended(*_SERVER.run(words, environ, self.folder, _LIMIT_S))

    def _answer(self, words: list[str], ended: Ended) -> Any:
        """What a command printed as JSON, else the answer that it has kept; raises `ValidationError`."""
        answer = None
        if ended.stdout.lstrip().startswith("{"):
            answer = ended.json
        elif words[0] == "bisect" and ended.code in (0, 1, 3):
            answer = json_of(Archive(Store.opened(self._results)).get().answer)
        if words[0] == "bisect" and answer is not None and "error" not in answer:
            _SCHEMA.validate(json.loads(json.dumps(answer)))
        return answer

    @property
    def _repository(self) -> GitProject:
        project = GitProject(self.folder)
        if not (self.folder / ".git").exists():
            project.git("init", "--quiet", "--initial-branch=main")
        return project

    @property
    def _results(self) -> Path:
        return self.folder / ".harness"

    def _runs(self) -> int:
        return sum(1 for _ in self._results.glob("observations/*/*.json"))


def stage_of(row: Row, folder: Path, ground: Ground, shared: Path) -> Stage:
    """Return the stage of a row in an empty folder; all rows share the caches below `shared`."""
    folder.mkdir()
    house = Wheelhouse(folder.with_name("index")) if row.packages else ground.house
    environ = {
        **house.environ,
        "UV_CACHE_DIR": str(shared / "uv"),
        "HARNESS_CACHE_DIR": str(shared / "cache"),
        "PIP_CONFIG_FILE": os.devnull,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "NO_COLOR": "1",
        "COLUMNS": "120",
        **({} if row.pythons else {"PATH": SHORT_PATH}),
    }
    return Stage(folder, ground, environ, house)


_Check = Callable[[Any, Any], bool]
_CHECKS: dict[str, _Check] = {
    "at_most": lambda value, limit: value is not None and value <= limit,
    "at_least": lambda value, limit: value is not None and value >= limit,
    "contains": lambda value, part: value is not None and part in (value if isinstance(value, list) else str(value)),
    "contains_not": lambda value, part: part not in (value if isinstance(value, list) else str(value)),
    "length": lambda value, length: value is not None and len(value) == length,
}
_MISSING = object()


def differences(step: Step, played: Played) -> list[str]:
    """Return a line for each thing that is not as the step wants it."""
    ended = played.ended
    screen = ended.stdout + ended.stderr
    lines = []
    if ended.code != step.exit:
        lines.append(f"exit: wanted {step.exit}, got {ended.code}")
    if step.runs is not None and played.runs > step.runs:
        lines.append(f"runs: wanted at most {step.runs}, got {played.runs}")
    for path, wanted in step.facts.items():
        value = value_at(played.answer, path)
        if not _is_as(value, wanted):
            lines.append(f"{path}: wanted {wanted!r}, got {'nothing' if value is _MISSING else repr(value)}")
    lines += [f"says: wanted {text!r}" for text in step.says if text not in screen]
    lines += [f"says: not wanted {text!r}" for text in step.says_not if text in screen]
    return lines


def _is_as(value: Any, wanted: Any) -> bool:
    if not isinstance(wanted, dict) or not wanted or not wanted.keys() <= {*_CHECKS, "absent"}:
        return bool(value == wanted)
    if "absent" in wanted:
        return (value is _MISSING or value is None) == wanted["absent"]
    found = None if value is _MISSING else value
    return all(_CHECKS[check](found, limit) for check, limit in wanted.items())


def value_at(value: Any, path: str) -> Any:
    """Return what is at a dotted path in a document; `test_scenarios.py` has the rules."""
    if not path:
        return value
    names = path.split(".")
    for count in range(len(names), 0, -1):
        head, rest = ".".join(names[:count]), ".".join(names[count:])
        inner = _item(value, head)
        if inner is not _MISSING:
            return value_at(inner, rest)
    return _MISSING


def _item(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return value.get(name, _MISSING)
    if not isinstance(value, list):
        return _MISSING
    if re.fullmatch(r"-?\d+", name):
        return value[int(name)] if -len(value) <= int(name) < len(value) else _MISSING
    for item in value:
        if isinstance(item, list) and item[:1] == [name]:
            return item[1] if len(item) == 2 else item
        if isinstance(item, dict) and name in (item.get(key) for key in ("level", "package", "name", "release")):
            return item
    return _MISSING
