"""Sends the folders that a run imports from, such as a built commit: packed here, unpacked once on each worker.

A folder is named by a hash of its content, so a worker needs no path of this machine.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import shutil
import tarfile
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen
from filelock import FileLock

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.environment import Workspace
    from harness.model import Repro


@frozen
class SentFolder:
    """A folder as a tar archive compressed by gzip; `name` is derived from its content."""

    name: str
    content: bytes = field(repr=False)


def packed(repro: Repro) -> tuple[Repro, tuple[SentFolder, ...]]:
    """Return the repro with a relative search path, and the folders that its entries start with."""
    paths = [Path(text) for text in repro.search_path if Path(text).is_dir()]
    roots = [path for path in paths if not any(other in path.parents for other in paths)]
    folders = {root: _packed(root) for root in roots}
    entries = [
        (Path(folder.name) / path.relative_to(root)).as_posix()
        for path in paths
        for root, folder in folders.items()
        if path.is_relative_to(root)
    ]
    sent = {folder.name: folder for folder in folders.values()}
    return evolve(repro, search_path=tuple(dict.fromkeys(entries))), tuple(sent.values())


def unpacked(repro: Repro, folders: Iterable[SentFolder], workspace: Workspace) -> Repro:
    """Return the repro with its search path in this machine's cache. Unpacks the folders that are not there yet."""
    parent = workspace.projects
    for folder in folders:
        with FileLock(workspace.locks / f"sent-{folder.name}.lock"):
            if not (parent / folder.name).is_dir():
                partial = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=parent))
                try:
                    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(folder.content))) as tar:
                        tar.extractall(partial, filter="data")
                    partial.chmod(0o755)
                    partial.rename(parent / folder.name)
                finally:
                    shutil.rmtree(partial, ignore_errors=True)
    return evolve(repro, search_path=tuple(str(parent / entry) for entry in repro.search_path))


@lru_cache(maxsize=4)  # a bisection of another package sends the same folder with each run
def _packed(folder: Path) -> SentFolder:
    def kept(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if Path(member.name).name == "__pycache__" or not (member.isfile() or member.isdir() or member.issym()):
            return None
        if member.issym() and not (folder / member.name).resolve().is_relative_to(folder.resolve()):
            return None  # it points to files that only this machine has
        member.uid = member.gid = member.mtime = 0
        member.uname = member.gname = ""
        return member

    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.add(folder, arcname=".", filter=kept)
    content = archive.getvalue()
    return SentFolder(f"sent-{hashlib.sha256(content).hexdigest()[:20]}", gzip.compress(content, mtime=0))
