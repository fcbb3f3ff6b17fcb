"""Finds the commit that a release was built from: its tag, compared with the files of its wheel.

Tags are matched by name (`v1.2.3`, `name-1.2.3`, `release/1.2.3`, `rel_1_2_3`). A wheel's files are found in the
repository (at the top, in `src/`, in a folder of a monorepo) by git's hash of their content, so that a tag's files
don't have to be read.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen
from packaging.version import Version

from harness.errors import BadRepository
from harness.model import normalized_name, parsed_version
from harness.model.text import listed

if TYPE_CHECKING:
    from harness.repository.git import Repository

_SOURCE = (".py", ".pyi")
_ENDING = re.compile(r"[._-](final|ga|release)$", re.IGNORECASE)
# Words before a version that name no project, such as "release" or the name of a folder in the repository.
_LABELS = frozenset(
    {"v", "version", "rel", "release", "releases", "ver", "tag", "tags", "r"}
    | {"python", "py", "package", "packages", "pkg", "lib", "libs", "project", "projects"}
)


_IN_LOCAL = re.compile(r"(?:^|\.)g(?:it)?(?:20\d{6}\.)?([0-9a-f]{7,40})(?=\.|$)")
_IN_MODULE = re.compile(
    r"""^_*(?:git_?(?:version|revision|hash|commit|sha)\w*|commit(?:_id|_hash)?)_*\b[^=\n]*=(?:\s*\w+\s*=)*\s*"""
    r"""["']g?([0-9a-f]{7,40})["']""",
    re.MULTILINE | re.IGNORECASE,
)
_IN_DIRECT_URL = re.compile(r'"commit_id"\s*:\s*"([0-9a-f]{7,40})"')
_IN_METADATA = re.compile(r"/commits?/([0-9a-f]{7,40})\b")
_MODULE = re.compile(r"[^/]+/_?(?:git_)?(?:version|commit)\w*\.py")


def built_from(version: str, paths: Iterable[str], read: Callable[[str], str]) -> str:
    """Return the hash of the commit that an installed build names as its own, "" if it names none.

    It is in the local part of the version (+gab12cd3), in direct_url.json, in a module such as `torch/version.py`, or
    in a URL of the metadata. `paths` are relative to site-packages, and `read` returns the text of one.
    """
    label = version.partition("+")[2]
    if match := _IN_LOCAL.search(label):
        return match[1]
    wanted = sorted(path for path in paths if _MODULE.fullmatch(path) or ".dist-info/" in path)
    for ending, pattern in (("direct_url.json", _IN_DIRECT_URL), (".py", _IN_MODULE), ("METADATA", _IN_METADATA)):
        for path in wanted:
            if path.endswith(ending) and (match := pattern.search(read(path))):
                return match[1]
    return ""


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
    def has_package(self) -> bool:
        """Whether the repository has any package of the wheel."""
        return bool(self.prefixes)

    def files(self, tree: Mapping[str, str]) -> dict[str, str]:
        """Return the files that a wheel of `tree` would have; both map paths to blobs."""
        inside = {
            path.removeprefix(prefix): blob
            for top, prefix in self.prefixes.items()
            for path, blob in tree.items()
            if f"{path}/".startswith(f"{prefix}{top}/")
        }
        return {path: blob for path, blob in inside.items() if self._is_packaged(path)}

    def changes(self, release: Mapping[str, str], tree: Mapping[str, str]) -> dict[str, str | None]:
        """Return what turns the release's files into those of a commit (path -> blob; None removes a file).

        A file that the build changed is kept if the commit and the tag have the same version of it.
        """
        files = self.files(tree)
        exchanged: dict[str, str | None] = {
            path: blob for path, blob in files.items() if release.get(path) != blob and self.changed.get(path) != blob
        }
        ours = (path for path in release if PurePosixPath(path).parts[0] in self.prefixes)
        gone = (path for path in ours if path not in files and path not in self.changed and path not in self.generated)
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
        suffix = PurePosixPath(path).suffix
        return self.left_out.isdisjoint(_folders_of([path])) and (suffix in _SOURCE or suffix in self.suffixes)


@frozen
class ReleaseSource:
    """A release in its repository: the tag, its commit's hash, and how the wheel's paths map to the repository's."""

    version: str
    tag: str
    sha: str
    layout: Layout

    @property
    def notes(self) -> tuple[str, ...]:
        """How the wheel and its tag differ."""
        layout, notes = self.layout, []
        if layout.elsewhere:
            notes.append(
                f"{self.version}: tag {self.tag} is not the commit of the wheel, "
                f"which has {listed(layout.elsewhere)} from another one"
            )
        if layout.changed:
            notes.append(f"{self.version}: the wheel has its own {listed(layout.changed)}, other than tag {self.tag}")
        if layout.generated:
            notes.append(f"{self.version}: only the wheel, not tag {self.tag}, has {listed(layout.generated)}")
        return tuple(notes)


def find_source(
    repository: Repository, project: str, version: str, wheel: Mapping[str, str], *, commit: str = ""
) -> ReleaseSource:
    """Return the tag of a release that matches its wheel best; `wheel` maps installed paths to git's hashes.

    `commit` is the hash of the one that the build names as its own, which counts beside the tags if the repository has
    it. Raises `BadRepository` if no tag names the release, or none has the package's files.
    """
    all_tags = repository.tags()
    tags = tags_of(version, all_tags, project)
    if commit and (own := repository.full_hash(commit)):
        all_tags, tags = {**all_tags, own[:10]: own}, (*tags, own[:10])
    if not tags:
        some = ", ".join(sorted(all_tags)[-3:]) or "none"
        raise BadRepository(
            f"{repository.folder} has no tag for {project} {version} (its tags: {some})",
            hint=repository.what_is_missing() or "run git fetch --tags, or choose another clone with --git",
        )
    sources = [
        ReleaseSource(version, tag, all_tags[tag], find_layout(wheel, tree_of(repository, all_tags[tag])))
        for tag in tags
    ]
    best = min(sources, key=lambda source: len(source.layout.changed) + len(source.layout.generated))
    if not best.layout.has_package:
        raise BadRepository(
            f"{repository.folder} has tag {best.tag}, but no files of {project} {version} in it",
            hint="is this the right repository? --git chooses another",
        )
    known = repository.existing(wheel[path] for path in best.layout.changed)
    return evolve(best, layout=best.layout.with_sources(wheel, known))


def tagged_up_to(repository: Repository, project: str, sha: str) -> dict[Version, tuple[str, str]]:
    """Return the releases of a project with a tag up to the date of a commit: version -> tag and its commit's hash.

    Releases are often tagged on separate branches, so dates count, not ancestry. Raises `BadRepository`.
    """
    tags = repository.tags()
    named = {version: of[0] for version, of in tagged_versions(tags, project).items()}
    dates = repository.dates([sha, *(tags[tag] for tag in named.values())])
    return {
        version: (tag, tags[tag])
        for version, tag in named.items()
        if tags[tag] in dates and dates[tags[tag]] <= dates[sha]
    }


def tree_of(repository: Repository, sha: str) -> dict[str, str]:
    """Return a commit's regular files: path -> hash of the content."""
    return {path: entry.blob for path, entry in repository.tree(sha).items() if entry.is_regular}


def tags_of(version: str, tags: Iterable[str], project: str) -> tuple[str, ...]:
    """Return the tags of a project's version: those with its full name, without a name, with a part of its name.

    Of equal ones the shortest comes first. In a repository with more than one project, a tag without a name may be that
    of another project, so a full name comes first.
    """
    return tagged_versions(tags, project).get(Version(Version(version).public), ())


def tagged_versions(tags: Iterable[str], project: str) -> dict[Version, tuple[str, ...]]:
    """Map the versions of a project that have tags to their tags, in the order of `tags_of`."""
    tagged: dict[Version, list[tuple[int, int, str]]] = {}
    for tag in tags:
        if (read := _read(tag, project)) is not None:
            version, rank = read
            tagged.setdefault(version, []).append((rank, len(tag), tag))
    return {version: tuple(tag for *_, tag in sorted(ranked)) for version, ranked in tagged.items()}


def _read(tag: str, project: str) -> tuple[Version, int] | None:
    """The version of a tag and how its label names the project: 0 in full, 1 not at all, 2 in part."""
    text = _ENDING.sub("", tag.replace("_", "."))
    # The first digits may be part of the project's name ("py3dns-4.0"), so try each number as the start.
    for number in re.finditer(r"\d+", text):
        rank, version = _rank(text[: number.start()], project), parsed_version(text[number.start() :])
        if rank is not None and version is not None:
            return version, rank
    return None


def _rank(label: str, project: str) -> int | None:
    """How the text before a version names a project (see `_read`), or None if it names something else."""
    words, parts = set(re.findall(r"[a-z0-9]+", label.lower())), set(normalized_name(project).split("-"))
    whole = normalized_name(project).replace("-", "")
    if words - parts - {whole} - _LABELS:
        return None
    if parts <= words or whole in words:
        return 0
    return 2 if words & parts else 1


def blob_id(content: bytes) -> str:
    """Return git's hash of a file's content: SHA-1 of a header and the content (not for security)."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def find_layout(wheel: Mapping[str, str], tree: Mapping[str, str]) -> Layout:
    """Return the layout of a release; `wheel` and `tree` map paths to git's hashes, of the release and of its tag."""
    packaged = {
        path: blob for path, blob in wheel.items() if not path.split("/", 1)[0].endswith((".dist-info", ".data"))
    }
    by_name: dict[str, list[str]] = {}
    for path in tree:
        by_name.setdefault(PurePosixPath(path).name, []).append(path)
    votes: dict[str, Counter[str]] = {}
    for path, blob in sorted(packaged.items()):
        for candidate in by_name.get(PurePosixPath(path).name, ()):
            if candidate == path or candidate.endswith(f"/{path}"):
                of_top = votes.setdefault(PurePosixPath(path).parts[0], Counter())
                of_top[candidate.removesuffix(path)] += 4 if tree[candidate] == blob else 1
    prefixes = {top: min(of, key=lambda prefix: (-of[prefix], len(prefix))) for top, of in votes.items()}
    suffixes = frozenset(PurePosixPath(path).suffix for path in packaged) - {"", ".so", ".pyd", ".dylib"}
    layout = Layout(prefixes, suffixes)
    tagged = {path: tree.get(layout.source_of(path)) for path in packaged if PurePosixPath(path).parts[0] in prefixes}
    return evolve(
        layout,
        left_out=_folders_of(layout.files(tree)) - _folders_of(packaged),
        changed={path: blob for path, blob in sorted(tagged.items()) if blob is not None and blob != packaged[path]},
        generated=tuple(sorted(path for path in packaged if tagged.get(path) is None)),
    )


def _folders_of(paths: Iterable[str]) -> frozenset[str]:
    return frozenset(str(parent) for path in paths for parent in PurePosixPath(path).parents)
