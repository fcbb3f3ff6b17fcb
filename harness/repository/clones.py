"""Caches repositories: a bare clone for each URL, and a folder for each commit that is built."""

from __future__ import annotations

import hashlib
import io
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock

from harness.errors import BadRepository, NoNetwork
from harness.repository.git import Repository

if TYPE_CHECKING:
    from harness.model.culprit import Commit

_CLONE_S = 1800.0
_FETCHED = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")  # not the refs of pull requests
_SCHEMES = ("https://", "http://", "ssh://", "git://", "file://")


def is_url(text: str) -> bool:
    """Whether a value of `--git` is a URL, not a folder."""
    return text.startswith(_SCHEMES) or (text.startswith("git@") and ":" in text)


def clone_of(url: str, cache: Path) -> Repository:
    """Return a bare clone of a repository in `cache`, updated on each call if the network allows.

    Raises `NoNetwork` if the URL can't be cloned and was not cloned before, `BadRepository` if git is not installed.
    """
    folder = cache / hashlib.sha256(url.encode()).hexdigest()[:20]
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / f"{folder.name}.lock"):
        if folder.is_dir():
            # Without network, the clone still has the commits fetched before.
            _fetch(["git", "-C", str(folder), "fetch", "--quiet", "--force", "--prune", "origin", *_FETCHED])
            return Repository.open(folder)
        partial = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=cache))
        try:
            words = _fetch(["git", "clone", "--quiet", "--bare", url, str(partial / "clone")])
            if words:
                raise NoNetwork(f"can't clone {url}: {words}", hint="check the URL, or pass your own clone to --git")
            (partial / "clone").rename(folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return Repository.open(folder)


def archive_of(repository: Repository, commit: Commit, cache: Path) -> Path:
    """Return a folder with the files of a commit, cached by its hash.

    Raises `BadRepository` if a file would be written outside the folder, or a link points there.
    """
    folder = cache / commit.sha
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / f"{commit.sha}.lock"):
        if not folder.is_dir():
            partial = Path(tempfile.mkdtemp(prefix=f"{commit.short}-", dir=cache))
            try:
                content = repository.call("archive", "--format=tar", commit.sha)
                with tarfile.open(fileobj=io.BytesIO(content)) as tar:
                    tar.extractall(partial, filter="data")
                partial.rename(folder)
            except tarfile.FilterError as error:
                raise BadRepository(
                    f"commit {commit.short} has a file that points outside its folder: {error}"
                ) from error
            finally:
                shutil.rmtree(partial, ignore_errors=True)
    return folder


def _fetch(command: list[str]) -> str:
    """Run git; return its error message, "" if it succeeded. Raises `BadRepository` if git is not installed."""
    safe = ["git", "-c", "protocol.ext.allow=never", "-c", "core.hooksPath=/dev/null", *command[1:]]
    try:
        ended = subprocess.run(
            safe, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_CLONE_S, check=False
        )
    except FileNotFoundError as error:
        raise BadRepository("git is not installed", hint="install git to search commits") from error
    except subprocess.TimeoutExpired:
        return f"timed out after {_CLONE_S:g} s"
    lines = ended.stderr.strip().splitlines()
    return "" if ended.returncode == 0 else (lines[-1] if lines else "git gave no reason")
