"""Reads pins: pip freeze, requirements, pylock.toml, locks of uv, Poetry, PDM, Pipenv, conda and pixi, an environment.

Entries that are not on an index (an editable install, a folder, an archive, a repository) are replaced by releases of
their project, and reported. Markers select the entries for this machine.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen
from packaging.markers import InvalidMarker, Marker, UndefinedEnvironmentName, default_environment
from packaging.requirements import InvalidRequirement, Requirement

from harness.environment.index import at_once
from harness.errors import UserMistake
from harness.model import name_of, normalized_name, parsed_version
from harness.model.requirements import exact_version
from harness.model.text import listed
from harness.question.conda import PIXI, SUFFIXES, CondaPackage, read_conda
from harness.redact import hide_secrets
from harness.repository.declared import read_toml
from harness.repository.git import without_credentials

if TYPE_CHECKING:
    from harness.environment import Index
    from harness.environment.interpreter import Installed

# Damaged files may have a number in place of a table, or lists nested thousands of levels deep.
_NOT_SUCH_A_FILE = (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError)
# The parser takes minutes for a line of a few hundred kilobytes. A backslash continues a line, as for hashes.
_LINES = re.compile(r"(?<!\\)\n")
_OF_A_PROJECT = (".git", "pyproject.toml", "setup.py")
_LONGEST_LINE = 50_000
_NEEDS = ("dependencies", "optional-dependencies", "dev-dependencies")
_ELSEWHERE = ("git", "hg", "url", "path", "file", "directory", "editable")
LOCAL_PROJECT = "is a local project"
# conda's packages say in which folder they were built, on a machine of conda.
_BUILT_BY_CONDA = re.compile(r"^file:.*/(?:feedstock_root|conda-bld|croot)/")
_SHOWN = 6  # packages that are named
_INSTALLERS = frozenset({"pip", "wheel"})


@frozen
class LockFormat:
    """A format of lock files: the `name` that its tool gives them, and the commands with which the tool edits one.

    `pin` puts packages at versions, with `option` before each, and `remove` takes packages out; () without such a
    command. With `has_entries`, each package is a table of TOML, which can be exchanged as text.
    """

    name: str
    pin: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    option: str = ""
    has_entries: bool = True


FORMATS = (
    LockFormat("uv.lock", ("uv", "lock"), ("uv", "remove"), "--upgrade-package"),
    LockFormat("poetry.lock", ("poetry", "add", "--lock"), ("poetry", "remove", "--lock")),
    LockFormat("pdm.lock", ("pdm", "add", "--no-sync"), ("pdm", "remove", "--no-sync")),
    LockFormat("pylock.toml"),
    LockFormat("Pipfile.lock", ("pipenv", "upgrade"), ("pipenv", "uninstall"), has_entries=False),
    LockFormat(PIXI, has_entries=False),
    LockFormat("conda-lock.yml", has_entries=False),
)
ENDINGS = tuple(dict.fromkeys((".txt", ".in", *SUFFIXES, *(PurePath(known.name).suffix for known in FORMATS))))


def format_of(file: str) -> LockFormat | None:
    """Return the format of a lock file with its usual name; None for any other file."""
    return next((known for known in FORMATS if known.name == PurePath(file).name), None)


@frozen
class Pins:
    """The packages in a lock file, as requirements; `notes` are sentences about those that are not on an index.

    `python` is the Python version that the file names, "" if none. The project's own entry is left out. `conda` are the
    packages of conda, of which an index may have some.
    """

    requirements: tuple[str, ...]
    notes: tuple[str, ...] = ()
    python: str = ""
    conda: tuple[CondaPackage, ...] = ()

    @property
    def all_requirements(self) -> tuple[str, ...]:
        """The requirements, and those of conda's packages."""
        return (*self.requirements, *(package.requirement for package in self.conda if package.requirement))

    @property
    def apart(self) -> dict[str, str]:
        """The packages of conda, with their versions."""
        return {package.name: package.version for package in self.conda}

    @property
    def is_exact(self) -> bool:
        """Whether each requirement names exactly one version."""
        return all("==" in text and "*" not in text for text in self.requirements)


@frozen
class _Entry:
    """A package; `elsewhere` is its source if that is no index, `requirement` the line of a text file that names it."""

    name: str
    version: str = ""
    elsewhere: str = ""
    requirement: str = ""


def environment_of(python: str) -> dict[str, str]:
    """Return the marker variables for a Python of this version ("3.11.7") on this machine."""
    variables = {key: str(value) for key, value in default_environment().items()}
    minor = ".".join(python.split(".")[:2])
    return {
        **variables,
        "python_version": minor,
        "python_full_version": python,
        "implementation_version": python,
        "extra": "",
    }


def read_pins(path: Path, python: str) -> Pins:
    """Read a file for a Python of this version. Raises `UserMistake` if it can't be read, or pins nothing."""
    try:
        pins = _pins_in(path, environment_of(python))
    except _NOT_SUCH_A_FILE as error:
        raise UserMistake(
            f"{path} does not have the format that its name says ({type(error).__name__})",
            hint="was it changed by hand?",
        ) from error
    if not pins.requirements and not any(package.requirement for package in pins.conda):
        raise UserMistake(f"{path} lists no package that an index has", hint="is it the right file?")
    return pins


def _pins_in(path: Path, environment: Mapping[str, str]) -> Pins:
    if path.suffix in SUFFIXES or path.name == PIXI:
        return _conda(path, environment)
    if path.name == "Pipfile.lock":
        content = json.loads(path.read_text(encoding="utf-8"))
        named = (pair for group in ("default", "develop") for pair in content.get(group, {}).items())
        packages = [{**package, "name": name} for name, package in named]
        python = content["_meta"].get("requires", {}).get("python_version", "")
        return evolve(_pins_of(_listed(packages, environment)), python=python)
    if path.suffix in (".toml", ".lock"):
        content = read_toml(path)
        if path.match("pylock*.toml") or ("lock-version" in content and "packages" in content):
            return _pins_of(_listed(content["packages"], environment))
        if "package" in content and "metadata" in content:
            return _pins_of(_listed(content["package"], environment))
        if "version" in content:
            return _pins_of(_listed(_reached(content, environment), environment))
    if path.suffix == ".toml":
        raise UserMistake(
            f"{path} is not a lock file",
            hint=f"known lock files are {', '.join(known.name for known in FORMATS)}",
        )
    return read_requirement_file(path, environment)


def _pins_of(entries: Iterable[_Entry]) -> Pins:
    requirements: dict[str, str] = {}
    notes: list[str] = []
    for entry in entries:
        name = normalized_name(entry.name)
        if entry.elsewhere:
            instead = f"release {entry.version}" if entry.version else f"releases of {name}"
            where = f"{_shown(entry.elsewhere)} is not on an index"
            notes.append(f"{name} of {where}: replaced by {instead}" if name else f"{where}: left out")
        if name:
            requirements[entry.requirement or name] = entry.requirement or (
                f"{name}=={entry.version}" if entry.version else name
            )
    return Pins(tuple(requirements.values()), tuple(notes))


def _reached(content: dict[str, Any], environment: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the packages of a uv.lock that the project needs on this machine, including its extras and groups."""
    packages: dict[str, dict[str, Any]] = {}
    # Of several versions of a project, the one whose markers apply comes first.
    for package in sorted(content.get("package", []), key=lambda candidate: not _fits(candidate, environment)):
        packages.setdefault(package["name"], package)
    members = {*content.get("manifest", {}).get("members", ())}
    own = [package for name, package in packages.items() if _is_own(package) or name in members]
    waiting = [need for package in own for kind in _NEEDS for need in _needs(package, kind)]
    # By name and extra; "" is the package itself.
    reached: set[tuple[str, str]] = set() if own else {(name, "") for name in packages}
    while waiting:
        need = waiting.pop()
        package = packages.get(need["name"], {})
        for extra in ("", *need.get("extra", ())) if _holds(need.get("marker", ""), environment) else ():
            if (need["name"], extra) not in reached:
                reached.add((need["name"], extra))
                optional = package.get("optional-dependencies", {})
                waiting += optional.get(extra, ()) if extra else _needs(package, "dependencies")
    owned = {package["name"] for package in own}
    return [package for name, package in sorted(packages.items()) if (name, "") in reached and name not in owned]


def _fits(package: Mapping[str, Any], environment: Mapping[str, str]) -> bool:
    return any(_holds(marker, environment) for marker in package.get("resolution-markers") or [""])


def _is_own(package: Mapping[str, Any]) -> bool:
    source = package.get("source", {})
    return "virtual" in source or source.get("editable") == "."


def _needs(package: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    needs = package.get(kind, [])
    return [need for group in needs.values() for need in group] if isinstance(needs, dict) else needs


def _listed(packages: Iterable[Mapping[str, Any]], environment: Mapping[str, str]) -> Iterator[_Entry]:
    """Yield the packages in these tables of a pylock.toml (PEP 751), or of a lock of uv, Poetry, PDM or Pipenv."""
    for package in packages:
        markers = package.get("markers", package.get("marker", ""))
        where = _elsewhere(package)
        applies = (
            _holds(marker, environment) for marker in (markers.values() if isinstance(markers, dict) else [markers])
        )
        if where not in (".", "./") and any(applies):
            yield _Entry(package["name"], package.get("version", "").removeprefix("=="), where)


def _elsewhere(package: Mapping[str, Any]) -> str:
    """Return where a package is, "" if it is on an index."""
    source = package.get("source", {})
    if "type" in source:  # of Poetry
        return str(source["url"]) if source["type"] in ("git", "url", "directory", "file") else ""
    of_pylock = (package[kind] for kind in ("vcs", "directory", "archive") if kind in package)
    return next(
        (str(table[kind]) for table in (source, *of_pylock, package) for kind in _ELSEWHERE if kind in table), ""
    )


def _conda(path: Path, environment: Mapping[str, str]) -> Pins:
    content = read_conda(path, environment)
    pip = _pins_of(_listed(content.tables, environment))
    lines = _read_lines(content.lines, environment) if content.lines else Pins(())
    notes = (*content.notes, *pip.notes, *lines.notes)
    return Pins((*pip.requirements, *lines.requirements), notes, content.python, content.packages)


def with_conda(pins: Pins, index: Index, where: str) -> Pins:
    """Return the pins of the file `where` with the releases of an index that have name and version of conda's packages.

    The packages of conda that are left are those without one. Raises `UserMistake` if nothing else is, and `NoNetwork`.
    """
    if not pins.conda:
        return pins
    named = set(map(name_of, pins.requirements))
    wanted = [package for package in pins.conda if package.requirement and name_of(package.requirement) not in named]

    def is_known(package: CondaPackage) -> bool:
        exact = exact_version(package.requirement)
        name = name_of(package.requirement)
        return index.known_release(*exact) is not None if exact else bool(index.known_releases(name))

    taken = [package for package, known in zip(wanted, at_once(is_known, wanted), strict=True) if known]
    left = tuple(
        package for package in pins.conda if package not in taken and normalized_name(package.name) not in named
    )
    notes = list(pins.notes)
    if taken:
        names = listed((package.name for package in taken), _SHOWN)
        notes.append(f"{where}: taken from PyPI, where conda's package has the same name and version: {names}")
    if left:
        notes.append(
            f"{where}: left out, because only conda has them: {listed((package.name for package in left), _SHOWN)}"
        )
    requirements = (*pins.requirements, *(package.requirement for package in taken))
    if not requirements:
        raise UserMistake(f"{where} lists no package that an index has", hint="is it the right file?")
    return evolve(pins, requirements=requirements, notes=tuple(notes), conda=left)


def _read_lines(lines: Iterable[str], environment: Mapping[str, str]) -> Pins:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "requirements.txt")
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return read_requirement_file(file, environment)


def requirements_of_conda(path: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return what a conda environment file requires, with conda's own packages by the names that they have on PyPI.

    Python and pip are left out. Raises `UserMistake`.
    """
    content = read_conda(path, environment)
    named = [line for line in content.lines if not line.lstrip().startswith(("-", "."))]
    requirements = (package.requirement for package in content.packages if package.requirement)
    return (*requirements, *_read_lines(named, environment).requirements)


def _holds(marker: str, environment: Mapping[str, str]) -> bool:
    if not marker:
        return True
    try:
        return Marker(marker).evaluate(dict(environment))
    except (InvalidMarker, UndefinedEnvironmentName):
        return True


def read_requirement_file(path: Path, environment: Mapping[str, str]) -> Pins:
    """Read a file of requirement lines; `environment` has the marker variables. Raises `UserMistake`.

    A line with a folder, an archive or a repository is replaced by its project's name, or left out if it has none.
    """
    from pip_requirements_parser import InstallationError, RequirementsFile

    try:
        if any(len(line) > _LONGEST_LINE for line in _LINES.split(path.read_text(encoding="utf-8", errors="replace"))):
            raise UserMistake(f"can't read {path}: one of its lines is too long to be a requirement")
        parsed = RequirementsFile.from_file(str(path), include_nested=True)
    except (OSError, UnicodeDecodeError, InstallationError) as error:
        raise UserMistake(f"can't read {path}: {error}") from error
    if outside := _outside(path, [line.requirement_line for line in parsed.requirements] + parsed.invalid_lines):
        raise UserMistake(f"{path} names {outside}, which is outside its project", hint="name it yourself, with -r too")
    if parsed.invalid_lines:
        line = parsed.invalid_lines[0]
        raise _not_a_requirement(line)
    pins = _pins_of(_entries(parsed.requirements, environment))
    if any(map(_names_an_index, parsed.options)):
        note = f"{path.name} names an index of its own, which is not used: uv and pip can be configured with it"
        return evolve(pins, notes=(*pins.notes, note))
    return pins


def _names_an_index(line: Any) -> bool:
    return any(line.options.get(name) for name in ("index_url", "extra_index_urls", "find_links"))


def _outside(path: Path, lines: Iterable[Any]) -> str:
    """Return the first file with one of these lines that is neither beside `path` nor in its project, "" if none is."""
    own = path.absolute().parent.resolve()
    roots = [own, *(folder for folder in own.parents if any((folder / name).exists() for name in _OF_A_PROJECT))]
    files = {str(line.filename) for line in lines} - {str(path)}
    return next((name for name in sorted(files) if not any(map(Path(name).resolve().is_relative_to, roots))), "")


def _not_a_requirement(line: Any) -> UserMistake:
    """Name a line; what is in it is not shown, since a stranger's file may name one of the user's with its -r."""
    return UserMistake(f"{line.filename}, line {line.line_number}: can't be read as a requirement")


def _entries(lines: Iterable[Any], environment: Mapping[str, str]) -> Iterator[_Entry]:
    for line in lines:
        if not _holds(str(line.marker or ""), environment):
            continue
        if line.link is not None or line.is_editable:
            yield _Entry(line.name or "", elsewhere=line.link.url if line.link is not None else line.line)
            continue
        try:
            requirement = Requirement(str(line.req or ""))
        except InvalidRequirement:
            raise _not_a_requirement(line.requirement_line) from None
        requirement.marker = None
        yield _Entry(requirement.name, requirement=str(requirement))


def installed_pins(installed: Installed, where: str) -> Pins:
    """Return the pins of the environment `where`. Raises `UserMistake` if nothing is installed there."""
    entries, notes = [], []
    for name, release, origin in installed.packages:
        project = normalized_name(name)
        if project in _INSTALLERS:
            continue
        if parsed_version(release) is None:
            notes.append(f"{project} is installed without a version: left out")
        elif _BUILT_BY_CONDA.search(origin):
            entries.append(_Entry(project, release))
        elif origin.startswith("file:"):
            notes.append(f"{project} of {origin.removeprefix('file://')} {LOCAL_PROJECT}: left out")
        else:
            entries.append(_Entry(project, release, origin))
    if not entries:
        raise UserMistake(f"nothing is installed in {where}")
    pins = _pins_of(entries)
    return Pins(pins.requirements, (*notes, *pins.notes), installed.version)


def _shown(address: str) -> str:
    """Return the address of a package for people: without passwords and tokens."""
    return hide_secrets(without_credentials(address))
