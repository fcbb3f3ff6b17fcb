"""Another path to an environment for each repetition of a run, so that a bug that depends on the path is not repeated.

An alias is a small folder beside the environments: its programs are copies, everything else in it is a link. A Python
that is started there has it as `sys.prefix` and in the paths of its modules. It is named by a number, so that a run can
be repeated at the same path.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from harness.run.launch import remove_tree

if TYPE_CHECKING:
    from harness.environment.ledger import EnvironmentRecord

_COPIED = ("bin", "pyvenv.cfg")


def alias_of(record: EnvironmentRecord, base: Path, number: int) -> Path:
    """Return the alias `number` of the environment at `base`, made now if it is missing or was changed.

    Call it with the shared lock of the environment held. Raises `OSError`.
    """
    parent = record.aliases
    parent.mkdir(parents=True, exist_ok=True)
    folder, wanted = parent / str(number), _entries(base)
    if _entries(folder, is_alias=True) == wanted:
        return folder
    part = Path(tempfile.mkdtemp(prefix=".", dir=parent))
    for name, content in wanted.items():
        path = part / name
        path.parent.mkdir(exist_ok=True)
        if isinstance(content, str):
            path.symlink_to(content)
        else:
            shutil.copy2(base / name, path)
    former = Path(tempfile.mkdtemp(prefix=".", dir=parent))
    with contextlib.suppress(FileNotFoundError):
        folder.rename(former / "former")
    with contextlib.suppress(OSError):  # another run has made it meanwhile
        part.rename(folder)
    remove_tree(former)
    remove_tree(part)
    return folder


def _entries(folder: Path, *, is_alias: bool = False) -> dict[str, str | tuple[int, bytes]]:
    """The entries of an alias, or of one that an environment should have: the target of a link, or mode and content."""
    found: dict[str, str | tuple[int, bytes]] = {}
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for entry in os.scandir(folder):
            if entry.name == "bin" and entry.is_dir(follow_symlinks=False):
                found |= {f"bin/{one.name}": _entry(one) for one in os.scandir(entry.path)}
            else:
                is_own = is_alias or entry.name in _COPIED or entry.is_symlink()
                found[entry.name] = _entry(entry) if is_own else entry.path
    return found


def _entry(entry: os.DirEntry[str]) -> str | tuple[int, bytes]:
    if entry.is_symlink():
        return os.readlink(entry.path)  # noqa: PTH115 - the target as it is written
    if not entry.is_file():
        return f"{entry.path}/"  # a folder, which an alias never has
    return entry.stat().st_mode, Path(entry.path).read_bytes()


def link_bytecode(prefix: Path, tree: Path, folders: dict[Path, Path]) -> None:
    """Let a run that has its bytecode below `prefix` find, and write, that of a tree.

    `folders` maps each folder of sources as the run sees it to the one that the tree knows it by.
    """
    for seen, known in folders.items():
        target, link = tree / known.relative_to(known.anchor), prefix / seen.relative_to(seen.anchor)
        target.mkdir(parents=True, exist_ok=True)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
