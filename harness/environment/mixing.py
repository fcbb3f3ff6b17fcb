"""Builds mixtures: copies of a finished environment with some files exchanged, cheap enough for a single run.

A folder without exchanged files is a symbolic link. In a folder with exchanged files, the files are copies. The
finished environment is never changed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from harness.environment.location import site_packages

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness.model import Mixture


_MOST_KEPT = 20_000


def flaw_of(mixture: Mixture, python: str) -> str:
    """Why a mixture can't run with this Python version ("3.11.7"), "" if it may run."""
    return mixture.flaw or _not_python(mixture, python)


def build_mixture(base: Path, mixture: Mixture, folder: Path) -> None:
    """Build a mixture of a finished environment at `folder`, which must not exist yet. Raises `OSError`."""
    folder.mkdir()
    (folder / "bin").symlink_to(base / "bin", target_is_directory=True)
    shutil.copy2(base / "pyvenv.cfg", folder / "pyvenv.cfg")
    packages = site_packages(base)
    inside = folder / packages.relative_to(base)
    _copy(packages, inside, [PurePosixPath(path).parts for path in mixture.files])
    for path, content in mixture.files.items():
        exchange(inside, path, content)


def _copy(source: Path, target: Path, exchanged: Sequence[tuple[str, ...]], *, is_top: bool = True) -> None:
    """Copy a folder whose exchanged files are listed as the parts of their paths.

    Folders without an exchanged file are linked. Files next to an exchanged one are copied with their times, except at
    the top, where many packages have files: there they are linked too.
    """
    target.mkdir(parents=True)
    below: dict[str, list[tuple[str, ...]]] = {}
    for parts in exchanged:
        below.setdefault(parts[0], []).append(parts[1:])
    for entry in os.scandir(source):
        inside = [parts for parts in below.get(entry.name, ()) if parts]
        if inside and entry.is_dir():
            _copy(source / entry.name, target / entry.name, inside, is_top=False)
        elif entry.is_dir() or (is_top and entry.name not in below):
            (target / entry.name).symlink_to(source / entry.name, target_is_directory=entry.is_dir())
        elif entry.name not in below:
            shutil.copy2(entry.path, target / entry.name)


def exchange(inside: Path, path: str, content: bytes | None) -> None:
    """Replace a file, or remove it."""
    place = inside / path
    place.unlink(missing_ok=True)
    if content is not None:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        return
    # Python would treat an empty folder as a namespace package, or as metadata of a distribution.
    folder = place.parent
    while folder != inside and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def _not_python(mixture: Mixture, python: str) -> str:
    """The first syntax error in a mixed file, if this interpreter can judge that version of the language, else ""."""
    if tuple(int(part) for part in python.split(".")[:2]) > sys.version_info[:2]:
        return ""
    for path, content in mixture.files.items():
        if content is not None and path.endswith(".py") and (problem := _problem(content)):
            return f"the mixture is not valid Python: {path}: {problem}"
    return ""


_problems: dict[bytes, str] = {}


def _problem(content: bytes) -> str:
    """The first syntax error of a text, "" if there is none; cached."""
    key = hashlib.blake2b(content, digest_size=16).digest()
    if key not in _problems:
        if len(_problems) >= _MOST_KEPT:
            _problems.clear()
        try:
            compile(content, "<mixed>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            _problems[key] = str(error)
        else:
            _problems[key] = ""
    return _problems[key]
