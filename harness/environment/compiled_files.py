"""Files of compiled modules: their names, their record in the store, and links to them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import struct
from typing import TYPE_CHECKING

from harness.environment.file_state import FileState, state_of

if TYPE_CHECKING:
    from pathlib import Path

LEDGER = "ledger.json"
_HEADER = 16  # bytes


def compiled_name(source: str, cache_tag: str) -> str:
    """The name of the bytecode of a source (both end with their suffix)."""
    return f"{source.removesuffix('.py')}.{cache_tag}.pyc"


def source_name(compiled: str, cache_tag: str) -> str:
    """The name of the source of bytecode."""
    return f"{compiled.removesuffix(f'.{cache_tag}.pyc')}.py"


def _fits(data: bytes, source: str) -> bool:
    """Whether bytecode was compiled from this source, by the time stamp and size in its header (PEP 552)."""
    try:
        found = os.stat(source)  # noqa: PTH116 - for speed
    except OSError:
        return False
    return data[8:16] == struct.pack("<II", int(found.st_mtime) & 0xFFFFFFFF, found.st_size & 0xFFFFFFFF)


def link_compiled(origin: str, target: str, state: FileState, source: str) -> FileState | None:
    """Link unchanged bytecode of this source and return its state; None if it changed or belongs to another source.

    A file that changed since it was compiled is removed from the store. A file with its recorded change time is not
    read.
    """
    is_known = False
    try:
        before = os.lstat(origin)
        is_known = state.is_like(before) and before.st_ctime_ns == state.ctime_ns
        os.link(origin, target)
    except FileExistsError:
        os.unlink(target)  # noqa: PTH108
        os.link(origin, target)
    except FileNotFoundError:
        return None
    except OSError:  # another file system, or one without hard links
        shutil.copyfile(origin, target)
        is_known = False
    # The state before reading, so that a write in between shows in the comparison after the run.
    linked = state_of(target, state.content)
    with open(target, "rb") as file:  # noqa: PTH123 - for speed
        data = file.read(_HEADER if is_known else -1)
    is_compiled = linked[:3] == state[:3] if is_known else hashlib.sha256(data).hexdigest() == state.content
    if is_compiled and _fits(data, source):
        return linked
    os.unlink(target)  # noqa: PTH108
    if not is_compiled:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(origin)  # noqa: PTH108
    return None


def read_ledger(folder: Path) -> dict[str, FileState]:
    """The files of a wheel's bytecode in the store, by their names; empty if there is no valid record."""
    try:
        told = json.loads((folder / LEDGER).read_bytes())
        return {path: FileState(*row) for path, row in told.items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}
