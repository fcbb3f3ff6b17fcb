"""Reads uv's lock file (PEP 751) as a lock, and writes one as a list of preferred versions."""

from __future__ import annotations

import tomllib
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from harness.model import Lock, Pin, normalized_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from packaging.tags import Tag

    from harness.environment.interpreter import Interpreter


def read_lock(text: str, interpreter: Interpreter) -> Lock:
    """Read the lock that uv wrote for this interpreter, with the one file per package that will be installed."""
    tags = interpreter.wheel_tags()
    packages = tomllib.loads(text).get("packages", [])
    return Lock(
        python=interpreter.version,
        platform=interpreter.platform,
        pins=[_pin(package, tags) for package in packages],
    )


def undated_in(text: str) -> frozenset[str]:
    """The projects for which uv chose a file without upload time."""
    found = set()
    for package in tomllib.loads(text).get("packages", []):
        files = [*package.get("wheels", ()), *([package["sdist"]] if "sdist" in package else [])]
        if any("upload-time" not in file for file in files):
            found.add(normalized_name(package["name"]))
    return frozenset(found)


def is_source(file: str) -> bool:
    """Whether the file of a pin is a source distribution."""
    return file.endswith((".tar.gz", ".zip", ".tar.bz2"))


def as_preferences(lock: Lock) -> str:
    """A lock file without files: uv prefers the versions in an existing output file."""
    packages = "".join(f'\n[[packages]]\nname = "{pin.name}"\nversion = "{pin.version}"\n' for pin in lock.pins)
    return f'lock-version = "1.0"\ncreated-by = "harness"\n{packages}'


def best_wheel(package: dict[str, Any], tags: Sequence[Tag]) -> dict[str, Any] | None:
    """The entry of the wheel of a locked package that the installer will choose, None if it has none."""
    listed = package.get("wheels")
    wheels = listed if isinstance(listed, list) else []
    return min(wheels, key=lambda wheel: _rank(file_name(wheel), tags), default=None)


def _pin(package: dict[str, Any], tags: Sequence[Tag]) -> Pin:
    """The file of a locked package that the installer will choose: the wheel with the best tag, else the source."""
    wheels, best = package.get("wheels") or [], best_wheel(package, tags)
    chosen = best or package.get("sdist") or package.get("archive") or {}
    return Pin(
        name=normalized_name(str(package["name"])),
        version=str(package.get("version", "")),
        wheel=file_name(chosen) if chosen else "",
        sha256=_digest(chosen),
        size=chosen.get("size") if isinstance(chosen, dict) else None,
        siblings=tuple(_digest(wheel) for wheel in wheels if wheel is not best and _digest(wheel)),
        uploaded=_newest(wheels or [chosen]),
    )


def _digest(file: object) -> str:
    hashes = file.get("hashes", {}) if isinstance(file, dict) else {}
    return str(hashes.get("sha256", ""))


def _newest(files: Sequence[object]) -> str:
    """Upload time of the newest file, "" if one has none."""
    times = [file.get("upload-time") if isinstance(file, dict) else None for file in files]
    dated = [time for time in times if isinstance(time, datetime)]
    return max(dated).isoformat() if dated and len(dated) == len(times) else ""


def file_name(file: object) -> str:
    """The name of a file in a lock file."""
    if not isinstance(file, dict):
        return ""
    where = str(file.get("name") or file.get("path") or file.get("url") or "")
    return unquote(urlsplit(where).path).rpartition("/")[2]


def _rank(wheel: str, tags: Sequence[Tag]) -> int:
    try:
        fits = parse_wheel_filename(wheel)[3]
    except InvalidWheelFilename:
        return len(tags)
    return next((rank for rank, tag in enumerate(tags) if tag in fits), len(tags))
