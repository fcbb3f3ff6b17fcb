"""A set of packages as what a user types or keeps: `uv add`, `pip install`, constraints, a changed pyproject.toml."""

from __future__ import annotations

import difflib
import re
import shlex
import tomllib
from typing import TYPE_CHECKING, Any

from packaging.requirements import InvalidRequirement, Requirement

from harness.errors import UserMistake
from harness.model import normalized_name
from harness.report.commands import public_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from harness.model import Lock

_DEPENDENCIES = re.compile(r"^dependencies\s*=\s*\[(?P<line>[ \t]*\n(?P<indent>[ \t]*))?", re.MULTILINE)
_BOUND = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?P<bound>.*)")


def install_command(program: Sequence[str], lock: Lock, names: Iterable[str]) -> str:
    """Return the command that installs the packages `names` (normalised) at the versions of a lock.

    `program` is `uv add` or `pip install`. Versions are without their local part, which few indexes have.
    """
    wanted = set(names)
    return shlex.join([*program, *(f"{pin.name}=={public_version(pin)}" for pin in lock.pins if pin.name in wanted)])


def constraints_text(lock: Lock, sentence: str) -> str:
    """Return a constraints file with every package of a lock; `sentence` is its first line."""
    return f"# {sentence}\n" + "".join(f"{pin.name}=={public_version(pin)}\n" for pin in lock.pins)


def bounded_pyproject(text: str, constraints: Iterable[str]) -> str:
    """Return the text of a pyproject.toml whose requirements have these constraints too, otherwise unchanged.

    The requirement of a package is bounded where it stands: in the dependencies, an extra or a group. A package that
    stands nowhere becomes a dependency. Raises `UserMistake` if there is no list for that.
    """
    try:
        listed = list(_requirements(tomllib.loads(text)))
    except tomllib.TOMLDecodeError as error:
        raise UserMistake(f"pyproject.toml is not valid TOML: {error}") from error
    for constraint in constraints:
        found = [one for one in listed if _name(one) == _name(constraint)]
        for one in found:
            text = _replaced(text, one, _bounded(one, constraint))
        if not found and _DEPENDENCIES.search(text) is None:
            raise UserMistake(
                f"pyproject.toml has no list of dependencies in [project] for {constraint}",
                hint="--format constraints or --format pip says it without that file",
            )
        if not found:
            text = _DEPENDENCIES.sub(lambda place: _with_line(place, constraint), text, count=1)  # noqa: B023
    return text


def difference(before: str, after: str, name: str) -> str:
    """Return a unified diff that `git apply` and `patch -p1` take; "" if nothing changes."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return "".join(difflib.unified_diff(old, new, f"a/{name}", f"b/{name}"))


def _requirements(pyproject: dict[str, Any]) -> Iterator[str]:
    project = pyproject.get("project", {})
    groups = {**project.get("optional-dependencies", {}), **pyproject.get("dependency-groups", {})}
    for lines in (project.get("dependencies", []), *groups.values()):
        yield from (line for line in lines if isinstance(line, str))


def _name(text: str) -> str:
    try:
        return normalized_name(Requirement(text).name)
    except InvalidRequirement:
        return ""


def _bounded(requirement: str, constraint: str) -> str:
    """Return a requirement with the bound of a constraint: `numpy>=1.20; MARKER` and `numpy<2`."""
    parsed, bound = _BOUND.match(constraint), Requirement(constraint).specifier
    base, marker, condition = requirement.partition(";")
    mine = Requirement(requirement)
    if parsed is None or mine.url:
        return requirement
    extras = f"[{','.join(sorted(mine.extras))}]" if mine.extras else ""
    if any(one.operator == "==" for one in bound) or not mine.specifier:
        base = f"{mine.name}{extras}{parsed['bound']}"
    else:
        base = f"{base.strip()},{parsed['bound']}"
    return f"{base}{marker}{condition}"


def _replaced(text: str, before: str, after: str) -> str:
    for quote in ('"', "'"):
        text = text.replace(f"{quote}{before}{quote}", f"{quote}{after}{quote}")
    return text


def _with_line(place: re.Match[str], constraint: str) -> str:
    if place["line"] is None:
        return f'{place[0]}"{constraint}", '
    return f'{place[0]}"{constraint}",\n{place["indent"]}'
