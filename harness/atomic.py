"""Files: atomic writes, what they contain, and recognising a full disk."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

_SUFFIX = ".harness.part"  # no other program's files may be removed


def write_whole(path: Path, content: str | bytes, *, mode: int = 0o644) -> None:
    """Write text or bytes to a temporary file, then rename it.

    Raises `OSError`; the temporary file is removed then. If the process is killed, `remove_partial` removes it.
    """
    handle, partial = _claimed_file(path)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            partial.chmod(mode)  # temporary files are readable only by their owner
            partial.replace(path)  # before it is closed, which releases the lock
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise


def remove_partial(folders: Iterable[Path]) -> None:
    """Remove the temporary files that killed processes left in these folders; folders below them are not searched."""
    for folder in folders:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith(".") and entry.name.endswith(_SUFFIX):
                    with contextlib.suppress(OSError), open(entry.path, "rb") as file:  # noqa: PTH123
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # its writer holds it while it lives
                        os.unlink(entry.path)  # noqa: PTH108


def _claimed_file(path: Path) -> tuple[int, Path]:
    """A new temporary file beside `path`, open and locked; its folder is made."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=_SUFFIX, dir=path.parent)
        except FileNotFoundError:  # `harness clean` removed the folder between the two calls
            continue
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        partial = Path(name)
        if partial.exists():
            return handle, partial
        os.close(handle)  # removed between the two calls


def sha256_of(path: Path | str) -> str:
    """The SHA-256 of a file. Raises `OSError`."""
    with open(path, "rb") as file:  # noqa: PTH123 - called for each of many thousand files
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_out_of_space(error: OSError) -> bool:
    """Whether an error of the operating system means that the disk or a quota is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)
