"""Lists the files of a project (those tracked by git), computes their digest, and copies them."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from harness.repository.git import git_output

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_IN_A_TAG = re.compile(r"\d+(\.\d+)*[\w.]*$")
_NOT_COPIED = {
    *(".git", ".hg", ".svn", ".tox", ".nox", ".venv", "venv", "env", "node_modules", "__pycache__"),
    *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".eggs", "results"),
}


def files_of(root: Path) -> Iterator[Path]:
    """Yield files relative to the folder: those tracked by git, or without git all except environments and caches."""
    listed = git_output(root, "ls-files", "-z", "--cached", "--recurse-submodules")
    if listed:
        yield from (Path(name) for name in listed.split("\0") if name and _is_there(root / name))
        return
    for parent, folders, names in os.walk(root):
        folders[:] = [
            name
            for name in folders
            if name not in _NOT_COPIED
            and not name.endswith(".egg-info")
            and not Path(parent, name, "pyvenv.cfg").exists()
        ]
        # In a worktree and in a submodule `.git` is a file that names the repository.
        yield from (Path(parent, name).relative_to(root) for name in names if name != ".git")


def _is_there(path: Path) -> bool:
    return path.is_symlink() or path.is_file()


def last_commit(root: Path) -> str:
    """Return the time of the last commit (ISO 8601), "" if there is none."""
    return git_output(root, "log", "-1", "--format=%cI")


def version_of_tag(root: Path) -> str:
    """Return the version of the nearest tag with the local label "copy": "1.2+copy"; "0+copy" if there is none."""
    tag = git_output(root, "describe", "--tags", "--abbrev=0")
    found = _IN_A_TAG.search(tag)
    try:
        return f"{Version(found[0]).public}+copy" if found else "0+copy"
    except InvalidVersion:
        return "0+copy"


def make_repository(folder: Path) -> None:
    """Make a folder a git repository with all its files, because some builds only use tracked files."""
    # Without the user's configuration: it may name filters, which the copy's .gitattributes would start.
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_DIR": str(folder / ".git")}
    own |= {f"GIT_{who}_{what}": "copy" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    for words in (["init", "--template="], ["add", "--all", "--force"], ["commit", "--no-verify", "-m", "A copy"]):
        git_output(folder, *words, variables=own)


def content_digest(root: Path, files: Iterable[Path]) -> str:
    """Return the digest of all files, so that a changed test is a new question."""
    digest = hashlib.sha256()
    for file in files:
        path = root / file
        content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
        mode = b"" if path.is_symlink() or not path.stat().st_mode & 0o100 else b"x"
        digest.update(b"\0".join([os.fsencode(file), mode, hashlib.sha256(content).digest()]))
    return digest.hexdigest()[:20]


def copy_files(root: Path, files: Iterable[Path], home: Path) -> None:
    """Copy files of a folder to `home / "tree"`, completely or not at all."""
    home.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix="tree-", dir=home))
    for file in files:
        target = partial / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / file, target, follow_symlinks=False)
    partial.chmod(0o755)
    partial.rename(home / "tree")
