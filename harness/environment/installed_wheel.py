"""The files of an installed wheel, checked against its RECORD."""

from __future__ import annotations

import base64
import csv
import os
import posixpath
from typing import TYPE_CHECKING

from harness.environment.file_state import FileState, state_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def installed_files(info: Path, folder: Path) -> tuple[dict[str, FileState], str]:
    """The files of an installed distribution, and the first file that does not match its RECORD ("": none).

    If a path leads out of the environment, the wheel can't be stored, and no files are returned.
    """
    packages = info.parent.relative_to(folder).as_posix()
    files = {}
    with (info / "RECORD").open(encoding="utf-8", newline="") as rows:
        for name, digest, *_ in csv.reader(rows):
            path = posixpath.normpath(posixpath.join(packages, name))
            if path.startswith(("../", "/")):
                return {}, ""
            try:
                state = state_of(folder / path)
            except OSError:
                continue
            if digest.startswith("sha256=") and _hex(digest) != state.content:
                return {}, name
            files[path] = state
    return files, ""


def is_in_two_wheels(name: str, info: Path, packages: Path) -> bool:
    """Whether another distribution installs a file of the same name, and may have overwritten it."""
    others = (record for record in packages.glob("*.dist-info/RECORD") if record.parent != info)
    return any(name in record.read_text(encoding="utf-8", errors="replace") for record in others)


def _hex(digest: str) -> str:
    text = digest.removeprefix("sha256=")
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).hex()
    except ValueError:
        return ""


def is_relocatable(files: Iterable[str], folder: Path) -> bool:
    """Whether no script names the environment that it was installed into."""
    here = os.fsencode(folder)
    return not any(path.startswith("bin/") and here in (folder / path).read_bytes() for path in files)
