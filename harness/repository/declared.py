"""Reads a commit's requirements from pyproject.toml, setup.cfg or setup.py without running code. Pure."""

from __future__ import annotations

import ast
import contextlib
import tomllib
from configparser import ConfigParser
from configparser import Error as ConfigError
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement

if TYPE_CHECKING:
    from collections.abc import Mapping

FILES = ("pyproject.toml", "setup.cfg", "setup.py")


def declared_requirements(texts: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the requirements in these files (name -> text), or None if they can't be read without running code."""
    for read, name in ((_of_pyproject, FILES[0]), (_of_setup_cfg, FILES[1]), (_of_setup_py, FILES[2])):
        found = read(texts[name]) if name in texts else None
        if found is not None:
            return found if all(map(_is_requirement, found)) else None
    return None


def declared_name(texts: Mapping[str, str]) -> str | None:
    """Return the project's name in these files (name -> text), or None if it can't be read without running code."""
    if (text := texts.get(FILES[0])) is not None:
        try:
            read = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            return None
        tool = read.get("tool", {})
        for table in (read.get("project"), tool.get("poetry") if isinstance(tool, dict) else None):
            if isinstance(table, dict) and isinstance(table.get("name"), str):
                return str(table["name"])
    settings = ConfigParser(interpolation=None)
    with contextlib.suppress(ConfigError):
        settings.read_string(texts.get(FILES[1], ""))
        if settings.has_option("metadata", "name"):
            return settings.get("metadata", "name")
    return _literal_text(texts.get(FILES[2], ""), "name")


def _of_pyproject(text: str) -> tuple[str, ...] | None:
    try:
        project = tomllib.loads(text).get("project")
    except tomllib.TOMLDecodeError:
        return None
    if not isinstance(project, dict) or "dependencies" in project.get("dynamic", ()):
        return None
    return tuple(map(str, project.get("dependencies", ())))


def _of_setup_cfg(text: str) -> tuple[str, ...] | None:
    settings = ConfigParser(interpolation=None)
    try:
        settings.read_string(text)
    except ConfigError:
        return None
    if not settings.has_option("options", "install_requires"):
        return None
    lines = settings.get("options", "install_requires").splitlines()
    return tuple(line.strip() for line in lines if line.strip() and not line.strip().startswith("#"))


def _of_setup_py(text: str) -> tuple[str, ...] | None:
    """The value of `install_requires` if it is a literal, or a name that is assigned once, to a literal."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    literals: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            literals.setdefault(node.targets[0].id, []).append(node.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "install_requires":
            value: ast.expr | None = node.value
            if isinstance(value, ast.Name):
                given = literals.get(value.id, [])
                value = given[0] if len(given) == 1 else None
            return _literal(value)
    return None


def _literal_text(text: str, argument: str) -> str | None:
    """The value of a keyword argument of any call in a Python file, if it is a string literal."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == argument and isinstance(node.value, ast.Constant):
            return node.value.value if isinstance(node.value.value, str) else None
    return None


def _literal(node: ast.expr | None) -> tuple[str, ...] | None:
    try:
        value = ast.literal_eval(node) if node is not None else None
    except ValueError:
        return None
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return tuple(value)
    return None


def _is_requirement(text: str) -> bool:
    try:
        Requirement(text)
    except InvalidRequirement:
        return False
    return True
