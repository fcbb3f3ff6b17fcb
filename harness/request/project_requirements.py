"""Reads a project's own requirements with the chosen extras and groups, and those of its tests."""

from __future__ import annotations

import email.parser
from typing import TYPE_CHECKING, Any

from attrs import field, frozen
from packaging.requirements import InvalidRequirement, Requirement

from harness.errors import UserMistake
from harness.model import normalized_name
from harness.model.text import listed
from harness.request.plugins_in_use import plugins_in_use
from harness.request.pyproject import declared_in_setup, read_toml
from harness.request.requirement_files import read_requirement_file
from harness.request.requirements_of_tests import (
    TestsNeed,
    group_requirements,
    lifted,
    named_for_tests,
    requirements_of_tests,
    without_tools,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path


@frozen
class Wanted:
    """The requested extras and groups of a project; with `find` also everything else that its tests need.

    Without `for_tests` nothing is chosen for tests automatically.
    """

    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    find: bool = False
    for_tests: bool = True


@frozen
class Requires:
    """A project's name, its requirements, and sentences about the choices made.

    `for_tests` are the requirements that were found for the tests rather than named by the user.
    """

    name: str
    requirements: tuple[str, ...]
    told: tuple[str, ...] = ()
    for_tests: tuple[str, ...] = ()


@frozen
class _Declared:
    """Name, requirement lines and offered extras, from the metadata of the wheel or from the files."""

    name: str
    lines: tuple[str, ...]
    extras: Mapping[str, tuple[str, ...]] = field(factory=dict)


def requirements_of(tree: Path, built: Path | None, wanted: Wanted, environment: Mapping[str, str]) -> Requires:
    """Return the requirements of a project. Raises `UserMistake` if it lacks a named extra or group."""
    pyproject = read_toml(tree / "pyproject.toml")
    declared = _of_wheel(built) or _of_files(tree, pyproject)
    groups: Mapping[str, Any] = pyproject.get("dependency-groups", {})
    for kind, names, known in (("extra", wanted.extras, declared.extras), ("group", wanted.groups, groups)):
        for one in names:
            if normalized_name(one) not in {normalized_name(name) for name in known}:
                raise UserMistake(
                    f"{declared.name or 'the project'} has no {kind} {one!r}",
                    hint=f"it has: {', '.join(known) or 'none'}",
                )
    found = _for_tests(tree, declared, groups, wanted, environment)
    extras = wanted.extras or _offered(found.extras, declared.extras)
    own = tuple(_chosen(declared, (), environment))
    chosen = [text for text in _chosen(declared, extras, environment) if text not in own]
    more = tuple(chosen) if wanted.extras else lifted(chosen)
    more += tuple(_chosen(_Declared(declared.name, found.requirements, declared.extras), (), environment))
    is_named = bool(wanted.extras or wanted.groups)
    more, unused = without_tools(more, tree, is_mixed=found.is_mixed) if not is_named else (more, ())
    told = [found.where] if found.where else []
    if not own and wanted.find and (file := _requirements_file(tree, is_last=not more)) is not None:
        lines = read_requirement_file(file, environment)
        own, tools = without_tools(lines.requirements, tree, is_mixed=False)
        unused += tools
        told += [f"{file.name} (--with changes it)", *lines.told]
    if unused:
        told.append(f"without tools that no test uses ({listed(unused)})")
    if wanted.find:
        in_use = plugins_in_use(tree)
        there = {normalized_name(Requirement(text).name) for text in (*own, *more)} | {normalized_name(declared.name)}
        used = {project: shown for project, shown in in_use.items() if project not in there}
        more += tuple(used)
        told += [f"{project} ({shown} is used)" for project, shown in used.items()]
    name = normalized_name(declared.name) if declared.name else ""
    told = [f"requirements: {'; '.join(told)}"] if told else []
    unnamed = () if is_named else tuple(text for text in more if text not in own)
    return Requires(name, tuple(dict.fromkeys((*own, *more))), tuple(told), unnamed)


def _for_tests(
    tree: Path, declared: _Declared, groups: Mapping[str, Any], wanted: Wanted, environment: Mapping[str, str]
) -> TestsNeed:
    """Return the requirements of the groups that the user named; if no extra or group was named, those of the tests."""
    if wanted.extras or wanted.groups:
        return TestsNeed(tuple(text for group in wanted.groups for text in group_requirements(groups, group)))
    if not wanted.for_tests:
        return TestsNeed()
    if wanted.find:
        return requirements_of_tests(tree, declared.extras, groups, environment)
    return named_for_tests(declared.extras, groups)


def _of_wheel(built: Path | None) -> _Declared | None:
    for path in built.glob("*.dist-info/METADATA") if built is not None else ():
        message = email.parser.HeaderParser().parsestr(path.read_text(encoding="utf-8"))
        extras = dict.fromkeys(message.get_all("Provides-Extra") or [], ())
        return _Declared(str(message["Name"]), tuple(message.get_all("Requires-Dist") or ()), extras)
    return None


def _of_files(tree: Path, pyproject: Mapping[str, Any]) -> _Declared:
    project = pyproject.get("project", {})
    setup = declared_in_setup(tree)
    extras = {
        **setup.extras,
        **{name: tuple(lines) for name, lines in project.get("optional-dependencies", {}).items()},
    }
    lines = (*project.get("dependencies", ()), *setup.requires)
    return _Declared(str(project.get("name", "")) or setup.name, lines, extras)


def _offered(names: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    offered = {normalized_name(name) for name in known}
    return tuple(name for name in names if normalized_name(name) in offered)


def _chosen(declared: _Declared, extras: tuple[str, ...], environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the requirements that apply on this machine with these extras, including extras that name other extras."""
    pending = [*declared.lines, *(line for extra in extras for line in declared.extras.get(extra, ()))]
    every, seen = list(pending), {normalized_name(extra) for extra in extras}
    while pending:
        text = pending.pop(0)
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            raise UserMistake(f"the project requires {text!r}, which is not a requirement") from error
        marker = requirement.marker
        if marker is not None and not any(marker.evaluate({**environment, "extra": e}) for e in ("", *sorted(seen))):
            continue
        requirement.marker = None
        if declared.name and normalized_name(requirement.name) == normalized_name(declared.name):
            more = {normalized_name(extra) for extra in requirement.extras} - seen
            seen |= more
            pending += [line for extra in more for line in declared.extras.get(extra, ())]
            pending += every if more else []
            continue
        yield str(requirement)


def _requirements_file(tree: Path, *, is_last: bool) -> Path | None:
    """Return the file of the project's own requirements; with `is_last` any requirements file, or None."""
    named = (tree / name for name in ("requirements.in", "requirements.txt", "requirements/base.txt"))
    others = sorted(tree.glob("requirements*.txt")) if is_last else []
    return next((path for path in (*named, *others) if path.is_file()), None)
