"""Shares a file of the wheel store with an environment: cloned, else hard-linked, else copied.

A clone (FICLONE) shares the blocks on disk but no inode, so writing to it changes no other file.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# The file is on another file system, or has too many links.
NO_LINKS = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP)
_NO_CLONES = (errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ENOSYS)
_FICLONE = 0x40049409  # ioctl_ficlone(2)

_cannot_clone: set[int] = set()  # devices


def sharing(folder: Path, *, may_copy: bool = True) -> Callable[[str, str], object]:
    """The function that shares files of this folder: a clone, or a link where the file system can't clone.

    With `may_copy` it copies where neither works, else it raises an OSError with a code in `NO_LINKS`.
    """
    link = _link_or_copy if may_copy else _link
    return link if folder.stat().st_dev in _cannot_clone else partial(_clone, otherwise=link)


def _clone(origin: str, target: str, *, otherwise: Callable[[str, str], object]) -> None:
    """Create a file that shares the blocks of another but not its inode, or share it otherwise."""
    if os.path.islink(origin):  # noqa: PTH114
        otherwise(origin, target)
        return
    with open(origin, "rb") as source:  # noqa: PTH123
        try:
            with open(target, "xb") as copy:  # noqa: PTH123
                fcntl.ioctl(copy.fileno(), _FICLONE, source.fileno())
        except OSError as error:
            if error.errno not in _NO_CLONES:
                raise
            _cannot_clone.add(os.fstat(source.fileno()).st_dev)
            os.unlink(target)  # noqa: PTH108
            otherwise(origin, target)
            return
    shutil.copystat(origin, target)


def _link(origin: str, target: str) -> None:
    os.link(origin, target, follow_symlinks=False)


def _link_or_copy(origin: str, target: str) -> None:
    try:
        _link(origin, target)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        shutil.copy2(origin, target, follow_symlinks=False)
