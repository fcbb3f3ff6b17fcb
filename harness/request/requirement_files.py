"""Reads requirements files as pip does (nested files, options, hashes), without what is not on an index."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from attrs import frozen
from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement

from harness.errors import UserMistake

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


# The parser takes minutes for a line of a few hundred kilobytes. A backslash continues a line, as for hashes.
_LINES = re.compile(r"(?<!\\)\n")
_LONGEST_LINE = 50_000


@frozen
class FileRequirements:
    """The requirements of a file that an index can have, and sentences about the others."""

    requirements: tuple[str, ...]
    told: tuple[str, ...] = ()


def read_requirement_file(path: Path, environment: Mapping[str, str]) -> FileRequirements:
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
    if parsed.invalid_lines:
        line = parsed.invalid_lines[0]
        raise UserMistake(f"{path}, line {line.line_number}: can't be read as a requirement: {line.line.strip()}")
    found: list[str] = []
    told: list[str] = []
    for asked in parsed.requirements:
        if asked.marker is not None and not Marker(str(asked.marker)).evaluate(dict(environment)):
            continue
        if asked.link is not None or asked.is_editable:
            where = asked.link.url if asked.link is not None else asked.line
            if asked.name:
                told.append(f"{asked.name} of {where} is not on an index: replaced by releases of {asked.name}")
                found.append(asked.name)
            else:
                told.append(f"{where} is not on an index: left out")
            continue
        if (text := plain_requirement(str(asked.req), path)) is not None:
            found.append(text)
    return FileRequirements(tuple(found), tuple(told))


def plain_requirement(text: str, path: Path) -> str | None:
    """Return a requirement without its marker. Raises `UserMistake` if it is invalid."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        raise UserMistake(f"{path}: {text!r} is not a requirement: {str(error).splitlines()[0]}") from error
    requirement.marker = None
    return str(requirement)
