"""What a machine without network has installed already, as its pip or the run script of a bundle tells it."""

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
    """Versions by normalised name; `python` and `platform` are empty where the list does not tell them."""

    versions: Mapping[str, str] = field(factory=dict)
    python: str = ""
    platform: str = ""

    def has(self, name: str, version: str) -> bool:
        """Whether it has this distribution in just this version, local label included (PEP 440)."""
        there = self.versions.get(name)
        return there is not None and same_version(there, version)

    def check(self, interpreter: Interpreter) -> None:
        """Raises `UserMistake` if the list is of another Python or platform than the locks are for."""
        if self.python and _minor(self.python) != interpreter.minor:
            raise UserMistake(
                f"the list is of Python {self.python}, the locks would be for {interpreter.version}",
                hint=f"--python {_minor(self.python)} makes them for that",
            )
        if self.platform and self.platform != interpreter.platform:
            raise UserMistake(f"the list is of {self.platform}; wheels packed here are for {interpreter.platform}")


def read_installed(path: Path) -> Installed:
    """Read `pip freeze`, `pip list` (freeze or JSON) or `run.py --what-is-there`. Raises `UserMistake`.

    Lines that name no version (a local folder, a repository) are passed over: such distributions count as not there.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserMistake(f"can't read what is installed from {path}: {error}", hint=_HINT) from error
    if text.lstrip().startswith(("{", "[")):
        return _from_json(text, path)
    found = {normalized_name(m["name"]): m["version"] for m in map(_LINE.match, text.splitlines()) if m}
    if not found:
        raise UserMistake(f"{path} names no distribution with its version (name==1.0)", hint=_HINT)
    return Installed(found)


def same_version(one: str, other: str) -> bool:
    """Whether two texts are one version (PEP 440): 1.0 and 1.0.0 are."""
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
        raise UserMistake(f"{path} is not a list of what is installed", hint=_HINT) from error


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
