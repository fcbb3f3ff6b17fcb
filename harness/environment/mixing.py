"""Builds mixtures: a copy of a finished environment with some files exchanged, cheap enough to be made for each run.

Whatever has no exchanged file is linked as a whole, by a symbolic link; a top-level package that has one is copied. The
finished environment is never touched.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from harness.environment.build import site_packages

if TYPE_CHECKING:
    from pathlib import Path

    from harness.model import Mixture


def flaw_of(mixture: Mixture, python: str) -> str:
    """Why a mixture can't be run with a Python of this version ("3.11.7"), "" if nothing is known against it."""
    return mixture.flaw or _not_python(mixture, python)


def build_mixture(base: Path, mixture: Mixture, folder: Path) -> None:
    """Build the mixture of a finished environment at `folder`, which does not exist yet. Raises `OSError`."""
    folder.mkdir()
    (folder / "bin").symlink_to(base / "bin", target_is_directory=True)
    shutil.copy2(base / "pyvenv.cfg", folder / "pyvenv.cfg")
    packages = site_packages(base)
    inside = folder / packages.relative_to(base)
    _copy(packages, inside, {PurePosixPath(path).parts[0] for path in mixture.files})
    for path, content in mixture.files.items():
        exchange(inside, path, content)


def _copy(source: Path, target: Path, exchanged: set[str]) -> None:
    """Symbolic links for all entries but those that will be altered, which are copied with their time stamps."""
    target.mkdir(parents=True)
    for entry in source.iterdir():
        if entry.name in exchanged and entry.is_dir():
            shutil.copytree(entry, target / entry.name, symlinks=True)
        elif entry.name not in exchanged:
            (target / entry.name).symlink_to(entry, target_is_directory=entry.is_dir())
        else:
            shutil.copy2(entry, target / entry.name)


def exchange(inside: Path, path: str, content: bytes | None) -> None:
    """Put a file in place of another, or remove it."""
    place = inside / path
    place.unlink(missing_ok=True)
    if content is not None:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        return
    # An empty folder would still be found: as a namespace package, or as the metadata of a distribution.
    folder = place.parent
    while folder != inside and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def _not_python(mixture: Mixture, python: str) -> str:
    """The first syntax error in a mixed file, where this interpreter can judge the language of that one, else ""."""
    if tuple(int(part) for part in python.split(".")[:2]) > sys.version_info[:2]:
        return ""
    for path, content in mixture.files.items():
        if content is not None and path.endswith(".py"):
            try:
                compile(content, path, "exec", dont_inherit=True)
            except (SyntaxError, ValueError) as error:
                return f"the mixture is not valid Python: {path}: {error}"
    return ""
