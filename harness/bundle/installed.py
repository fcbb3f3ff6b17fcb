"""Reads which packages a machine without network has, as listed by its pip or a bundle's run script."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from attrs import field, frozen
from packaging.version import InvalidVersion, Version

from harness.errors import UserMistake
from harness.model import normalized_name

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from harness.environment import Interpreter

_LINE = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[^\s;#]+)")
_HINT = "run there: python -m pip list --format=freeze, or python run.py --what-is-there"


@frozen
class Installed:
    """Installed versions by normalised name; `python` and `platform` are "" if the list does not have them."""

    versions: Mapping[str, str] = field(factory=dict)
    python: str = ""
    platform: str = ""

    def has(self, name: str, version: str) -> bool:
        """Whether exactly this version is installed, including the local version label (PEP 440)."""
        there = self.versions.get(name)
        return there is not None and same_version(there, version)

    def check(self, interpreter: Interpreter) -> None:
        """Raise `UserMistake` if the list is for another Python or platform than the locks."""
        if self.python and _minor(self.python) != interpreter.minor:
            raise UserMistake(
                f"the list is for Python {self.python}, but the locks are for {interpreter.version}",
                hint=f"use --python {_minor(self.python)}",
            )
        if self.platform and self.platform != interpreter.platform:
            raise UserMistake(f"the list is for {self.platform}; wheels packed here are for {interpreter.platform}")


def read_installed(path: Path) -> Installed:
    """Read `pip freeze`, `pip list` (freeze or JSON) or `run.py --what-is-there`. Raises `UserMistake`.

    Lines without a version (a local folder, a repository) are ignored; these distributions count as missing.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserMistake(f"can't read what is installed from {path}: {error}", hint=_HINT) from error
    if text.lstrip().startswith(("{", "[")):
        return _from_json(text, path)
    found = {normalized_name(m["name"]): m["version"] for m in map(_LINE.match, text.splitlines()) if m}
    if not found:
        raise UserMistake(f"{path} lists no package with a version (name==1.0)", hint=_HINT)
    return Installed(found)


def same_version(one: str, other: str) -> bool:
    """Whether two texts are the same version (PEP 440), such as 1.0 and 1.0.0."""
    try:
        return Version(one) == Version(other)
    except InvalidVersion:
        return one == other


def _from_json(text: str, path: Path) -> Installed:
    try:
        told: Any = json.loads(text)
        if isinstance(told, list):
            told = {"installed": {row["name"]: row["version"] for row in told}}
        versions = {normalized_name(name): str(version) for name, version in told["installed"].items()}
        return Installed(versions, str(told.get("python", "")), str(told.get("platform", "")))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserMistake(f"{path} is not a list of installed packages", hint=_HINT) from error


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
