"""A project of the user's: a fresh copy of what git knows of it, built once, with its own requirements."""

from __future__ import annotations

import email.parser
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import tomllib
import zipfile
from configparser import ConfigParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen
from filelock import FileLock
from packaging.requirements import InvalidRequirement, Requirement

from harness.errors import UserMistake
from harness.model import normalized_name
from harness.request.lockfiles import environment_of
from harness.request.requirement_files import read_requirement_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from harness.environment import Interpreter, Uv, Workspace

_INSTALLABLE = ("pyproject.toml", "setup.py", "setup.cfg")
_NOT_COPIED = {
    *(".git", ".hg", ".svn", ".tox", ".nox", ".venv", "venv", "env", "node_modules", "__pycache__"),
    *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".eggs", "results"),
}
# Extras and groups with what a project's tests need, by the names that they commonly have.
_FOR_TESTS = ("test", "tests", "testing", "dev", "develop", "development")
_RAISED = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Exit)\b.*")
_NO_GIT = {  # a copy has no history to take a version from
    "SETUPTOOLS_SCM_PRETEND_VERSION": "0+copy",
    "PDM_BUILD_SCM_VERSION": "0+copy",
    "POETRY_DYNAMIC_VERSIONING_BYPASS": "0+copy",
}


@frozen
class Project:
    """A project as a probe uses it.

    `tree` is what each run gets a copy of; `built` the unpacked wheel, None where it could not be built; `told` are
    sentences on what was chosen. `requirements` are its own, with the extras and groups that were chosen.
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
        """Where its modules are found: those that were built first, then the copy itself."""
        built = [str(self.built)] if self.built is not None else []
        return (*built, ".", *(["src"] if (self.tree / "src").is_dir() else []))


def find_project(start: Path) -> Path | None:
    """The nearest folder from `start` upwards that is a project's, None if there is none below the home folder."""
    for folder in (start, *start.parents):
        if any((folder / name).is_file() for name in _INSTALLABLE) or any(folder.glob("requirements*.txt")):
            return folder
        if (folder / ".git").exists() or folder == Path.home():
            return None
    return None


@frozen
class Projects:
    """Reads projects and builds them, each content once."""

    workspace: Workspace
    uv: Uv
    interpreter: Interpreter

    def read(
        self,
        root: Path,
        extras: Iterable[str] = (),
        groups: Iterable[str] = (),
        *,
        fall_back: bool = False,
        for_tests: bool = True,
        as_of: str = "",
    ) -> Project:
        """A project with its requirements; with `fall_back` those of its requirements file where it declares none.

        Where no extra and no group is named, `for_tests` takes those that its tests need.
        It is built with what there was as of a day (ISO 8601): `as_of`, else that of its last commit.

        Raises `UserMistake` where the folder is none, or lacks what was named.
        """
        root = root.expanduser().absolute()
        if not root.is_dir():
            raise UserMistake(f"{root} is not a folder", hint="--project takes the folder of a project")
        files = sorted(_files_of(root))
        if not files:
            raise UserMistake(f"{root} has no files that git knows", hint="git add what belongs to the project")
        digest = _digest(root, files)
        home = self.workspace.projects / digest
        with FileLock(self.workspace.locks / f"project-{digest}.lock"):
            if not (home / "tree").is_dir():
                _copy(root, files, home)
            built, words = self._built(home, as_of or _last_commit(root))
        project = _with_requirements(
            Project(root, digest, home / "tree", built),
            words,
            tuple(extras),
            tuple(groups),
            self.interpreter.version,
            for_tests=for_tests,
        )
        if project.requirements or not fall_back or (file := _requirements_file(project.tree)) is None:
            return project
        lines = read_requirement_file(file, environment_of(self.interpreter.version))
        told = (*project.told, f"requirements: those of {file.name} (--with changes them)", *lines.told)
        return evolve(project, requirements=lines.requirements, told=told)

    def _built(self, home: Path, day: str) -> tuple[Path | None, str]:
        """The folder of the unpacked wheel, or why there is none."""
        site, note = home / f"built-{self.interpreter.cache_tag}", home / f"not-built-{self.interpreter.cache_tag}.txt"
        if site.is_dir():
            return site, ""
        if note.is_file():
            return None, note.read_text(encoding="utf-8")
        if not _is_installable(home / "tree"):
            return None, ""
        words = ""
        # As on the day of its last commit first: what builds an old project may have changed since.
        for date in dict.fromkeys((day, "")):
            with tempfile.TemporaryDirectory(prefix="build-", dir=self.workspace.building) as folder:
                source = Path(folder, "source")
                shutil.copytree(home / "tree", source, symlinks=True)
                newest = ("--exclude-newer", date) if date else ()
                answer = evolve(self.uv, extra_environment={**self.uv.extra_environment, **_NO_GIT}).call(
                    "build", "--wheel", *newest, "--python", self.interpreter.path,
                    "--out-dir", Path(folder, "out"), source, cwd=Path(folder),
                )  # fmt: skip
                wheel = next(Path(folder, "out").glob("*.whl"), None) if answer.returncode == 0 else None
                if wheel is not None:
                    _unpack(wheel, Path(folder, "site"))
                    Path(folder, "site").rename(site)
                    return site, ""
                words = words or _last_words(answer.words)
        note.write_text(words, encoding="utf-8")
        return None, words


def _files_of(root: Path) -> Iterator[Path]:
    """Files relative to the folder: those that git tracks, or without git all but environments and caches."""
    listed = _git(root, "ls-files", "-z", "--cached", "--recurse-submodules")
    if listed:
        yield from (Path(name) for name in listed.split("\0") if name and _is_there(root / name))
        return
    for parent, folders, names in os.walk(root):
        folders[:] = [
            name
            for name in folders
            if name not in _NOT_COPIED
            and not name.endswith(".egg-info")
            and not Path(parent, name, "pyvenv.cfg").exists()
        ]
        yield from (Path(parent, name).relative_to(root) for name in names)


def _is_environment(folder: Path) -> bool:
    return (folder / "pyvenv.cfg").exists()


def _is_there(path: Path) -> bool:
    return path.is_symlink() or path.is_file()


def _git(root: Path, *words: str) -> str:
    try:
        answer = subprocess.run(
            ["git", "-C", str(root), *words], capture_output=True, text=True, timeout=60, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.stdout if answer.returncode == 0 else ""


def _last_commit(root: Path) -> str:
    return _git(root, "log", "-1", "--format=%cI").strip()


def _digest(root: Path, files: Iterable[Path]) -> str:
    """Of the content of all files, so that a changed test is a new question."""
    digest = hashlib.sha256()
    for file in files:
        path = root / file
        content = str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()
        mode = b"" if path.is_symlink() or not path.stat().st_mode & 0o100 else b"x"
        digest.update(b"\0".join([str(file).encode(), mode, hashlib.sha256(content).digest()]))
    return digest.hexdigest()[:20]


def _copy(root: Path, files: Iterable[Path], home: Path) -> None:
    home.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix="tree-", dir=home))
    for file in files:
        target = partial / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / file, target, follow_symlinks=False)
    partial.chmod(0o755)
    partial.rename(home / "tree")


def _is_installable(tree: Path) -> bool:
    if (tree / "setup.py").is_file():
        return True
    pyproject = _toml(tree / "pyproject.toml")
    if "project" in pyproject or "build-system" in pyproject or "poetry" in pyproject.get("tool", {}):
        return True
    settings = ConfigParser(interpolation=None)
    settings.read(tree / "setup.cfg", encoding="utf-8")
    return settings.has_option("metadata", "name")


def _toml(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserMistake(f"can't read {path.name} of the project: {error}") from error


def _unpack(wheel: Path, site: Path) -> None:
    """The wheel's files as an installer places them; console scripts as small programs below `bin`."""
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(site)
    for data in list(site.glob("*.data")):
        for kind in ("purelib", "platlib"):
            if (data / kind).is_dir():
                shutil.copytree(data / kind, site, dirs_exist_ok=True)
        if (data / "scripts").is_dir():
            shutil.copytree(data / "scripts", site / "bin", dirs_exist_ok=True)
        shutil.rmtree(data)
    for points in site.glob("*.dist-info/entry_points.txt"):
        settings = ConfigParser(interpolation=None, delimiters=("=",))
        settings.optionxform = str  # type: ignore[method-assign,assignment]
        settings.read(points, encoding="utf-8")
        for name, where in settings.items("console_scripts") if settings.has_section("console_scripts") else ():
            module, _, attribute = where.split("[")[0].strip().partition(":")
            (site / "bin").mkdir(exist_ok=True)
            call = f"getattr(import_module({module!r}), {attribute!r})()" if "." not in attribute else "main()"
            program = f"#!/usr/bin/env python\nimport sys\nfrom importlib import import_module\nsys.exit({call})\n"
            (site / "bin" / name).write_text(program, encoding="utf-8")
    for script in (site / "bin").glob("*"):
        script.chmod(0o755)


def _last_words(words: str) -> str:
    lines = [line.strip() for line in words.splitlines() if line.strip() and not line.strip().startswith("hint")]
    raised = [line for line in lines if _RAISED.match(line)]
    return (raised or lines or ["it said nothing"])[-1]


def _with_requirements(
    project: Project, words: str, extras: tuple[str, ...], groups: tuple[str, ...], python: str, *, for_tests: bool
) -> Project:
    """The project's own requirements, and what was chosen of them."""
    told: list[str] = []
    environment = environment_of(python)
    pyproject = _toml(project.tree / "pyproject.toml")
    metadata = _metadata(project.built) if project.built is not None else None
    name = metadata["name"] if metadata else str(pyproject.get("project", {}).get("name", ""))
    offered = dict(metadata["extras"]) if metadata else _static_extras(pyproject)
    known_groups = pyproject.get("dependency-groups", {})
    for kind, wanted, known in (("extra", extras, offered), ("group", groups, known_groups)):
        for one in wanted:
            if normalized_name(one) not in {normalized_name(name) for name in known}:
                raise UserMistake(
                    f"{project.root.name} has no {kind} {one!r}", hint=f"it has: {', '.join(known) or 'none'}"
                )
    if for_tests and not extras and not groups:
        extras, groups = _for_tests(offered), _for_tests(known_groups)
        told += [f"{kind} {', '.join(chosen)} (--{kind} changes it)"
                 for kind, chosen in (("extra", extras), ("group", groups)) if chosen]  # fmt: skip
    found = list(metadata["requires"]) if metadata else list(pyproject.get("project", {}).get("dependencies", ()))
    requirements = [*_chosen(found, name, extras, environment, offered if not metadata else {})]
    requirements += [text for group in groups for text in _group(known_groups, group)]
    if words:
        told.append(f"could not be built, so its modules are taken from the folder itself: {words}")
    return evolve(
        project,
        name=normalized_name(name) if name else "",
        requirements=tuple(dict.fromkeys(requirements)),
        told=tuple(told),
    )


def _metadata(built: Path) -> dict[str, Any] | None:
    for path in built.glob("*.dist-info/METADATA"):
        message = email.parser.HeaderParser().parsestr(path.read_text(encoding="utf-8"))
        return {
            "name": str(message["Name"]),
            "requires": message.get_all("Requires-Dist") or [],
            "extras": dict.fromkeys(message.get_all("Provides-Extra") or []),
        }
    return None


def _static_extras(pyproject: Mapping[str, Any]) -> dict[str, list[str]]:
    return dict(pyproject.get("project", {}).get("optional-dependencies", {}))


def _for_tests(names: Iterable[str]) -> tuple[str, ...]:
    """The first kind of name that has to do with tests."""
    known = {normalized_name(name): name for name in names}
    return tuple(known[name] for name in _FOR_TESTS if name in known)[:1]


def _chosen(
    lines: Iterable[str],
    name: str,
    extras: tuple[str, ...],
    environment: Mapping[str, str],
    static: Mapping[str, list[str]],
) -> Iterator[str]:
    """Requirements whose markers hold here with one of the extras; a project may name its own extras again."""
    wanted = {normalized_name(extra) for extra in extras}
    pending = [*lines, *(line for extra in extras for line in static.get(extra, ()))]
    every, seen = list(pending), set(wanted)
    while pending:
        text = pending.pop(0)
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            raise UserMistake(f"the project asks for {text!r}, which is not a requirement") from error
        marker = requirement.marker
        if marker is not None and not any(marker.evaluate({**environment, "extra": e}) for e in ("", *sorted(seen))):
            continue
        requirement.marker = None
        if name and normalized_name(requirement.name) == normalized_name(name):
            more = {normalized_name(extra) for extra in requirement.extras} - seen
            seen |= more
            pending += every if more else []
            continue
        yield str(requirement)


def _group(groups: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """A dependency group with those that it includes (PEP 735)."""
    from packaging.dependency_groups import resolve_dependency_groups

    try:
        return tuple(resolve_dependency_groups(groups, name))
    except (LookupError, ValueError, TypeError) as error:
        raise UserMistake(f"the project's dependency group {name!r} can't be read: {error}") from error


def _requirements_file(tree: Path) -> Path | None:
    names = ("requirements.txt", "requirements-dev.txt", "requirements-test.txt", "requirements_test.txt")
    found = [tree / name for name in names if (tree / name).is_file()]
    return found[0] if found else next(iter(sorted(tree.glob("requirements*.txt"))), None)
