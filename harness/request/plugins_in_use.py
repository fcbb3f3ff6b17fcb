"""Finds test tools that a project uses but does not declare: by an option or setting of pytest, a fixture, a mark or an
import. Also finds imports of `pkg_resources`, which environments had by default until Python 3.12.

Only the well-known tools in these tables count: a name in code is no reason to install a package of that name.
"""

from __future__ import annotations

import ast
import shlex
from typing import TYPE_CHECKING, Any

from harness.repository.declared import read_ini, read_toml

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_OPTIONS = {
    "--cov": "pytest-cov",
    "--no-cov": "pytest-cov",
    "--timeout": "pytest-timeout",
    "--numprocesses": "pytest-xdist",
    "--dist": "pytest-xdist",
    "-n": "pytest-xdist",
    "--reruns": "pytest-rerunfailures",
    "--benchmark": "pytest-benchmark",
    "--asyncio-mode": "pytest-asyncio",
    "--ds": "pytest-django",
    "--doctest-plus": "pytest-doctestplus",
    "--random-order": "pytest-random-order",
    "--html": "pytest-html",
    "--mypy": "pytest-mypy",
    "--flake8": "pytest-flake8",
    "--disable-socket": "pytest-socket",
}
_SETTINGS = {
    "asyncio_mode": "pytest-asyncio",
    "asyncio_default_fixture_loop_scope": "pytest-asyncio",
    "django_settings_module": "pytest-django",
    "timeout": "pytest-timeout",
    "env": "pytest-env",
    "mock_use_standalone_module": "pytest-mock",
}
_FIXTURES = {
    "mocker": "pytest-mock",
    "httpx_mock": "pytest-httpx",
    "requests_mock": "requests-mock",
    "httpserver": "pytest-httpserver",
    "benchmark": "pytest-benchmark",
    "freezer": "pytest-freezer",
    "respx_mock": "respx",
    "subtests": "pytest-subtests",
    "datadir": "pytest-datadir",
    "shared_datadir": "pytest-datadir",
    "aiohttp_client": "pytest-aiohttp",
    "data_regression": "pytest-regressions",
    "django_user_model": "pytest-django",
}
_MARKS = {
    "asyncio": "pytest-asyncio",
    "django_db": "pytest-django",
    "timeout": "pytest-timeout",
    "vcr": "pytest-vcr",
    "trio": "pytest-trio",
}
MODULES = {
    "factory": "factory-boy",
    "faker": "faker",
    "flaky": "flaky",
    "freezegun": "freezegun",
    "httpretty": "httpretty",
    "hypothesis": "hypothesis",
    "mock": "mock",
    "nose": "nose",
    "parameterized": "parameterized",
    "pytest_asyncio": "pytest-asyncio",
    "pytest_mock": "pytest-mock",
    "requests_mock": "requests-mock",
    "responses": "responses",
    "respx": "respx",
    "testfixtures": "testfixtures",
    "vcr": "vcrpy",
}


def plugins_in_use(tree: Path) -> dict[str, str]:
    """Return the well-known test tools that a project uses, each with the name that shows it."""
    found: dict[str, str] = {}
    for word in _words_of_settings(tree):
        option = word.split("=")[0]
        known = next((project for name, project in _OPTIONS.items() if option == name), None)
        if known is None:
            known = next((project for name, project in _OPTIONS.items() if option.startswith(f"{name}-")), None)
        known = known or _SETTINGS.get(word.lower())
        if known is not None:
            found.setdefault(known, word)
    nodes = [node for path in test_files(tree) for node in nodes_of(path)]
    own = {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
    for node in nodes:
        for name, project in _shown_by(node):
            if name not in own:
                found.setdefault(project, name)
    if any(_imports(path, "pkg_resources") for path in tree.rglob("*.py") if path.name != "setup.py"):
        found.setdefault("setuptools", "pkg_resources")
    return found


def _imports(path: Path, module: str) -> bool:
    """Whether a file imports a module; it is only parsed if it contains the name."""
    try:
        if module.encode() not in path.read_bytes():
            return False
    except OSError:
        return False
    names = (
        [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        for node in nodes_of(path)
        if isinstance(node, (ast.Import, ast.ImportFrom))
    )
    return any(name.split(".")[0] == module for found in names for name in found)


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
    try:
        return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    except (OSError, ValueError, SyntaxError, RecursionError):
        return []


def _shown_by(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the names in one node of a test file that show a tool in use, each with its project."""
    if isinstance(node, ast.Import):
        names = [alias.name.split(".")[0] for alias in node.names]
        yield from ((name, MODULES[name]) for name in names if name in MODULES)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        name = node.module.split(".")[0]
        if name in MODULES:
            yield name, MODULES[name]
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        if node.name.startswith("test") or node.decorator_list:
            yield from ((arg.arg, _FIXTURES[arg.arg]) for arg in node.args.args if arg.arg in _FIXTURES)
    elif isinstance(node, ast.Attribute) and node.attr in _MARKS and getattr(node.value, "attr", "") == "mark":
        yield node.attr, _MARKS[node.attr]
