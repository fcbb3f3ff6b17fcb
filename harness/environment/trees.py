"""Folders kept by a hash over their content: what first steps wrote, and inputs. Nothing in them ever changes.

A folder is checked before each use; the ledger knows the contents of files that did not change since they were read.

`Fetcher` fetches the inputs that a repro declares, before any run and outside of the sandbox. Files of a hub come
through its own client, in an environment of its own. What was fetched once is not asked for again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import urllib.error
import urllib.request
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from harness.atomic import sha256_of
from harness.environment.ledger import Ledger, files_below
from harness.environment.record import read_record, write_record
from harness.environment.workspace import Workspace, claimed_folder
from harness.errors import UserMistake
from harness.model.repro import INPUTS, Given
from harness.run.launch import remove_tree
from harness.run.locks import acquire

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.environment.uv import Uv
    from harness.model import Input


_READ_ONLY_FILE, _READ_ONLY_FOLDER, _EXECUTABLE = 0o444, 0o555, 0o111


class NotKept(Exception):
    """A folder that can't be kept; the message is a short reason."""


@frozen
class Trees:
    """The folders in the cache of a workspace."""

    workspace: Workspace

    def keep(self, folder: Path) -> str:
        """Copy the content of a folder into the cache, and return its hash. Raises `NotKept` if it is empty."""
        if not any(folder.iterdir()):
            raise NotKept("nothing was written")
        digest = self.digest(folder)
        with acquire(self.workspace.locks / f"tree-{digest[:32]}.lock"):
            if self.folder(digest) is None:
                self._put(folder, digest)
        return digest

    def _put(self, folder: Path, digest: str) -> None:
        """Put a read-only copy of a folder in place of what is missing or was changed."""
        place = self.workspace.trees / digest
        with claimed_folder(self.workspace.building, f"tree-{digest[:12]}-") as partial:
            inside = partial / "tree"
            shutil.copytree(folder, inside, symlinks=True)
            for path in _walk(inside):
                if not path.is_symlink():
                    keeps = path.stat().st_mode & _EXECUTABLE if path.is_file() else 0
                    path.chmod(_READ_ONLY_FILE | keeps if path.is_file() else _READ_ONLY_FOLDER)
            if place.is_dir():
                place.chmod(0o700)
                remove_tree(place)
            inside.rename(place)
            place.chmod(_READ_ONLY_FOLDER)

    def folder(self, digest: str) -> Path | None:
        """Return the folder with this hash, or None if it is not in the cache or was changed there."""
        place = self.workspace.trees / digest
        with contextlib.suppress(NotKept, OSError):
            if digest and self.digest(place) == digest:
                return place
        return None

    def digest(self, folder: Path) -> str:
        """Return a hash over the names and contents of all files below a folder, and over which can be executed.

        Raises `NotKept` for a link out of the folder, a pipe, or a socket, and `OSError`.
        """
        root, digest = folder.resolve(), hashlib.sha256()
        contents = Ledger.of(self.workspace).read(folder, files_below(folder))
        for path in _walk(folder):
            name = path.relative_to(folder).as_posix()
            if path.is_symlink():
                target = path.readlink()
                if target.is_absolute() or not path.resolve().is_relative_to(root):
                    raise NotKept(f"{name} is a link to a place elsewhere")
                told = f"link {target}"
            elif path.is_dir():
                told = "folder"
            elif path.is_file() and name in contents:
                told = f"file {bool(path.stat().st_mode & _EXECUTABLE)} {contents[name]}"
            else:
                raise NotKept(f"{name} is neither a file nor a folder")
            digest.update(f"{name}\0{told}\0".encode("utf-8", "surrogateescape"))
        return digest.hexdigest()


def _walk(folder: Path) -> Iterator[Path]:
    """Yield everything below a folder in a fixed order, without following links."""
    for path in sorted(folder.iterdir()):
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _walk(path)


_CLIENT = "huggingface_hub>=0.30"
_SCRIPT = Path(__file__).with_name("hub_download.py")
_HUB = "https://huggingface.co"
_LONGEST_S = 3600.0


@frozen
class Fetcher:
    """Fetches inputs into the trees of the cache; relative paths of inputs start at `beside`."""

    trees: Trees
    uv: Uv
    beside: Path

    def fetch(self, inputs: Sequence[Input]) -> Given:
        """Return one folder with an entry for each input. Raises `UserMistake`, `NoNetwork` and `NoSpace`."""
        key = hashlib.sha256("\0".join(f"{one!r}{self._now(one)}" for one in inputs).encode()).hexdigest()
        record = self.trees.workspace.made / f"inputs-{key[:32]}.json"
        folder = self.trees.folder((read_record(record, dict[str, str]) or {}).get("tree", ""))
        if folder is None:
            with claimed_folder(self.trees.workspace.building, "inputs-") as partial:
                for one in inputs:
                    self._put(one, partial / one.name)
                try:
                    digest = self.trees.keep(partial)
                except NotKept as why:
                    raise UserMistake(f"the inputs can't be kept: {why}") from None
            write_record(record, {"tree": digest})
            folder = self.trees.folder(digest)
        if folder is None:
            raise UserMistake("the inputs are changed while they are kept", hint="harness clean, then once more")
        return Given(INPUTS, str(folder), folder.name)

    def _now(self, one: Input) -> str:
        """What a folder of the user has now; archives and a hub's revisions are named by what they contain."""
        if not one.folder:
            return ""
        try:
            return self.trees.digest(self._path(one, one.folder))
        except NotKept as why:
            raise _flaw(one, str(why)) from None

    def _put(self, one: Input, place: Path) -> None:
        """Put an input where it is kept from. Raises `UserMistake`."""
        if one.folder:
            shutil.copytree(self._path(one, one.folder), place, symlinks=True)
        elif one.archive:
            place.mkdir()
            with claimed_folder(self.trees.workspace.building, "archive-") as partial:
                _unpack(one, self._archive(one, partial / "archive"), place)
        else:
            place.mkdir()
            self._download(one, place)

    def _path(self, one: Input, text: str) -> Path:
        path = self.beside / Path(text).expanduser()
        if not path.exists():
            raise _flaw(one, "there is no such folder" if one.folder else "there is no such file")
        if one.folder and not path.is_dir():
            raise _flaw(one, "it is not a folder")
        return path

    def _archive(self, one: Input, place: Path) -> Path:
        """Return an archive that has the hash of the input. Raises `UserMistake`."""
        if one.archive.startswith(("https://", "http://")):
            try:
                with urllib.request.urlopen(one.archive, timeout=60) as page, place.open("wb") as file:  # noqa: S310
                    shutil.copyfileobj(page, file)
            except (urllib.error.URLError, OSError) as error:
                why = getattr(error, "reason", None) or error
                raise _flaw(one, f"it can't be downloaded: {why}") from None
        else:
            place = self._path(one, one.archive)
        if (found := sha256_of(place)) != one.sha256:
            raise _flaw(one, f"its hash is {found}, not {one.sha256}", "a changed file is another input")
        return place

    def _download(self, one: Input, place: Path) -> None:
        """Download files of a hub. Raises `UserMistake`."""
        kind, name, revision = one.repository
        job = {"kind": kind, "id": name, "revision": revision, "files": one.files, "folder": str(place)}
        words = (self.uv.binary, "run", "--no-project", "--quiet", "--with", _CLIENT, "python", str(_SCRIPT))
        environ = {**self.uv.environment, "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
        for variable in ("HF_HUB_OFFLINE", "PYTHONPATH"):
            environ.pop(variable, None)
        try:
            ended = subprocess.run(
                list(map(str, words)),
                input=json.dumps(job),
                env=environ,
                cwd=place,
                capture_output=True,
                text=True,
                timeout=_LONGEST_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise _flaw(one, f"the download timed out after {_LONGEST_S:g} s") from None
        try:
            told = json.loads(ended.stdout.splitlines()[-1])
        except (ValueError, IndexError):
            why = (ended.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise _flaw(one, f"the hub's client can't be started: {why}") from None
        shutil.rmtree(place / ".cache", ignore_errors=True)  # the client's notes on its downloads
        if failed := told.get("failed"):
            host = os.environ.get("HF_ENDPOINT", _HUB)
            raise _flaw(one, *_said(failed, told["words"], name, revision, host))


def _said(failed: str, words: str, name: str, revision: str, host: str) -> tuple[str, str]:
    """Return a sentence about a failed download, and what to do."""
    access = f"HF_TOKEN names a token; its account needs access at {host}/{name}"
    known = {
        "gated": (f"{name} is gated", access),
        "repository": (f"{host} has no {name}, or it is private", access),
        "revision": (f"{name} has no revision {revision}", "name a commit, a tag or a branch that it has"),
        "file": (f"{name} has no file {words} at {revision}", f"{host}/{name}/tree/{revision} lists its files"),
    }
    reach = f"{host} can't be reached: {words}", "fetch it once where there is network; later runs need none"
    return known.get(failed, reach)


def _unpack(one: Input, archive: Path, place: Path) -> None:
    try:
        if zipfile.is_zipfile(archive):
            shutil.unpack_archive(archive, place, "zip")
        elif tarfile.is_tarfile(archive):
            with tarfile.open(archive) as packed:
                packed.extractall(place, filter="data")
        else:
            raise _flaw(one, "it is neither a zip nor a tar archive")
    except (shutil.ReadError, zipfile.BadZipFile, tarfile.TarError, OSError) as error:
        raise _flaw(one, f"it can't be unpacked: {error}") from None


def _flaw(one: Input, why: str, hint: str = "") -> UserMistake:
    return UserMistake(f"input {one.name} ({one.words}): {why}", hint=hint)
