"""Copies that the harness keeps of repositories: a bare clone for each URL, a folder for each commit that is built."""

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
    from harness.model.commit import Commit

_CLONE_S = 1800.0
_SCHEMES = ("https://", "http://", "ssh://", "git://", "file://")


def is_url(text: str) -> bool:
    """Whether `--git` names a URL and not a folder."""
    return text.startswith(_SCHEMES) or (text.startswith("git@") and ":" in text)


def clone_of(url: str, cache: Path) -> Repository:
    """A bare clone of a repository, made once below `cache` and brought up to date each time it is asked for.

    Raises `NoNetwork` if it can't be reached and no clone was made before.
    """
    folder = cache / hashlib.sha256(url.encode()).hexdigest()[:20]
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / f"{folder.name}.lock"):
        if folder.is_dir():
            # Without network what was fetched before still answers for commits that it has.
            _fetch(["git", "-C", str(folder), "fetch", "--quiet", "--tags", "--force", "origin", "+refs/*:refs/*"])
            return Repository.open(folder)
        partial = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=cache))
        try:
            words = _fetch(["git", "clone", "--quiet", "--mirror", url, str(partial / "clone")])
            if words:
                raise NoNetwork(f"can't clone {url}: {words}", hint="check the URL, or give --git a clone of your own")
            (partial / "clone").rename(folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return Repository.open(folder)


def archive_of(repository: Repository, commit: Commit, cache: Path) -> Path:
    """The files of a commit in a folder of their own, kept by its hash. Links that lead out of it are refused."""
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
                    f"commit {commit.short} has a file that leads out of its folder: {error}"
                ) from error
            finally:
                shutil.rmtree(partial, ignore_errors=True)
    return folder


def _fetch(command: list[str]) -> str:
    """What git says where it fails, else ""."""
    safe = ["git", "-c", "protocol.ext.allow=never", "-c", "core.hooksPath=/dev/null", *command[1:]]
    try:
        ended = subprocess.run(
            safe, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_CLONE_S, check=False
        )
    except FileNotFoundError as error:
        raise BadRepository("git is not installed", hint="install git to go down to the commit") from error
    except subprocess.TimeoutExpired:
        return f"timed out after {_CLONE_S:g} s"
    lines = ended.stderr.strip().splitlines()
    return "" if ended.returncode == 0 else (lines[-1] if lines else "git gives no reason")
