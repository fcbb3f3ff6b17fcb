"""Reads the compressed log of a run, up to a limit; of a damaged log, the part that can be read."""

from __future__ import annotations

import gzip
import zlib
from typing import TYPE_CHECKING

from harness.run.launch import LOG_KEPT

if TYPE_CHECKING:
    from pathlib import Path

_MOST = LOG_KEPT + (1 << 16)
_PIECE = 1 << 20
_TAIL = 64 * 1024


def read_log(path: Path) -> str:
    """Return the stored output of a run, "" if there is no log."""
    return _read(path).decode("utf-8", "replace")


def read_tail(path: Path) -> str:
    """Return the end of a log, as much as the harness inspects after a run."""
    return _read(path)[-_TAIL:].decode("utf-8", "replace")


def _read(path: Path) -> bytes:
    # A few kilobytes can decompress to terabytes.
    pieces, left = [], _MOST
    try:
        with path.open("rb") as raw, gzip.GzipFile(fileobj=raw, mode="rb") as packed:
            while left > 0 and (piece := packed.read(min(left, _PIECE))):
                pieces.append(piece)
                left -= len(piece)
    except (OSError, EOFError, zlib.error):
        pass
    return b"".join(pieces)
