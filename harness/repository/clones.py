"""Caches repositories: a bare clone for each URL, and a folder for each commit that is built."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from filelock import FileLock

from harness.errors import BadRepository, NoNetwork
from harness.repository.git import Repository, run_git

if TYPE_CHECKING:
    from harness.model.commit import Commit

_CLONE_S = 1800.0
_FETCHED = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")  # not the refs of pull requests
_SCHEMES = ("https://", "http://", "ssh://", "git://", "file://")
_CREDENTIALS = re.compile(r"://(?:(?<=ssh://)(?P<user>[^:/@\s]+))?[^/\s]*@")


def is_url(text: str) -> bool:
    """Whether a value of `--git` is a URL, not a folder."""
    return text.startswith(_SCHEMES) or (text.startswith("git@") and ":" in text)


def without_credentials(url: str) -> str:
    """Return a URL without user name and password; for ssh the user name stays, because it is part of the address."""
    return _CREDENTIALS.sub(lambda found: f"://{found['user']}@" if found["user"] else "://", url)


def clone_of(url: str, cache: Path) -> Repository:
    """Return a bare clone of a repository in `cache`, updated on each call if the network allows.

    Credentials in the URL are used to fetch and are not stored. Raises `NoNetwork` if the URL can't be cloned and was
    not cloned before, `BadRepository` if git is not installed.
    """
    known = without_credentials(url)
    folder = cache / hashlib.sha256(known.encode()).hexdigest()[:20]
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / f"{folder.name}.lock"):
        if folder.is_dir():
            # Without network, the clone still has the commits fetched before.
            _fetch(folder, url, "fetch", "--quiet", "--force", "--prune", "origin", *_FETCHED)
            return Repository.open(folder)
        partial = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=cache))
        try:
            words = _fetch(partial, url, "clone", "--quiet", "--bare", "--template=", known, "clone")
            if words:
                raise NoNetwork(f"can't clone {known}: {words}", hint="check the URL, or pass your own clone to --git")
            (partial / "clone").rename(folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return Repository.open(folder)


def _fetch(folder: Path, url: str, *arguments: str) -> str:
    """Run git with network and the credentials in `url`; return its error message, "" if it succeeded.

    Raises `BadRepository` if git is not installed.
    """
    known = without_credentials(url)
    variables = {"GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh", "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    if known != url:  # not an argument, which any user of this machine can read, nor the clone's configuration
        variables |= {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"url.{url}.insteadOf",
            "GIT_CONFIG_VALUE_0": known,
        }
    try:
        ended = run_git(folder, *arguments, limit_s=_CLONE_S, variables=variables)
    except BadRepository as error:
        if "timed out" in error.message:
            return error.message
        raise
    lines = ended.stderr.decode("utf-8", "replace").strip().splitlines()
    return "" if ended.returncode == 0 else without_credentials(lines[-1] if lines else "git gave no reason")


def archive_of(repository: Repository, commit: Commit, cache: Path) -> Path:
    """Return a folder with the files of a commit as they are stored, cached by its hash.

    Filters and export attributes do not apply; submodules are empty folders. Raises `BadRepository` if a file would be
    written outside the folder, or a link points there.
    """
    folder = cache / commit.sha
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / f"{commit.sha}.lock"):
        if not folder.is_dir():
            partial = Path(tempfile.mkdtemp(prefix=f"{commit.short}-", dir=cache))
            try:
                _write_files(repository, commit, partial)
                partial.chmod(0o755)
                partial.rename(folder)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
    return folder


def _write_files(repository: Repository, commit: Commit, folder: Path) -> None:
    tree = repository.tree(commit.sha)
    contents = repository.contents(entry.blob for entry in tree.values() if entry.is_regular or entry.is_link)
    top = folder.resolve()
    # Links come last, so that no file is written through one.
    for path, entry in sorted(tree.items(), key=lambda item: item[1].is_link):
        place = folder / path
        if not _stays_inside(path):
            raise BadRepository(f"commit {commit.short} has a file outside its folder: {path!r}")
        place.parent.mkdir(parents=True, exist_ok=True)
        if entry.is_link:
            place.symlink_to(os.fsdecode(contents[entry.blob]))
        elif entry.is_regular:
            place.write_bytes(contents[entry.blob])
            place.chmod(0o755 if entry.is_executable else 0o644)
        else:
            place.mkdir(exist_ok=True)
    for path in (path for path, entry in tree.items() if entry.is_link):
        if not (folder / path).resolve().is_relative_to(top):
            raise BadRepository(f"commit {commit.short} has a link that points outside its folder: {path!r}")


def _stays_inside(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return not path.startswith("/") and not any(part == ".." or part.lower() == ".git" for part in parts)
