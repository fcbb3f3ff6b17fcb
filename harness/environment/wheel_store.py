"""The only copy of each installed wheel, from which environments are hard-linked; its bytecode is kept beside it.

Environments never link to uv's cache: a write through a link affects only this store and the environments that share
the file. Every file is checked before it is linked again, and a wheel with a changed file is dropped.

Where two wheels have one file, that of the first by name is installed, whatever was installed before: as with pip,
unless one requires the other. uv writes all at once, so the winner would be a matter of luck.
"""

from __future__ import annotations

import base64
import contextlib
import csv
import errno
import json
import os
import posixpath
import shutil
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import field, frozen

from harness.atomic import write_whole
from harness.environment.manifest import FileState, Ledger, content_of, files_below, read_states
from harness.environment.workspace import Workspace, site_packages
from harness.model import Pin, normalized_name
from harness.run.launch import remove_tree
from harness.run.locks import acquire, claimed_folder
from harness.run.process import pause

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence


_CODE = (".py", ".so", ".pth", ".pyd")
_SHOWN = 2


@frozen(eq=False)
class Tree:
    """The installed files of one wheel below `folder`, by path; `key` is its name in the wheel store, "" if loose."""

    name: str
    version: str
    folder: Path
    files: Mapping[str, FileState]
    key: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def laid_out(
    trees: Sequence[Tree], own: Collection[str]
) -> tuple[list[Mapping[str, FileState]], tuple[str, ...], tuple[str, ...]]:
    """The files that are installed from each tree in an environment that already has the files `own`.

    Also the paths of which there are several, and sentences about those with different code.
    """
    present, contested = set(own), set[str]()
    for tree in trees:
        contested |= present & tree.files.keys()
        present |= tree.files.keys()
    having: dict[str, list[int]] = {}
    for number, tree in enumerate(trees):
        for path in filter(contested.__contains__, tree.files):
            having.setdefault(path, []).append(number)
    several = [path for path, numbers in having.items() if len(numbers) > 1]
    left_out: list[set[str]] = [set() for _ in trees]
    clashes: dict[str, list[str]] = {}
    for path, numbers in having.items():
        first = None if path in own else min(numbers, key=lambda number: trees[number].name)
        for number in numbers:
            if number != first:
                left_out[number].add(path)
        if first is None:
            for number in numbers:
                clashes.setdefault(f"{trees[number]}: not installed, it belongs to the environment", []).append(path)
        elif path.endswith(_CODE) and len({trees[number].files[path].content for number in numbers}) > 1:
            others = " and ".join(str(trees[number]) for number in numbers)
            clashes.setdefault(f"{others}: that of {trees[first].name} is installed", []).append(path)
    installed = [
        {path: state for path, state in tree.files.items() if path not in without} if without else tree.files
        for tree, without in zip(trees, left_out, strict=True)
    ]
    return installed, tuple(several), tuple(_clash(where, paths) for where, paths in clashes.items())


def _clash(where: str, paths: Sequence[str]) -> str:
    names = [path.partition("/site-packages/")[2] or path for path in paths]
    rest = f" and {len(names) - _SHOWN} more files" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{rest} in {where}"


STORED = "files"  # the folder of a stored wheel with its files
_LEDGER = "ledger.json"


@frozen
class Linked:
    """What was linked: the files of each stored wheel by its key; or the pins that are `missing`.

    `others` are the files that were there before, or came from a loose tree. `overwritten` are the paths that several
    wheels have, `clashes` says which wheel's files are installed.
    """

    wheels: Mapping[str, Mapping[str, FileState]] = field(factory=dict)
    others: Mapping[str, FileState] = field(factory=dict)
    missing: tuple[Pin, ...] = ()
    overwritten: tuple[str, ...] = ()
    clashes: tuple[str, ...] = ()


@frozen
class TakenIn:
    """The pins that were not stored: `damaged` do not match their RECORD, `overwritten` share a file with another.

    `loose` has what was installed of wheels that can't be stored, by project.
    """

    damaged: tuple[Pin, ...] = ()
    overwritten: tuple[Pin, ...] = ()
    loose: Mapping[str, Tree] = field(factory=dict)


@frozen
class WheelStore:
    """The installed wheels of one kind of interpreter.

    Another kind of interpreter unpacks the same wheel to other paths.
    """

    workspace: Workspace
    kind: str

    @property
    def root(self) -> Path:
        """Its folder."""
        return self.workspace.wheels / self.kind

    @property
    def lock(self) -> Path:
        """What guards all of it."""
        return self.workspace.locks / "wheels.lock"

    @property
    def filling(self) -> Path:
        """What who adds wheels holds, for as long as that takes.

        Two copies of one wheel have different time stamps, so the bytecode of one does not fit the other.
        """
        return self.workspace.locks / "new-wheels.lock"

    @property
    def ledger(self) -> Ledger:
        """The contents of its files."""
        return Ledger.of(self.workspace)

    def key(self, pin: Pin) -> str:
        """The name of a wheel in the store, "" for one without a hash, which is not stored."""
        return f"{pin.name}-{pin.version}-{pin.sha256[:16]}" if pin.sha256 else ""

    def has(self, pin: Pin) -> bool:
        """Whether the store has a wheel."""
        return bool(pin.sha256) and (self.root / self.key(pin) / _LEDGER).is_file()

    def install(
        self,
        pins: Sequence[Pin],
        folder: Path,
        *,
        loose: Mapping[str, Tree] | None = None,
        apart: bool = False,
    ) -> Linked:
        """Link wheels into an empty environment: stored ones, and the `loose` trees of those that can't be stored.

        Of two wheels with one file, the first by name wins; no wheel replaces a file that the environment has already.
        With `apart` they are copied, so that changes stay in that environment. If some are neither stored nor loose,
        nothing is linked, and they are `missing`. Raises `Cancelled`.
        """
        others = self.ledger.below(folder)
        with acquire(self.lock):
            trees: list[Tree] = []
            missing: list[Pin] = []
            for pin in pins:
                pause()
                tree = (loose or {}).get(pin.name) or self._stored(pin)
                missing += [pin] if tree is None else []
                trees += [tree] if tree is not None else []
            if missing:
                return Linked(missing=tuple(missing))
            installed, several, clashes = laid_out(trees, others)
            pairs = list(zip(trees, installed, strict=True))
            self.ledger.note([row for tree, files in pairs for row in _linked(tree, files, folder, apart=apart)])
            wheels = {tree.key: files for tree, files in pairs if tree.key}
            others |= {path: state for tree, files in pairs if not tree.key for path, state in files.items()}
            return Linked(wheels, others, overwritten=several, clashes=clashes)

    def take_in(self, pins: Iterable[Pin], stage: Path) -> TakenIn:
        """Store wheels that were just installed into a folder of their own: their files are moved out of it."""
        damaged, overwritten, loose = [], [], {}
        infos = site_packages(stage).glob("*.dist-info")
        installed = {normalized_name(info.name.split("-")[0]): installed_files(info, stage) for info in infos}
        wheels_with = Counter(path for files, _ in installed.values() for path in files)
        with acquire(self.lock):
            self.root.mkdir(exist_ok=True)
            for pin in pins:
                if pin.name not in installed:
                    continue
                files, wrong = installed[pin.name]
                if wheels_with[wrong] > 1:
                    overwritten.append(pin)
                elif pin.sha256 and not wrong and is_relocatable(files, stage):
                    self._keep(self.key(pin), files, stage, frozenset(p for p in files if wheels_with[p] > 1))
                else:
                    damaged += [pin] if wrong else []
                    loose[pin.name] = Tree(pin.name, pin.version, stage, files)
        return TakenIn(tuple(damaged), tuple(overwritten), loose)

    def drop(self, keys: Iterable[str]) -> None:
        """Remove wheels from the store; environments keep their links."""
        with acquire(self.lock):
            for key in keys:
                self._drop(key)

    def prune(self) -> int:
        """Remove wheels that no environment links to; returns how many.

        If none is left, the bytecode of the standard library is removed too.
        """
        count = 0
        with acquire(self.lock):
            for entry in self._entries():
                if not any(stat.st_nlink > 1 for stat in files_below(entry / STORED).values()):
                    self._drop(entry.name)
                    count += 1
            if not any(self._entries()):
                remove_tree(self.root)
        return count

    def inodes(self) -> set[tuple[int, int]]:
        """Device and inode of every stored file."""
        return {(stat.st_dev, stat.st_ino) for entry in self._entries() for stat in files_below(entry).values()}

    def _entries(self) -> Iterator[Path]:
        if self.root.is_dir():
            entries = (entry for entry in self.root.iterdir() if not entry.is_symlink())
            yield from (entry for entry in entries if (entry / _LEDGER).is_file())

    def _stored(self, pin: Pin) -> Tree | None:
        """The files of a stored wheel if they match the record; else the wheel is dropped."""
        if not self.has(pin):
            return None
        key = self.key(pin)
        states = read_states(self.root / key / _LEDGER)
        with contextlib.suppress(OSError):
            folder = self.root / key / STORED
            if states and not self.ledger.differing(folder, states):
                return Tree(pin.name, pin.version, folder, states, key)
        self._drop(key)
        return None

    def _keep(self, key: str, files: dict[str, FileState], folder: Path, shared: Container[str]) -> None:
        """Move the files of an installed wheel to the store; those that another wheel has too are copied."""
        known = []
        with claimed_folder(self.workspace.building, "wheel-") as partial:
            unfinished = partial / key
            for parent in {posixpath.dirname(path) for path in files}:
                (unfinished / STORED / parent).mkdir(parents=True, exist_ok=True)
            for path, state in files.items():
                target = unfinished / STORED / path
                if path in shared:
                    shutil.copy2(folder / path, target, follow_symlinks=False)
                else:
                    os.rename(folder / path, target)  # noqa: PTH104 - for speed
                known.append((os.lstat(target), state.content))
            write_whole(unfinished / _LEDGER, json.dumps(files))
            self._drop(key)
            unfinished.rename(self.root / key)
        self.ledger.note(known)

    def _drop(self, key: str) -> None:
        with claimed_folder(self.workspace.building, "dropped-") as doomed, contextlib.suppress(FileNotFoundError):
            (self.root / key).rename(doomed / key)


def _linked(
    tree: Tree, files: Mapping[str, FileState], folder: Path, *, apart: bool
) -> Iterator[tuple[os.stat_result, str]]:
    """Link or copy the files of a wheel; yields those that are as recorded, with their contents."""
    put = partial(shutil.copy2, follow_symlinks=False) if apart else share
    for parent in sorted({path.rpartition("/")[0] for path in files}):
        os.makedirs(f"{folder}/{parent}", exist_ok=True)  # noqa: PTH103 - for speed
    for path, state in files.items():
        target = f"{folder}/{path}"
        put(f"{tree.folder}/{path}", target)
        now = os.lstat(target)
        if state.is_like(now):  # else written since it was verified: the next comparison shows it
            yield now, state.content


def installed_files(info: Path, folder: Path) -> tuple[dict[str, FileState], str]:
    """The files of an installed distribution, and the first file that does not match its RECORD ("": none).

    A path that leads out of the environment is left out.
    """
    packages = info.parent.relative_to(folder).as_posix()
    files, wrong = {}, ""
    with (info / "RECORD").open(encoding="utf-8", newline="") as rows:
        for name, digest, *_ in csv.reader(rows):
            path = posixpath.normpath(posixpath.join(packages, name))
            if path.startswith(("../", "/")):
                continue
            try:
                status = (folder / path).lstat()
            except OSError:
                continue
            files[path] = FileState.of(status, content_of(folder / path, status))
            if digest.startswith("sha256=") and _hex(digest) != files[path].content:
                wrong = wrong or path
    return files, wrong


def _hex(digest: str) -> str:
    text = digest.removeprefix("sha256=")
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).hex()
    except ValueError:
        return ""


def is_relocatable(files: Iterable[str], folder: Path) -> bool:
    """Whether no script names the environment that it was installed into."""
    root = os.fsencode(folder)
    return not any(path.startswith("bin/") and root in (folder / path).read_bytes() for path in files)


# The file is on another file system, or has too many links.
_NO_LINKS = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP)


def share(origin: str, target: str) -> None:
    """Link to a file, or copy it where it can't be linked to."""
    try:
        os.link(origin, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        shutil.copy2(origin, target, follow_symlinks=False)
