"""Finds what a project requires: its own requirements, with the chosen extras and groups, and those of its tests.

There is no standard place for what tests need, so all places are read together: extras and dependency groups for tests,
tox, requirements files for tests, `tests_require`. Of extras, groups and files for development and other requirements
files only what the tests import is taken; everything, where nothing is declared for tests. A conda environment file is
read where there is no requirements file. Tools that the project does not use are left out, because they could only
conflict with others; the place that names the program of the command is taken whole. The versions of exact pins are
ignored, because they would hide what upgrades change, except beside that program.
"""

from __future__ import annotations

import contextlib
import email.parser
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import define, field, frozen
from packaging.requirements import InvalidRequirement, Requirement

from harness.errors import UserMistake
from harness.model import name_of, normalized_name
from harness.model.requirements import required_name, unpinned
from harness.model.text import listed
from harness.question.lockfiles import read_requirement_file, requirements_of_conda
from harness.question.tools_in_use import CALLED, MODULES, TOOLS, imported_by_tests, plugins_in_use, used_in
from harness.repository.declared import Declared, declared_in, of_poetry, read_ini, read_toml

_FOR_TESTS = frozenset({"test", "tests", "testing", "unittest", "unittests"})
_FOR_DEVELOPMENT = frozenset({"dev", "devel", "develop", "development"})
_CONDITION = re.compile(r"^(?P<factors>[\w.,{}!-]+)\s*:\s+(?P<rest>\S.*)$")
_REFERENCE = re.compile(r"^\{\[([^]]+)\](\w+)\}$")  # {[section]key}
_OWN_EXTRAS = re.compile(r"^(?:-e\s*)?(?:\.|\{toxinidir\})/?(?=\[)")
_BOUND = re.compile(r",<[\d.]+$")  # the upper bound of Poetry's ^ and ~, which would hide what upgrades change
_ITSELF = "this-project"  # names the project in a requirement of its extras
_BETWEEN_WORDS = re.compile(r"[\W_]+")


@frozen
class RequestedExtras:
    """The requested extras and groups of a project; with `find` also everything else that its tests need.

    Without `for_tests` nothing is chosen for tests automatically. `program` is the project (normalised name) that has
    the program of the command, as far as its name tells: mypy, sphinx.
    """

    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    find: bool = False
    for_tests: bool = True
    program: str = ""


OWN_REQUIREMENTS = RequestedExtras(for_tests=False)


@frozen
class Requires:
    """A project's name, its requirements, and sentences about the choices made.

    `for_tests` are the requirements that were found for the tests rather than named by the user.
    """

    name: str
    requirements: tuple[str, ...]
    notes: tuple[str, ...] = ()
    for_tests: tuple[str, ...] = ()


@frozen
class _Source:
    """A place that lists requirements, and its lines; one that is not a requirement is ignored."""

    where: str = ""
    lines: tuple[str, ...] = ()


def requirements_of(
    tree: Path, built: Path | None, wanted: RequestedExtras, environment: Mapping[str, str]
) -> Requires:
    """Return the requirements of a project. Raises `UserMistake` if it lacks a named extra or group."""
    pyproject = read_toml(tree / "pyproject.toml")
    project = _of_metadata(tree, built) or declared_in(tree)
    groups: Mapping[str, Any] = pyproject.get("dependency-groups", {})
    own = list(dict.fromkeys(_applying(project, environment)))
    collected = _Collected(tree, project, environment, wanted.program, own)
    if wanted.extras or wanted.groups:
        collected.added += _requested(project, groups, wanted, environment)
    elif wanted.find:
        collected.read_all(pyproject, groups)
    elif wanted.for_tests:
        collected.take(_named(project.extras, groups, _FOR_TESTS))
    if wanted.find:
        collected.add_plugins()
    if collected.unused:
        collected.notes.append(
            f"without tools that neither the command nor a test uses ({listed(dict.fromkeys(collected.unused))})"
        )
    added = tuple(text for text in dict.fromkeys(collected.added) if text not in collected.own)
    notes = (f"requirements: {'; '.join(collected.notes)}",) if collected.notes else ()
    name = normalized_name(project.name) if project.name else ""
    return Requires(name, (*collected.own, *added), notes, () if wanted.extras or wanted.groups else added)


@define
class _Collected:
    """The requirements found so far: the project's own, those for its tests, and what to tell about them."""

    tree: Path
    project: Declared
    environment: Mapping[str, str]
    program: str
    own: list[str]
    added: list[str] = field(factory=list)
    notes: list[str] = field(factory=list)
    unused: list[str] = field(factory=list)

    def read_all(self, pyproject: Mapping[str, Any], groups: Mapping[str, Any]) -> None:
        """Read every place: those for tests, the project's own files, and what the tests import of the others."""
        tools = {**_tool_groups(pyproject), **groups}
        files = _requirements_files(self.tree)

        def places(kinds: frozenset[str] | None, *others: _Source) -> list[_Source]:
            of_files = (_of_file(path, self.environment) for name, path in files.items() if _is_for(name, kinds))
            return [*_named(self.project.extras, tools, kinds), *others, *of_files]

        self.take(places(_FOR_TESTS, _of_tox(self.tree, pyproject, self.environment)))
        self.take([_Source("tests_require of the setup file", declared_in(self.tree).tests)])
        dev = _of_pipfile(self.tree, "dev-packages")
        others = places(_FOR_DEVELOPMENT, _Source("dev-packages of Pipfile (--with changes it)", dev))
        only = imported_by_tests(self.tree) if self.added else None
        if only is None:
            self.take(others)
        if not self.own:
            self._take_own_files(files)
        if only is not None:
            self.take([*others, *(_of_file(path, self.environment) for path in files.values())], only=only)
        if self.program and self.program not in self._present:
            of_program = (source for source in places(None) if self.program in map(required_name, self._new_in(source)))
            self.take(itertools.islice(of_program, 1))

    @property
    def _present(self) -> set[str]:
        return {required_name(text) for text in (*self.own, *self.added)}

    def _new_in(self, source: _Source) -> tuple[str, ...]:
        present = self._present
        required = lifted(_applying(self.project, self.environment, lifted(source.lines)))
        if self.program in map(required_name, required):  # its pins are what the command runs with
            required = tuple(_applying(self.project, self.environment, lifted(source.lines, keeping_pins=True)))
        return tuple(text for text in required if required_name(text) not in present)

    def take(self, sources: Iterable[_Source], *, only: frozenset[str] | None = None) -> None:
        """Add the requirements of some places, without unused tools; `only` names those to take."""
        for source in sources:
            required, where = self._new_in(source), source.where
            if only is None:
                required = self._without_tools(required)
            else:
                required = tuple(text for text in required if required_name(text) in only)
                where = f"{listed(map(required_name, required))} of {where}"
            if required:
                self.added += required
                self.notes.append(where)

    def _take_own_files(self, files: Mapping[str, Path]) -> None:
        if pipfile := _of_pipfile(self.tree, "packages"):
            self.own += self._without_tools(pipfile)
            self.notes.append("Pipfile (--with changes it)")
            return
        own = [path for name, path in files.items() if _words_in(name) <= {"base"}]
        others = [path for name, path in files.items() if name.startswith("requirements") and "/" not in name]
        for file in own or ([] if self.added else others[:1]):
            lines = read_requirement_file(file, self.environment)
            self.own += [text for text in self._without_tools(lines.requirements) if text not in self.own]
            elsewhere = [note for note in lines.notes if not (self.tree / note.split(" is not ")[0]).is_dir()]
            self.notes += [f"{file.relative_to(self.tree)} (--with changes it)", *elsewhere]
        if not own and not others:
            paths = (self.tree / f"environment{end}" for end in (".yml", ".yaml"))
            self.take(_of_file(path, self.environment) for path in paths if path.is_file())

    def _without_tools(self, requirements: Iterable[str]) -> tuple[str, ...]:
        """Return the requirements without tools that the project does not use, which are noted.

        A tool is used if a file imports it or a text in a test contains its name. Beside the program of the command
        all are: its plugins have any name.
        """
        named = {text: name_of(text) for text in requirements}
        if self.program in named.values():
            return tuple(named)
        tools = {text: name for text, name in named.items() if TOOLS.fullmatch(name)}
        used = used_in(self.tree) if tools else frozenset()
        unused = {text: name for text, name in tools.items() if used.isdisjoint((name, name.replace("-", "_")))}
        self.unused += unused.values()
        return tuple(text for text in named if text not in unused)

    def add_plugins(self) -> None:
        """Add the well-known test tools that the project uses without declaring them."""
        present = self._present | {normalized_name(self.project.name)}
        used = {tool: shown for tool, shown in plugins_in_use(self.tree).items() if tool not in present}
        self.added += used
        self.notes += [f"{tool} ({shown} is used)" for tool, shown in used.items()]


def _requested(
    project: Declared, groups: Mapping[str, Any], wanted: RequestedExtras, environment: Mapping[str, str]
) -> Iterator[str]:
    """Yield the requirements with the extras and groups that the user named. Raises `UserMistake` if one is missing."""
    for kind, names, known in (("extra", wanted.extras, project.extras), ("group", wanted.groups, groups)):
        for requested in names:
            if normalized_name(requested) not in {normalized_name(name) for name in known}:
                raise UserMistake(
                    f"{project.name or 'the project'} has no {kind} {requested!r}",
                    hint=f"it has: {', '.join(known) or 'none'}",
                )
    lines = [text for group in wanted.groups for text in _group_requirements(groups, group)]
    return _applying(project, environment, [*(f"{_ITSELF}[{extra}]" for extra in wanted.extras), *lines])


def _of_metadata(tree: Path, built: Path | None) -> Declared | None:
    """Return what the metadata of the wheel declares, else that of a source distribution.

    None if that has no requirements, which older ones lack.
    """
    wheels = list(built.glob("*.dist-info/METADATA")) if built is not None else []
    for path in (*wheels, *tree.glob("PKG-INFO")):
        message = email.parser.HeaderParser().parsestr(path.read_text(encoding="utf-8", errors="replace"))
        requires = tuple(message.get_all("Requires-Dist") or ())
        if wheels or requires:
            return Declared(str(message["Name"]), requires, dict.fromkeys(message.get_all("Provides-Extra") or [], ()))
    return None


def _applying(project: Declared, environment: Mapping[str, str], others: Iterable[str] = ()) -> Iterator[str]:
    """Yield the requirements, and `others`, that apply on this machine, with the project's extras that they name."""
    of_extras = {normalized_name(extra): lines for extra, lines in project.extras.items()}
    pending = [*project.requires, *others]
    every, extras = list(pending), {""}
    while pending:
        text = pending.pop(0)
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            raise UserMistake(f"the project requires {text!r}, which is not a requirement") from error
        marker = requirement.marker
        if marker is not None and not any(marker.evaluate({**environment, "extra": extra}) for extra in extras):
            continue
        requirement.marker = None
        if normalized_name(requirement.name) not in (_ITSELF, normalized_name(project.name or _ITSELF)):
            yield str(requirement)
        elif new := {normalized_name(extra) for extra in requirement.extras} - extras:
            extras |= new
            pending += [*(line for extra in sorted(new) for line in of_extras.get(extra, ())), *every]


def _named(extras: Iterable[str], groups: Mapping[str, Any], kinds: frozenset[str] | None) -> Iterator[_Source]:
    """Yield the extras and the dependency groups that are named after one of these kinds; None: all."""
    for name in extras:
        if _is_for(name, kinds):
            yield _Source(f"extra {name} (--extra changes it)", (f"{_ITSELF}[{name}]",))
    for name in groups:
        if _is_for(name, kinds):
            yield _Source(f"group {name} (--group changes it)", _group_requirements(groups, name))


def _words_in(name: str) -> set[str]:
    """Return the words in the name of an extra, a group or a requirements file that say what it is for."""
    return set(_BETWEEN_WORDS.split(name.lower())) - {"requirements", ""}


def _is_for(name: str, kinds: frozenset[str] | None) -> bool:
    words = _words_in(name)
    return kinds is None or (bool(words) and words <= kinds)


def _group_requirements(groups: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return a dependency group with the groups that it includes (PEP 735). Raises `UserMistake`."""
    from packaging.dependency_groups import resolve_dependency_groups

    try:
        return tuple(resolve_dependency_groups(groups, name))
    except (LookupError, ValueError, TypeError) as error:
        raise UserMistake(f"the project's dependency group {name!r} can't be read: {error}") from error


def _of_pipfile(tree: Path, table: str) -> tuple[str, ...]:
    """Return the requirements in a table of Pipenv's file that are on an index."""
    listed = read_toml(tree / "Pipfile").get(table, {})
    elsewhere = {"path", "file", "git"}
    lines = (of_poetry(*pair) for pair in listed.items() if not isinstance(pair[1], dict) or not elsewhere & {*pair[1]})
    return tuple(filter(None, lines))


def _tool_groups(pyproject: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the dependency groups of Poetry, PDM, uv and Hatch from before PEP 735."""
    tool = pyproject.get("tool", {})
    poetry, hatch = tool.get("poetry", {}), tool.get("hatch", {}).get("envs", {})
    tables = {**hatch, **poetry.get("group", {})}
    groups = {name: table.get("dependencies", ()) for name, table in tables.items() if isinstance(table, dict)}
    if "default" in groups and _FOR_TESTS.isdisjoint(groups):
        groups["dev"] = groups.pop("default")
    groups |= tool.get("pdm", {}).get("dev-dependencies", {})
    for of in (tool.get("uv", {}), poetry):
        groups |= {"dev": of["dev-dependencies"]} if "dev-dependencies" in of else {}
    lines = {
        name: [_BOUND.sub("", of_poetry(*dependency)) for dependency in listed.items()]
        if isinstance(listed, dict)
        else listed
        for name, listed in groups.items()
    }
    return {name: [text for text in texts if isinstance(text, str) and text] for name, texts in lines.items()}


def options_of_uv_add(tree: Path) -> dict[str, tuple[str, ...]]:
    """Return the options with which `uv add` changes a requirement of a project where it stands, by normalised name.

    There are none for the project's own dependencies, and for what it does not declare.
    """
    pyproject = read_toml(tree / "pyproject.toml")
    project = pyproject.get("project", {})
    groups = {**_tool_groups(pyproject), **pyproject.get("dependency-groups", {})}
    tables: list[tuple[tuple[str, ...], Iterable[str]]] = [
        *((("--optional", extra), texts) for extra, texts in project.get("optional-dependencies", {}).items()),
        *((("--dev",) if name == "dev" else ("--group", name), texts) for name, texts in groups.items()),
        ((), project.get("dependencies", ())),
    ]
    options: dict[str, tuple[str, ...]] = {}
    for words, texts in tables:
        for text in texts:
            with contextlib.suppress(InvalidRequirement, TypeError):  # a group may include another one by a table
                options[name_of(text)] = words
    return options


def _of_tox(tree: Path, pyproject: Mapping[str, Any], environment: Mapping[str, str]) -> _Source:
    """Return `deps` and `extras` of tox's base environment, from any file that tox reads."""
    native = pyproject.get("tool", {}).get("tox", {})
    base = {**read_toml(tree / "tox.toml").get("env_run_base", {}), **native.get("env_run_base", {})}
    settings = read_ini(tree / "tox.ini")
    if not settings.has_section("testenv"):
        settings = read_ini(tree / "setup.cfg")
        settings.read_string(str(native.get("legacy_tox_ini", "")))
    section = settings["testenv"] if settings.has_section("testenv") else {}
    lines = [line for line in base.get("deps", ()) if isinstance(line, str)]
    for line in section.get("deps", "").splitlines():
        named = _REFERENCE.match(line.strip())
        lines += settings.get(named[1], named[2], fallback="").splitlines() if named else [line]
    extras = [*base.get("extras", ()), *section.get("extras", "").replace(",", "\n").splitlines()]
    requirements = [f"{_ITSELF}[{str(extra).strip()}]" for extra in extras]
    for line in lines:
        requirements += _of_line(_OWN_EXTRAS.sub(_ITSELF, line.split(" #")[0].strip()), tree, environment)
    return _Source("the deps of tox (--with changes them)", tuple(requirements))


def _of_line(line: str, tree: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the requirements of one line of tox's `deps`; a line for particular environments is ignored."""
    if line.startswith("-r"):
        path = tree / line.removeprefix("-r").strip().removeprefix("{toxinidir}").lstrip("/")
        source = path.with_suffix(".in")  # the input of pip-compile
        if not path.resolve().is_relative_to(tree.resolve()):
            return ()  # the project is a stranger's, the file may be the user's
        return _of_file(source if source.is_file() else path, environment).lines
    if not line or line.startswith(("-", "#", ".", "{")) or _CONDITION.match(line):
        return ()
    return (line,)


def _requirements_files(tree: Path) -> dict[str, Path]:
    """Return the requirements files of a project by name; the input of pip-compile, NAME.in, replaces NAME.txt."""
    patterns = ["*requirements*", "requirements/*"]
    patterns += [f"{kind}/requirements*" for kind in (*_FOR_TESTS, *_FOR_DEVELOPMENT, "doc", "docs")]
    paths = [path for end in (".txt", ".in") for pattern in patterns for path in sorted(tree.glob(f"{pattern}{end}"))]
    paths = [path for path in paths if path.resolve().is_relative_to(tree.resolve())]  # a stranger may link the user's
    return {path.relative_to(tree).with_suffix("").as_posix(): path for path in paths}


def declaring(tree: Path, modules: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return the project that has each module, as far as the names tell, and the file that declares it.

    The file is "" if none does; modules that are called like their project and not declared are left out.
    """
    files = [path for name in ("pyproject.toml", "setup.cfg", "setup.py", "tox.ini") if (path := tree / name).is_file()]
    texts = {path: path.read_text("utf-8", errors="replace") for path in (*files, *_requirements_files(tree).values())}
    projects = {}
    for module in modules:
        project = CALLED.get(module, MODULES.get(module, module))
        name = re.sub(r"[-_.]", "[-_.]", normalized_name(project))
        line = re.compile(rf"(?im)(?:^|[\s\"'\[,]){name}(?![\w.-])")
        where = next((path.relative_to(tree).as_posix() for path, text in texts.items() if line.search(text)), "")
        if where or project != module:
            projects[module] = (project, where)
    return projects


def _of_file(path: Path, environment: Mapping[str, str]) -> _Source:
    try:
        if path.suffix in (".yml", ".yaml"):
            requirements = requirements_of_conda(path, environment)
        else:
            requirements = read_requirement_file(path, environment).requirements
    except UserMistake:  # nobody named this file
        return _Source()
    return _Source(f"{path.name} (--with changes it)", requirements)


def lifted(requirements: Iterable[str], *, keeping_pins: bool = False) -> tuple[str, ...]:
    """Return the requirements without exact versions, addresses and duplicates; invalid ones are left out."""
    loose: dict[str, None] = {}
    for text in requirements:
        try:
            free = unpinned(text.partition("@")[0])
            loose[text if keeping_pins else free] = None
        except InvalidRequirement:
            continue
    return tuple(loose)
