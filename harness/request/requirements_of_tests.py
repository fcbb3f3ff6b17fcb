"""Finds what a project's tests need beyond its own requirements.

There is no standard place for them, so these are tried in order and the first with a result counts: extras and
dependency groups for tests, tox, requirements files for tests, `tests_require`; then extras, groups and requirements
files for development, which also have other tools. Tools that the project does not use are left out, because they could
only conflict with others. The versions of exact pins are ignored, because they would hide what upgrades change.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen
from packaging.requirements import InvalidRequirement, Requirement

from harness.errors import UserMistake
from harness.model import normalized_name
from harness.request.plugins_in_use import nodes_of, test_files
from harness.request.pyproject import Declared, declared_in_setup, read_ini, read_toml
from harness.request.requirement_files import read_requirement_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

_FOR_TESTS = ("test", "tests", "testing", "unittest", "unittests")
_FOR_DEVELOPMENT = ("dev", "devel", "develop", "development")
_CONDITION = re.compile(r"^(?P<factors>[\w.,{}!-]+)\s*:\s+(?P<rest>\S.*)$")
_REFERENCE = re.compile(r"^\{\[(?P<section>[^]]+)\](?P<key>\w+)\}$")
_OWN_EXTRAS = re.compile(r"^(?:-e\s*)?(?:\.|\{toxinidir\})/?\[(?P<extras>[^]]+)\]$")
_WORD = re.compile(r"[\w-]+")
_PINNED = ("==", "===")
# Tools that format, check, publish or start tests: no test needs one unless it uses it.
_CHECKS = re.compile(
    r"^(autoflake|autopep8|bandit|black|check-manifest|codacy-coverage|codecov|coveralls|docformatter|flake8.*|isort|mypy"
    r"|mypy-extensions|nox|pep8-naming|pip-tools|pre-commit|pycodestyle|pydocstyle|pylint.*|pyright|pyroma|pyupgrade|ruff"
    r"|safety|tox.*|twine|virtualenv|zest-releaser.*)$"
)
# The same, and tools for building, documentation and interactive work.
_NO_TEST_TOOLS = re.compile(
    r"^(attribution|autoflake|autopep8|bandit|black|build|bump2?version|bumpversion|check-manifest|codecov|commitizen"
    r"|coveralls|docformatter|flake8.*|flit|furo|hatch|ipdb|ipython|isort|jupyter.*|mkdocs.*|mkautodoc|mypy|mypy-extensions"
    r"|nox|pip|pip-tools|poetry|pre-commit|pycodestyle|pydocstyle|pylava|pylint.*|pymdown-extensions|pyright|pyupgrade"
    r"|readme-renderer|reno|restructuredtext-lint|rstcheck|ruff|safety|semantic-version|setuptools-scm|sphinx.*|towncrier|tox.*"
    r"|twine|types-.*|.*-stubs|virtualenv|watchdog|wheel|zest-releaser.*)$"
)


@frozen
class TestsNeed:
    """The requirements of tests, the project's extras to install with them, and where they were found.

    `is_mixed` says that they may include tools that are not for tests.
    """

    requirements: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    where: str = ""
    is_mixed: bool = False


def requirements_of_tests(
    tree: Path, extras: Iterable[str], groups: Mapping[str, Any], environment: Mapping[str, str]
) -> TestsNeed:
    """Find the requirements of a project's tests; `extras` are those it offers, `groups` its dependency groups."""
    offered = tuple(extras)
    for found in _places(tree, offered, groups, environment):
        if found.requirements or found.extras:
            return found
    return TestsNeed()


def named_for_tests(extras: Iterable[str], groups: Mapping[str, Any]) -> TestsNeed:
    """Return the extra and the dependency group named after tests."""
    return _named(_FOR_TESTS, tuple(extras), groups)


def group_requirements(groups: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return a dependency group with the groups that it includes (PEP 735). Raises `UserMistake`."""
    from packaging.dependency_groups import resolve_dependency_groups

    try:
        return tuple(resolve_dependency_groups(groups, name))
    except (LookupError, ValueError, TypeError) as error:
        raise UserMistake(f"the project's dependency group {name!r} can't be read: {error}") from error


def _places(
    tree: Path, extras: tuple[str, ...], groups: Mapping[str, Any], environment: Mapping[str, str]
) -> Iterator[TestsNeed]:
    pyproject, setup = read_toml(tree / "pyproject.toml"), declared_in_setup(tree)
    tools = {**_tool_groups(pyproject), **groups}
    yield _named(_FOR_TESTS, extras, tools)
    yield _of_tox(tree, pyproject, environment)
    yield _of_files(tree, _FOR_TESTS, environment)
    yield _of_setup(setup)
    for found in (_named(_FOR_DEVELOPMENT, extras, tools), _of_files(tree, _FOR_DEVELOPMENT, environment)):
        yield evolve(found, is_mixed=True)


def _named(kinds: tuple[str, ...], extras: tuple[str, ...], groups: Mapping[str, Any]) -> TestsNeed:
    chosen, chosen_groups = _first_of(kinds, extras), _first_of(kinds, groups)
    requirements = [text for group in chosen_groups for text in group_requirements(groups, group)]
    where = [f"extra {name} (--extra changes it)" for name in chosen]
    where += [f"group {name} (--group changes it)" for name in chosen_groups]
    return TestsNeed(lifted(requirements), chosen, ", ".join(where))


def _first_of(kinds: tuple[str, ...], names: Iterable[str]) -> tuple[str, ...]:
    known = {normalized_name(name): name for name in names}
    return tuple(known[kind] for kind in kinds if kind in known)[:1]


def _tool_groups(pyproject: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the dependency groups of Poetry, PDM, uv and Hatch from before PEP 735."""
    tool = pyproject.get("tool", {})
    poetry, hatch = tool.get("poetry", {}), tool.get("hatch", {}).get("envs", {})
    found = {name: list(group.get("dependencies", ())) for name, group in hatch.items() if isinstance(group, dict)}
    if "default" in found and not any(name in found for name in _FOR_TESTS):
        found["dev"] = found.pop("default")
    found |= {name: list(texts) for name, texts in tool.get("pdm", {}).get("dev-dependencies", {}).items()}
    if "dev-dependencies" in tool.get("uv", {}):
        found["dev"] = list(tool["uv"]["dev-dependencies"])
    by_group = {name: group.get("dependencies", {}) for name, group in poetry.get("group", {}).items()}
    by_group |= {"dev": poetry["dev-dependencies"]} if "dev-dependencies" in poetry else {}
    found |= {name: [_of_poetry(*one) for one in group.items()] for name, group in by_group.items()}
    return {name: [text for text in texts if isinstance(text, str) and text] for name, texts in found.items()}


def _of_poetry(name: str, wanted: object) -> str:
    """Convert a requirement of Poetry to pip's format, without its upper bound; "" if that is not possible."""
    extras = ""
    if isinstance(wanted, dict):
        extras = f"[{','.join(wanted['extras'])}]" if wanted.get("extras") else ""
        wanted = wanted.get("version", "")
    if not isinstance(wanted, str) or name == "python":
        return ""
    lower = re.match(r"^(?:\^|~|>=)?\s*(\d[\w.]*)$", wanted.strip())
    return f"{name}{extras}>={lower[1]}" if lower and wanted.strip()[0] in "^~>" else f"{name}{extras}"


def _of_tox(tree: Path, pyproject: Mapping[str, Any], environment: Mapping[str, str]) -> TestsNeed:
    """Return `deps` and `extras` of tox's base environment, from any file that tox reads."""
    native = pyproject.get("tool", {}).get("tox", {})
    base = {**read_toml(tree / "tox.toml").get("env_run_base", {}), **native.get("env_run_base", {})}
    settings = read_ini(tree / "tox.ini")
    if not settings.has_section("testenv"):
        settings = read_ini(tree / "setup.cfg")
    if not settings.has_section("testenv") and isinstance(native.get("legacy_tox_ini"), str):
        settings.read_string(native["legacy_tox_ini"])
    section = settings["testenv"] if settings.has_section("testenv") else {}
    lines = [line for line in base.get("deps", ()) if isinstance(line, str)]
    for line in section.get("deps", "").splitlines():
        named = _REFERENCE.match(line.strip())
        text = settings.get(named["section"], named["key"], fallback="") if named else line
        lines += text.splitlines()
    extras = [str(one) for one in base.get("extras", ())] + re.split(r"[\s,]+", section.get("extras", "").strip())
    found: list[str] = []
    for line in lines:
        text = line.split(" #")[0].strip()
        if (own := _OWN_EXTRAS.match(text)) is not None:
            extras += own["extras"].split(",")
            continue
        found += _of_line(text, tree, environment)
    kept = tuple(dict.fromkeys(extra.strip() for extra in extras if re.fullmatch(r"[\w.-]+", extra.strip())))
    return TestsNeed(lifted(found), kept, "the deps of tox (--with changes them)")


def _of_line(line: str, tree: Path, environment: Mapping[str, str]) -> list[str]:
    """Return the requirements of one line of tox's `deps`; a line for particular environments is ignored."""
    if line.startswith("-r"):
        path = tree / line.removeprefix("-r").strip().removeprefix("{toxinidir}").lstrip("/")
        source = path.with_suffix(".in")  # the input of pip-compile
        return _of_file(source if source.is_file() else path, environment)
    if not line or line.startswith(("-", "#", ".", "{")) or _CONDITION.match(line):
        return []
    return [line]


def _of_files(tree: Path, kinds: tuple[str, ...], environment: Mapping[str, str]) -> TestsNeed:
    for kind in kinds:
        for ending in (".in", ".txt"):
            named = [f"requirements{mark}{kind}{ending}" for mark in ("-", "_", ".", "/")]
            named += [f"{kind}{mark}requirements{ending}" for mark in ("-", "_", "/")]
            for name in named:
                if found := _of_file(tree / name, environment):
                    return TestsNeed(lifted(found), (), f"{name} (--with changes it)")
    return TestsNeed()


def _of_file(path: Path, environment: Mapping[str, str]) -> list[str]:
    if not path.is_file():
        return []
    try:
        return list(read_requirement_file(path, environment).requirements)
    except UserMistake:  # nobody named this file
        return []


def _of_setup(setup: Declared) -> TestsNeed:
    return TestsNeed(lifted(setup.tests), (), "tests_require of the setup file (--with changes it)")


def lifted(requirements: Iterable[str]) -> tuple[str, ...]:
    """Return the requirements without exact versions and without duplicates; invalid ones are left out."""
    found: dict[str, str] = {}
    for text in requirements:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        if any(one.operator in _PINNED for one in requirement.specifier) or requirement.url:
            extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
            marker = f"; {requirement.marker}" if requirement.marker else ""
            text = f"{requirement.name}{extras}{marker}"
        found.setdefault(text, text)
    return tuple(found)


def without_tools(
    requirements: Sequence[str], tree: Path, *, is_mixed: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the requirements without tools that the project does not use, and the names of these tools.

    A tool is used if a file imports it or a text in a test contains its name. Without `is_mixed` the requirements are
    meant for tests, so only tools that format, check, publish or start tests are left out.
    """
    named = {text: normalized_name(Requirement(text).name) for text in requirements}
    pattern = _NO_TEST_TOOLS if is_mixed else _CHECKS
    tools = {text: name for text, name in named.items() if pattern.match(name)}
    used = _used(tree) if tools else frozenset()
    unused = {text: name for text, name in tools.items() if used.isdisjoint((name, name.replace("-", "_")))}
    return tuple(text for text in requirements if text not in unused), tuple(unused.values())


def _used(tree: Path) -> frozenset[str]:
    """Return the top-level modules that any file of the project imports, and the words in strings of its tests."""
    found: set[str] = set()
    tests = set(test_files(tree))
    for path in tree.rglob("*.py"):
        nodes = nodes_of(path)
        found |= {alias.name.split(".")[0] for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        found |= {node.module.split(".")[0] for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
        if path in tests:
            texts = (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
            found |= {word for text in texts for word in _WORD.findall(text)}
    return frozenset(found)
