"""Reads what a project declares without running it: pyproject.toml, setup.cfg, and literals in setup.py."""

from __future__ import annotations

import ast
import tomllib
from configparser import ConfigParser
from configparser import Error as BadConfig
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from harness.errors import UserMistake

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@frozen
class Declared:
    """The arguments of `setup()`: requirements, extras, and `tests_require`."""

    requires: tuple[str, ...] = ()
    extras: Mapping[str, tuple[str, ...]] = field(factory=dict)
    tests: tuple[str, ...] = ()
    name: str = ""


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file; returns {} if there is none. Raises `UserMistake` if it can't be read."""
    if not path.is_file():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserMistake(f"can't read {path.name} of the project: {error}") from error


def read_ini(path: Path) -> ConfigParser:
    """Read an INI file; the result is empty if there is none or it can't be read."""
    settings = ConfigParser(interpolation=None, strict=False)
    try:
        settings.read(path, encoding="utf-8")
    except (BadConfig, UnicodeDecodeError):
        return ConfigParser(interpolation=None)
    return settings


def declared_in_setup(tree: Path) -> Declared:
    """Return what setup.cfg and the literals in setup.py declare; computed values are left out."""
    settings = read_ini(tree / "setup.cfg")
    options = settings["options"] if settings.has_section("options") else {}
    section = "options.extras_require"
    extras = dict(settings[section]) if settings.has_section(section) else {}
    literal = _literals(tree / "setup.py")
    more = literal.get("extras_require")
    found = {name: _lines(text) for name, text in (*extras.items(), *(more.items() if isinstance(more, dict) else ()))}
    name = literal.get("name") or settings.get("metadata", "name", fallback="")
    return Declared(
        (*_lines(options.get("install_requires")), *_lines(literal.get("install_requires"))),
        found,
        (*_lines(options.get("tests_require")), *_lines(literal.get("tests_require"))),
        name if isinstance(name, str) else "",
    )


def _lines(value: object) -> tuple[str, ...]:
    """Return requirement lines from a form that setuptools accepts: a text of lines, or a list."""
    lines = value.splitlines() if isinstance(value, str) else value if isinstance(value, (list, tuple)) else ()
    return tuple(line.strip() for line in lines if isinstance(line, str) and line.strip() and line.strip()[0] != "#")


def _literals(path: Path) -> dict[str, Any]:
    """Return the keyword arguments of the call of `setup` that are literals, or names assigned to literals."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError, RecursionError):
        return {}
    named = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called(node.func) == "setup":
            for keyword in node.keywords:
                value = named.get(keyword.value.id) if isinstance(keyword.value, ast.Name) else keyword.value
                if keyword.arg and value is not None:
                    found[keyword.arg] = _value(value, named)
    return found


def _called(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _value(node: ast.expr, named: Mapping[str, ast.expr], depth: int = 3) -> Any:
    """Return the value of a literal; a value that is not a literal is None, a dict key that is not one is left out."""
    if isinstance(node, ast.Name) and depth and node.id in named:
        return _value(named[node.id], named, depth - 1)
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_value(one, named, depth) for one in node.elts]
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {
            _value(key, named, depth): _value(one, named, depth) for key, one in pairs if isinstance(key, ast.Constant)
        }
    return node.value if isinstance(node, ast.Constant) else None
