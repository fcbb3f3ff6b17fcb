"""Finds what a project uses: the modules that its files import, and the well-known tools that its tests show.

The names are those of known_tools.toml.
"""

from __future__ import annotations

import ast
import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from harness.model import normalized_name
from harness.repository.declared import nodes_in, read_ini, read_toml, text_of

_KNOWN: dict[str, Any] = tomllib.loads(Path(__file__).with_name("known_tools.toml").read_text(encoding="utf-8"))
CALLED, _OPTIONS, _SETTINGS = _KNOWN["called"], _KNOWN["options"], _KNOWN["settings"]
_WORKERS = re.compile(r"-n\d+")
_FIXTURES, _MARKS, MODULES = _KNOWN["fixtures"], _KNOWN["marks"], _KNOWN["modules"]
# Packages that tests often need.
WELL_KNOWN = {"pytest", *(name for names in _KNOWN.values() if isinstance(names, dict) for name in names.values())}
TOOLS = re.compile("|".join(_KNOWN["tools"]))
_WORD = re.compile(r"[\w-]+")


def used_in(tree: Path) -> frozenset[str]:
    """Return the top-level modules that any file of the project imports, and the words in strings of its tests."""
    tests = set(test_files(tree))
    names: set[str] = set()
    for path in tree.rglob("*.py"):
        nodes = nodes_of(path)
        names.update(modules_in(nodes))
        if path in tests:
            texts = (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
            names |= {word for text in texts for word in _WORD.findall(text)}
    return frozenset(names)


def imported_by_tests(tree: Path) -> frozenset[str]:
    """Return the projects (normalised names) whose modules the tests import, as far as the names tell."""
    modules = {module for path in test_files(tree) for module in modules_in(nodes_of(path))}
    return frozenset(normalized_name(MODULES.get(module, module)) for module in modules)


def modules_in(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the top-level modules that these nodes import."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def project_of_program(name: str) -> str:
    """Return the project (normalised name) that has a program or a module, as far as the name tells."""
    return normalized_name(CALLED.get(name, name))


def plugin_of_option(word: str) -> str:
    """Return the well-known pytest plugin that an option is of, such as --cov=mine; "" if none is known."""
    option = word.split("=")[0]
    exact = _OPTIONS.get(option) or ("pytest-xdist" if _WORKERS.fullmatch(option) else "")
    return exact or next((project for name, project in _OPTIONS.items() if option.startswith(f"{name}-")), "")


def plugins_in_use(tree: Path) -> dict[str, str]:
    """Return the well-known test tools that a project uses, each with the name that shows it."""
    tools: dict[str, str] = {}
    for word in _words_of_settings(tree):
        known = plugin_of_option(word) or _SETTINGS.get(word.lower())
        if known:
            tools.setdefault(known, word)
    nodes = [node for path in test_files(tree) for node in nodes_of(path)]
    own = {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
    for node in nodes:
        for name, project in _shown_by(node):
            if name not in own:
                tools.setdefault(project, name)
    naming = (path for path in tree.rglob("*.py") if path.name != "setup.py" and "pkg_resources" in text_of(path))
    if any("pkg_resources" in modules_in(nodes_of(path)) for path in naming):
        tools.setdefault("setuptools", "pkg_resources")
    return tools


def _words_of_settings(tree: Path) -> Iterator[str]:
    """Yield the names of pytest's settings, and the words of `addopts`."""
    sections: list[dict[str, Any]] = [read_toml(tree / "pyproject.toml").get("tool", {}).get("pytest", {})]
    sections[0] = sections[0].get("ini_options", sections[0])
    for name, section in (("pytest.ini", "pytest"), ("tox.ini", "pytest"), ("setup.cfg", "tool:pytest")):
        settings = read_ini(tree / name)
        if settings.has_section(section):
            sections.append(dict(settings[section]))
    for settings_of_file in sections:
        yield from settings_of_file
        given = settings_of_file.get("addopts", "")
        words = " ".join(map(str, given)) if isinstance(given, list) else str(given)
        try:
            yield from shlex.split(words)
        except ValueError:
            continue


def test_files(tree: Path) -> Iterator[Path]:
    """Yield the Python files of a project's tests."""
    for path in sorted(tree.rglob("*.py")):
        inside = path.relative_to(tree)
        is_test = path.name.startswith("test") or path.stem.endswith(("_test", "_tests")) or path.name == "conftest.py"
        if is_test or {"test", "tests"} & set(inside.parts[:-1]):
            yield path


def nodes_of(path: Path) -> list[ast.AST]:
    """Return all nodes of a file's syntax tree; empty if it can't be parsed."""
    return nodes_in(text_of(path))


def _shown_by(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the names in one node of a test file that show a tool in use, each with its project."""
    yield from ((name, MODULES[name]) for name in modules_in([node]) if name in MODULES)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        if node.name.startswith("test") or node.decorator_list:
            yield from ((arg.arg, _FIXTURES[arg.arg]) for arg in node.args.args if arg.arg in _FIXTURES)
    elif isinstance(node, ast.Attribute) and node.attr in _MARKS and getattr(node.value, "attr", "") == "mark":
        yield node.attr, _MARKS[node.attr]
