"""Finds where a wheel's files are in its repository: at the top, in `src/`, in a folder of a monorepo. Pure.

Files are compared by git's hash of their content, so that a tag's files don't have to be read.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from pathlib import PurePosixPath

from attrs import evolve, field, frozen

_SOURCE = (".py", ".pyi")


def blob_id(content: bytes) -> str:
    """Return git's hash of a file's content: SHA-1 of a header and the content (not for security)."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


@frozen
class Layout:
    """Maps a wheel's paths to those of its repository.

    `prefixes` maps each top-level package or module to the folder that has it. `suffixes` are those of the wheel's
    files besides Python. `left_out` are folders that the wheel leaves out, such as tests. `changed` maps the paths of
    files that differ from the tag, such as a version file that the build wrote, to the tag's blobs. `generated` files
    are only in the wheel. `elsewhere` are files of the wheel that match another commit than the tag's.
    """

    prefixes: Mapping[str, str]
    suffixes: frozenset[str] = frozenset()
    left_out: frozenset[str] = frozenset()
    changed: Mapping[str, str] = field(factory=dict)
    generated: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()

    @property
    def found(self) -> bool:
        """Whether the repository has any package of the wheel."""
        return bool(self.prefixes)

    def files(self, tree: Mapping[str, str]) -> dict[str, str]:
        """Return the files that a wheel of `tree` would have; both map paths to blobs."""
        chosen: dict[str, str] = {}
        for top, prefix in self.prefixes.items():
            root = f"{prefix}{top}"
            for path, blob in tree.items():
                if path == root or path.startswith(f"{root}/"):
                    inside = path.removeprefix(prefix)
                    if self._is_packaged(inside):
                        chosen[inside] = blob
        return chosen

    def changes(self, release: Mapping[str, str], tree: Mapping[str, str]) -> dict[str, str | None]:
        """Return what turns the release's files into those of a commit (path -> blob; None removes a file).

        A file that the build changed is kept if the commit and the tag have the same version of it.
        """
        there = self.files(tree)
        exchanged: dict[str, str | None] = {
            path: blob for path, blob in there.items() if release.get(path) != blob and self.changed.get(path) != blob
        }
        ours = (path for path in release if PurePosixPath(path).parts[0] in self.prefixes)
        gone = (path for path in ours if path not in there and path not in self.changed and path not in self.generated)
        return exchanged | dict.fromkeys(gone)

    def with_sources(self, wheel: Mapping[str, str], known: Container[str]) -> Layout:
        """Return the layout with `elsewhere`: the changed files whose blob in the wheel is `known` to git."""
        elsewhere = tuple(path for path in self.changed if wheel[path] in known)
        changed = {path: blob for path, blob in self.changed.items() if path not in elsewhere}
        return evolve(self, changed=changed, elsewhere=elsewhere)

    def source_of(self, path: str) -> str:
        """The path in the repository of a wheel's file."""
        return f"{self.prefixes.get(PurePosixPath(path).parts[0], '')}{path}"

    def _is_packaged(self, path: str) -> bool:
        if any(path.startswith(f"{folder}/") for folder in self.left_out):
            return False
        suffix = PurePosixPath(path).suffix
        return suffix in _SOURCE or suffix in self.suffixes


def find_layout(wheel: Mapping[str, str], tree: Mapping[str, str]) -> Layout:
    """Return the layout of a release; `wheel` and `tree` map paths to git's hashes, of the release and of its tag."""
    packaged = {
        path: blob for path, blob in wheel.items() if not path.split("/", 1)[0].endswith((".dist-info", ".data"))
    }
    by_name: dict[str, list[str]] = {}
    for path in tree:
        by_name.setdefault(PurePosixPath(path).name, []).append(path)
    prefixes: dict[str, str] = {}
    for top in sorted({PurePosixPath(path).parts[0] for path in packaged}):
        votes: Counter[str] = Counter()
        for path, blob in packaged.items():
            if PurePosixPath(path).parts[0] != top:
                continue
            for candidate in by_name.get(PurePosixPath(path).name, ()):
                if candidate == path or candidate.endswith(f"/{path}"):
                    votes[candidate.removesuffix(path)] += 4 if tree[candidate] == blob else 1
        if votes:
            prefixes[top] = min(votes, key=lambda prefix: (-votes[prefix], len(prefix)))
    layout = Layout(
        prefixes=prefixes,
        suffixes=frozenset(PurePosixPath(path).suffix for path in packaged) - {"", ".so", ".pyd", ".dylib"},
    )
    known = {path: tree.get(layout.source_of(path)) for path in packaged if PurePosixPath(path).parts[0] in prefixes}
    return Layout(
        prefixes=prefixes,
        suffixes=layout.suffixes,
        left_out=_left_out(layout.files(tree), packaged),
        changed={path: blob for path, blob in sorted(known.items()) if blob is not None and blob != packaged[path]},
        generated=tuple(sorted(path for path in packaged if known.get(path) is None)),
    )


def _left_out(there: Iterable[str], packaged: Iterable[str]) -> frozenset[str]:
    """The outermost folders in a tag's packages from which the wheel has no file."""
    has = {str(parent) for path in packaged for parent in PurePosixPath(path).parents}
    found = set()
    for path in there:
        for parent in reversed(PurePosixPath(path).parents):
            if str(parent) != "." and str(parent) not in has:
                found.add(str(parent))
                break
    return frozenset(found)
