"""Finds which installed files a process used, and which distributions they belong to."""

# Importing pathlib would take as long as all the rest of this module.
# ruff: noqa: PTH100, PTH113, PTH118, PTH120, PTH123, PTH208

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

_FIELD = re.compile(r"^(Name|Version):[ \t]*(\S+)", re.MULTILINE)
_HEAD = 4096  # both fields are at the top of the file
_METADATA = (".dist-info", ".egg-info")


class Distribution(NamedTuple):
    """An installed distribution; `folder` holds its RECORD, if it has one."""

    name: str
    version: str
    folder: str


def used_files(noted: Iterable[str], roots: list[str]) -> list[str]:
    """Return the files that were imported, mapped, or seen by the audit hook, relative to site-packages.

    `noted` are the paths that the hook saw. Metadata and `.pth` files of distributions are left out, because every
    interpreter reads them at startup.
    """
    paths = {os.path.abspath(path) for path in noted}
    for module in list(sys.modules.values()):
        file = getattr(module, "__dict__", {}).get("__file__")
        if type(file) is str:
            paths.add(file)
    paths.update(_mapped_files())
    below = tuple({root + os.sep for root in (*roots, *map(os.path.realpath, roots))})
    used = set()
    for path in paths:
        root = next((root for root in below if path.startswith(root)), None)
        # Attempts to open missing files are recorded too.
        if root is not None and not _is_metadata(path[len(root) :]) and os.path.isfile(path):
            used.add(path[len(root) :].replace(os.sep, "/"))
    return sorted(used)


def distributions(path: Iterable[str]) -> list[Distribution]:
    """Return the distributions in these folders. Of two with the same name the first counts, as for imports."""
    found: dict[str, Distribution] = {}
    for folder in dict.fromkeys(path):
        try:
            entries = sorted(os.listdir(folder or "."))
        except OSError:
            continue
        for entry in entries:
            if entry.endswith(_METADATA):
                one = _distribution(os.path.join(folder, entry))
                if one is not None:
                    found.setdefault(one.name, one)
    return sorted(found.values())


def owners(used: Iterable[str], installed: Iterable[Distribution], roots: list[str]) -> dict[str, str]:
    """Return the distribution of each file from the RECORD files, else from its neighbours, else its top-level name."""
    wanted = set(used)
    owner: dict[str, str] = {}
    by_top: dict[str, str] = {}
    for one in installed:
        if os.path.dirname(one.folder) not in roots:
            continue
        try:
            with open(os.path.join(one.folder, "RECORD"), encoding="utf-8") as file:
                lines = file.read().splitlines()
        except OSError:
            continue
        for line in lines:
            name = line[1:].split('"', 1)[0] if line.startswith('"') else line.split(",", 1)[0]
            if name in wanted:
                owner.setdefault(name, one.name)
                by_top.setdefault(_top(name), one.name)
    for name in wanted:
        owner.setdefault(name, by_top.get(_top(name), _top(name)))
    return owner


def by_distribution(owner: dict[str, str]) -> dict[str, list[str]]:
    """Return the files of each distribution, sorted: the inverse of `owners`."""
    files: dict[str, list[str]] = {}
    for name in sorted(owner):
        files.setdefault(owner[name], []).append(name)
    return files


def _distribution(folder: str) -> Distribution | None:
    for name in ("METADATA", "PKG-INFO", ""):  # an old .egg-info may be a file itself
        path = os.path.join(folder, name) if name else folder
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                fields = dict(_FIELD.findall(file.read(_HEAD)))
        except OSError:
            continue
        if "Name" in fields and "Version" in fields:
            normalized = re.sub(r"[-_.]+", "-", fields["Name"]).lower()
            return Distribution(normalized, fields["Version"], folder)
    return None


def _mapped_files() -> set[str]:
    """The shared libraries of this process, which the linker opens without calling any hook of Python."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return set()
    return {line[line.index("/") :] for line in lines if "-packages" in line and "/" in line}


def _is_metadata(name: str) -> bool:
    return name.split(os.sep, 1)[0].endswith(_METADATA) or name.endswith(".pth")


def _top(name: str) -> str:
    top = name.split("/", 1)[0]
    return top.split(".", 1)[0] if top == name else top
