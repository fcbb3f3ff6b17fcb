"""Reads what the files of a project declare, without running code: pyproject.toml, setup.cfg, literals in setup.py.

Also finds the folder of a repository that a project is built from: the root, or a folder of a monorepo.
"""

from __future__ import annotations

import ast
import re
import tomllib
from configparser import ConfigParser
from configparser import Error as BadConfig
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from attrs import field, frozen
from packaging.requirements import InvalidRequirement, Requirement

from harness.errors import UserMistake
from harness.model import normalized_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harness.repository.git import Repository, TreeEntry

_POETRY = re.compile(r"([\^~]?)\s*(\d+(?:\.\d+)*)")
FILES = ("pyproject.toml", "setup.cfg", "setup.py")
_FOLDER = re.compile(r"^(?:-e|--editable)?[\s=]*(?P<path>\.{1,2}/[^\s\[;#]*)", re.MULTILINE)


@frozen
class Declared:
    """What a project declares: its name, requirements, extras, and those of its tests; computed values are left out.

    `is_complete` says that `requires` are all of its requirements, because none is computed.
    """

    name: str = ""
    requires: tuple[str, ...] = ()
    extras: Mapping[str, tuple[str, ...]] = field(factory=dict)
    tests: tuple[str, ...] = ()
    is_complete: bool = False


def declared(texts: Mapping[str, str]) -> Declared:
    """Return what these files (name -> text) declare; a file that can't be parsed declares nothing."""
    in_toml, in_cfg, in_setup = (texts.get(name, "") for name in FILES)
    toml, settings, literal = _toml(in_toml), _ini(in_cfg), _arguments_of_setup(in_setup)
    project, poetry = _table(toml, "project"), _table(_table(toml, "tool"), "poetry")
    sections = {name: dict(settings[name]) for name in settings}
    options, setup_extras = _table(sections, "options"), _table(literal, "extras_require")
    extras = {**_table(sections, "options.extras_require"), **setup_extras, **_table(project, "optional-dependencies")}
    names = (project.get("name"), poetry.get("name"), settings.get("metadata", "name", fallback=""))
    name = next((text for text in (*names, literal.get("name")) if text and isinstance(text, str)), "")
    requires = (*_lines(options.get("install_requires")), *_lines(literal.get("install_requires")))
    given = literal.get("install_requires")
    is_complete = "install_requires" in options or (isinstance(given, list) and None not in given)
    needs = _table(poetry, "dependencies")
    poetry_needs = {key: of_poetry(key, value) for key, value in needs.items()}
    if poetry_needs and not requires:
        requires = tuple(text for key, text in poetry_needs.items() if text and not _is_optional(needs[key]))
        in_extras = _table(poetry, "extras")
        extras |= {
            key: [poetry_needs.get(package, "") for package in _lines(value)] for key, value in in_extras.items()
        }
    if "project" in toml and "dependencies" not in project.get("dynamic", ()):
        requires, is_complete = _lines(project.get("dependencies")), True
    return Declared(
        name,
        requires,
        {key: _lines(value) for key, value in extras.items() if isinstance(key, str)},
        (*_lines(options.get("tests_require")), *_lines(literal.get("tests_require"))),
        is_complete and all(map(_is_requirement, requires)),
    )


def declared_in(folder: Path) -> Declared:
    """Return what the files of a folder declare."""
    return declared({name: text_of(folder / name) for name in FILES if (folder / name).is_file()})


def declared_requirements(texts: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the requirements in these files (name -> text), or None if they can't be read without running code."""
    declaration = declared(texts)
    return declaration.requires if declaration.is_complete else None


def of_poetry(name: str, wanted: object) -> str:
    """Convert a requirement of Poetry to one of pip; "" for Python itself, without the versions if pip has no word."""
    extras = ""
    if isinstance(wanted, dict):
        extras = f"[{','.join(wanted['extras'])}]" if wanted.get("extras") else ""
        wanted = wanted.get("version", "")
    if name == "python":
        return ""
    parts = [part.strip() for part in wanted.split(",")] if isinstance(wanted, str) else [""]
    text = f"{name}{extras}{','.join(map(_bounds, parts))}"
    return text if _is_requirement(text) else f"{name}{extras}"


def _bounds(part: str) -> str:
    """Return the bounds of one part of Poetry's versions: ^1.2 allows 1.x, ~1.2 allows 1.2.x, 1.2 is exact."""
    match = _POETRY.fullmatch(part)
    if match is None:
        return "" if part == "*" else part
    sign, release = match[1], [int(number) for number in match[2].split(".")]
    if not sign:
        return f"=={part}"
    fixed = next((at for at, number in enumerate(release) if number), len(release) - 1)
    length = fixed if sign == "^" else min(1, len(release) - 1)
    above = ".".join(map(str, [*release[:length], release[length] + 1]))
    return f">={match[2]},<{above}"


def _is_optional(wanted: object) -> bool:
    return isinstance(wanted, dict) and bool(wanted.get("optional"))


def text_to_read(path: Path, what: str, mistake: type[UserMistake]) -> str:
    """Return the text of a file that the user named; raises `mistake` if it can't be read, with `what` it is."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise mistake(f"can't read {what} {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise mistake(f"{what} {path} is not text in UTF-8") from error


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file; returns {} if there is none. Raises `UserMistake` if it can't be read."""
    if not path.is_file():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise UserMistake(f"can't read {path}: {error}") from error


def local_sources(folder: Path) -> dict[str, Path]:
    """Return the folders that a project takes in place of releases, by the normalised names of their projects.

    Those of uv, with its workspace, and of Poetry; only in the same repository or workspace. Raises `UserMistake`.
    """
    folder = folder.resolve()
    workspace = next((parent for parent in (folder, *folder.parents) if _of_uv(parent).get("workspace")), folder)
    members: dict[str, Path] = {}
    for pattern in _of_uv(workspace).get("workspace", {}).get("members", ()):
        for member in sorted(workspace.glob(pattern)):
            if name := declared_in(member).name:
                members[normalized_name(name)] = member
    poetry = read_toml(folder / "pyproject.toml").get("tool", {}).get("poetry", {})
    tables = [poetry, *poetry.get("group", {}).values()]
    sources = {
        normalized_name(name): (base, source)
        for base, listed in (
            (workspace, _of_uv(workspace).get("sources", {})),
            (folder, _of_uv(folder).get("sources", {})),
            *((folder, table.get("dependencies", {})) for table in tables),
        )
        for name, several in listed.items()
        for source in (several if isinstance(several, list) else [several])
        if isinstance(source, dict)
    }
    found = {
        name: (base / str(source["path"])).resolve() if "path" in source else members.get(name)
        for name, (base, source) in sources.items()
        if "path" in source or source.get("workspace")
    }
    return _inside(folder, ((name, path) for name, path in found.items() if path is not None), workspace)


def listed_folders(folder: Path) -> dict[str, Path]:
    """Return the folders that the requirements files of a project list, as `local_sources` does; without its own.

    Those are lines such as `-e ./libs/shop`. Raises `UserMistake`.
    """
    folder = folder.resolve()
    files = (*folder.glob("requirements*.txt"), *folder.glob("requirements/*.txt"))
    lines = (match["path"] for file in sorted(files) for match in _FOLDER.finditer(text_of(file)))
    paths = [path for path in dict.fromkeys((folder / line).resolve() for line in lines) if path != folder]
    return _inside(folder, ((declared_in(path).name, path) for path in paths if path.is_dir()), folder)


def _inside(folder: Path, found: Iterable[tuple[str, Path]], top: Path) -> dict[str, Path]:
    """Return those in the repository of a folder, or without one in `top`: a stranger may name the user's."""
    top = next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), top)
    return {normalized_name(name): path for name, path in found if name and path.is_dir() and top in path.parents}


def _of_uv(folder: Path) -> dict[str, Any]:
    of_uv = read_toml(folder / "pyproject.toml").get("tool", {}).get("uv", {})
    return of_uv if isinstance(of_uv, dict) else {}


def read_ini(path: Path) -> ConfigParser:
    """Read an INI file; the result is empty if there is none or it can't be read."""
    return _ini(text_of(path))


def project_folder(repository: Repository, sha: str, project: str = "") -> str:
    """Return the folder of a project in a commit, "" for the root.

    It is the folder that the user named, if that has a project. Otherwise it is the outermost one whose metadata has
    the name `project`, then the outermost one with that folder name, then the root. A commit with only one project, in
    a folder, needs no name. Raises `BadRepository`.
    """
    tree = repository.tree(sha)
    folders = sorted(
        {str(path.parent) for path in map(PurePosixPath, tree) if path.name in FILES},
        key=lambda folder: (folder.count("/") + (folder != "."), folder),
    )
    wanted = normalized_name(project)
    if (named := repository.inside) in folders:
        return named
    if not wanted or len(folders) < 2:
        return "" if "." in folders or len(folders) != 1 else folders[0]
    names = {folder: declared(project_files(repository, tree, folder)).name for folder in folders}
    by_name = [folder for folder in folders if normalized_name(names[folder]) == wanted]
    by_path = [folder for folder in folders if normalized_name(PurePosixPath(folder).name) == wanted]
    # If the root computes its name, it may be `project`, so a folder's name decides nothing.
    matching = by_name or ([] if "." in folders and not names["."] else by_path)
    return matching[0].removeprefix(".") if matching else ""


def project_files(repository: Repository, tree: Mapping[str, TreeEntry], folder: str) -> dict[str, str]:
    """Return the texts of a folder's project metadata files, by name."""
    paths = {name: str(PurePosixPath(folder, name)) for name in FILES}
    blobs = {name: tree[path].blob for name, path in paths.items() if path in tree and tree[path].is_regular}
    contents = repository.contents(blobs.values())
    return {name: contents[blob].decode("utf-8", "replace") for name, blob in blobs.items()}


def _arguments_of_setup(text: str) -> dict[str | None, Any]:
    """Return the arguments of the call of `setup` in a setup.py, where they are literals or names of literals.

    None is in place of each part that is no literal. A name that is assigned more than once is none.
    """
    nodes = nodes_in(text)
    named: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                named.setdefault(ast.unparse(target), []).append(node.value)

    def value(node: ast.expr | None, depth: int = 3) -> Any:
        if isinstance(node, ast.Name) and depth and len(assigned := named.get(node.id, [])) == 1:
            return value(assigned[0], depth - 1)
        if isinstance(node, ast.List | ast.Tuple):
            return [value(element, depth) for element in node.elts]
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            return {value(key): value(item, depth) for key, item in pairs if isinstance(key, ast.Constant)}
        return node.value if isinstance(node, ast.Constant) else None

    calls = [
        node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "setup"
    ]
    return {keyword.arg: value(keyword.value) for call in calls for keyword in call.keywords}


def nodes_in(text: str | bytes) -> list[ast.AST]:
    """Return all nodes of a syntax tree; empty if the text can't be parsed."""
    try:
        return list(ast.walk(ast.parse(text)))
    except (ValueError, SyntaxError, RecursionError):
        return []


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def _ini(text: str) -> ConfigParser:
    settings = ConfigParser(interpolation=None, strict=False)
    try:
        settings.read_string(text)
    except BadConfig:
        return ConfigParser(interpolation=None)
    return settings


def text_of(path: Path) -> str:
    """Return the text of a file, "" if it can't be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _table(parent: Mapping[Any, Any], key: str) -> dict[str, Any]:
    value = parent.get(key)
    return value if isinstance(value, dict) else {}


def _lines(value: object) -> tuple[str, ...]:
    """Return requirement lines from a form that setuptools accepts: a text of lines, or a list."""
    lines: Iterable[object] = value.splitlines() if isinstance(value, str) else value if isinstance(value, list) else ()
    texts = (line.strip() for line in lines if isinstance(line, str))
    return tuple(text for text in texts if text and not text.startswith(("#", "file:")))


def _is_requirement(text: str) -> bool:
    try:
        Requirement(text)
    except InvalidRequirement:
        return False
    return True
