"""The packages installed in a user's environment, as pins."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

from harness.errors import UserMistake
from harness.model import normalized_name
from harness.request.lockfiles import Pins

if TYPE_CHECKING:
    from pathlib import Path

# Run in the user's own interpreter: the standard library of Python 3.8 and later only.
_ASK = """
import importlib.metadata as m, json, platform
found = []
for d in m.distributions():
    try:
        origin = json.loads(d.read_text("direct_url.json") or "{}")
    except ValueError:
        origin = {}
    if d.metadata["Name"]:
        found.append([d.metadata["Name"], d.version, origin.get("url", "")])
print(json.dumps([platform.python_version(), found]))
"""
_INSTALLERS = frozenset({"pip", "wheel"})


def installed_pins(python: Path) -> Pins:
    """Return the pins of an environment. Raises `UserMistake` if its Python can't be run or has nothing installed."""
    try:
        answer = subprocess.run(
            [python, "-I", "-c", _ASK],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
            stdin=subprocess.DEVNULL,
        )
        version, found = json.loads(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise UserMistake(f"{python} can't list its installed packages", hint="name an environment's folder") from error
    pins, told = [], []
    for name, release, origin in sorted(found):
        project = normalized_name(name)
        if project in _INSTALLERS:
            continue
        if origin.startswith("file:"):
            told.append(f"{project} of {origin.removeprefix('file://')} is a local project: left out")
            continue
        if origin:
            told.append(f"{project} of {origin} is not on an index: replaced by release {release}")
        pins.append(f"{project}=={release}")
    if not pins:
        raise UserMistake(f"nothing is installed in the environment of {python}")
    return Pins(tuple(dict.fromkeys(pins)), tuple(told), version)
