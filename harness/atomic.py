"""Files that are written whole or not at all, whoever else writes them at the same time; and what a full disk is."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    """Write text or bytes beside its place and rename it there. Raises `OSError`; nothing is left behind then."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        Path(partial).chmod(0o644)  # a temporary file is its owner's alone
        Path(partial).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(partial).unlink()
        raise


def is_out_of_space(error: OSError) -> bool:
    """Whether an error of the operating system means a full disk."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)
