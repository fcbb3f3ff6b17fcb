"""Atomic file writes, and recognising a full disk."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    """Write text or bytes to a temporary file, then rename it.

    Raises `OSError`; the temporary file is removed then.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        Path(partial).chmod(0o644)  # temporary files are readable only by their owner
        Path(partial).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(partial).unlink()
        raise


def is_out_of_space(error: OSError) -> bool:
    """Whether an error of the operating system means that the disk or a quota is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)
