"""Tells whether the cause is in the compiled part of a package: with all other files put back it fails alike.

It names the source files that build such a part, from the source distributions of two releases. A build file
(`meson.build`, `setup.py`) names the sources beside the name of the module; without one, a module is built from files
with its name, or from those in its folder. Only changed files are told. Nothing is unpacked, built or run.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import tarfile
import zipfile
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.culprit.edits import exchanged_in_words
from harness.culprit.line_search import COMPILED, LineSearch
from harness.environment.workspace import claimed_folder
from harness.errors import IndexFault, NoNetwork
from harness.model.culprit import Finding, Level
from harness.model.text import counted, listed

if TYPE_CHECKING:
    from pathlib import Path

    from harness.culprit.pursuit import Reduced
    from harness.culprit.trials import Trials
    from harness.model import Change


_SOURCE = re.compile(r"\.(?:c|cc|cpp|cxx|h|hh|hpp|hxx|f|f90|for|rs|cu|m|pyx|pxd|pxi|src|in|dispatch\.\w+)\Z")
_BUILD = re.compile(r"(?:^|/)(?:meson\.build|setup\.py|CMakeLists\.txt|pyproject\.toml)\Z")
_TESTS = re.compile(r"(?:^|/)(?:tests?|benchmarks|examples|doc|docs|vendored-meson)/")
_QUOTED = re.compile(r"""['"]([^'"\n]+)['"]""")
_ASSIGNED = re.compile(r"^[ \t]*(\w+)[ \t]*\+?[=:][ \t]*", re.MULTILINE)
_LARGEST = 64 * 2**20
_DEEPEST = 3


@frozen
class SourceTree:
    """The files of a source distribution: digests of the sources and texts of the build files, by path in it."""

    digests: Mapping[str, str]
    builds: Mapping[str, str]

    @classmethod
    def read(cls, archive: Path) -> SourceTree:
        """Read a `.tar.*` or `.zip` file. Raises `OSError`, `tarfile.TarError` or `zipfile.BadZipFile`."""
        digests: dict[str, str] = {}
        builds: dict[str, str] = {}

        def keep(name: str, content: bytes) -> None:
            path = name.partition("/")[2]
            if _BUILD.search(path):
                builds[path] = content.decode(errors="replace")
            elif _SOURCE.search(path) and not _TESTS.search(path):
                digests[path] = hashlib.sha256(content).hexdigest()

        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as packed:
                for one in packed.infolist():
                    if not one.is_dir() and one.file_size <= _LARGEST:
                        keep(one.filename, packed.read(one))
        else:
            with tarfile.open(archive) as tar:
                for member in tar:
                    content = tar.extractfile(member) if member.isfile() and member.size <= _LARGEST else None
                    if content is not None:
                        keep(member.name, content.read())
        return cls(digests, builds)


def changed_sources(trials: Trials, change: Change, compiled: Collection[str]) -> tuple[str, ...]:
    """The changed source files behind compiled files of a package, by path in its source distribution.

    Fetches both source distributions; () if a release has none, or no index can be reached.
    """
    if change.before is None or change.after is None:
        return ()
    builder = trials.prober.builder
    trees: list[SourceTree] = []
    unreadable = contextlib.suppress(NoNetwork, IndexFault, OSError, tarfile.TarError, zipfile.BadZipFile)
    with unreadable, claimed_folder(builder.workspace.scratch, "sources-") as here:
        for version in (change.before, change.after):
            archive = builder.builds.fetched(change.name, version, here)
            if archive is not None:
                trees.append(SourceTree.read(archive))
    return sources_behind(compiled, *trees) if len(trees) == 2 else ()


def sources_behind(compiled: Collection[str], older: SourceTree, newer: SourceTree) -> tuple[str, ...]:
    """The source files behind compiled files (paths relative to site-packages) that differ between two trees."""
    known = set(older.digests.values()) & set(newer.digests.values())  # a file that only moved is not changed
    changed = {path for tree in (older, newer) for path, digest in tree.digests.items() if digest not in known}
    found: dict[str, None] = {}
    for path in sorted(compiled):
        folder, _, file = path.rpartition("/")
        module = file.partition(".")[0]
        beside = [one for one in changed if _is_in(one, folder)]
        listed = _listed(module, folder, older) | _listed(module, folder, newer)
        behind = {one for one in beside if one.rpartition("/")[2] in listed}
        behind |= {one for one in beside if _stem(one) == module.lower()}
        found |= dict.fromkeys(sorted(behind or beside))
    return tuple(found)


def _listed(module: str, folder: str, tree: SourceTree) -> set[str]:
    """The names of the files that a build file lists for a module."""
    names: set[str] = set()
    for path, text in tree.builds.items():
        if _is_in(path, folder) or _is_in(f"{folder}/", path.rpartition("/")[0]):
            lists: dict[str, str] = {}
            for one in _ASSIGNED.finditer(text):
                lists[one[1]] = lists.get(one[1], "") + _rest_of(text, one.end(), "\n")
            for found in re.finditer(rf"""['"](?:[\w.]+\.)?{re.escape(module)}['"]""", text):
                names |= _named(_rest_of(text, found.start()), lists)
    return {name.rpartition("/")[2] for name in names}


def _named(call: str, lists: Mapping[str, str], depth: int = 0) -> set[str]:
    """The files that a call names, also through lists that have a name."""
    found = {name for name in _QUOTED.findall(call) if _SOURCE.search(name)}
    if depth < _DEEPEST:
        for name in set(re.findall(r"\b[A-Za-z_]\w*\b", _QUOTED.sub("", call))) & lists.keys():
            found |= _named(lists[name], lists, depth + 1)
    return found


def _rest_of(text: str, start: int, until: str = "") -> str:
    """The rest of the call, list or table that a place is in, at most up to `until` outside of brackets."""
    depth = 0
    for end in range(start, len(text)):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(text[end], 0)
        if depth < 0 or (depth == 0 and text[end] == until):
            return text[start:end]
    return text[start:]


def _stem(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0].lower()


def _is_in(path: str, folder: str) -> bool:
    """Whether a file is below a folder of the installed package; sources may be in `src/` or `lib/`."""
    return not folder or f"/{path}".find(f"/{folder}/") >= 0


_MOST_NAMED = 5
_NEARLY_ALL = 0.9


def compiled_cause(search: LineSearch) -> tuple[Finding | None, bool]:
    """The finding that the compiled files make the difference; None if there are none, or if no run shows it.

    Also returns whether all other files of the older release run with the compiled files of the newer one.

    One run has all other files from the older release. If it ends as the newer release does, the compiled files are
    exchanged alone, in both directions, which is a proof if they can be mixed with the Python files.
    """
    others = search.all - {COMPILED}
    if COMPILED not in search.all or not others:
        return None, True
    trials, sides, packages = search.trials, search.sides, search.exchange.package.packages
    older, newer = sides.before.verdict, sides.after.verdict
    sentence = exchanged_in_words(packages, "all files that are not compiled", newer_base=True)
    alike = trials.proof(sentence, search.reverted(others), newer)
    if not alike.holds:
        return None, alike.verdict is older
    back = trials.proof(
        exchanged_in_words(packages, "the compiled files", newer_base=True),
        search.reverted(frozenset({COMPILED})),
        older,
    )
    forth = trials.proof(
        exchanged_in_words(packages, "the compiled files", newer_base=False),
        search.advanced(frozenset({COMPILED})),
        newer,
    )
    ran = compiled_that_ran(search)
    is_shown = back.holds or forth.holds
    found = evolve(
        search.exchange.package,
        level=Level.FILE if is_shown else Level.PACKAGE,
        files=ran if is_shown else (),
        compiled=ran,
        proofs=tuple(proof for proof in (back, forth) if proof.holds or is_shown) or search.exchange.package.proofs,
        candidates=len(search.exchange.units),
        runs=3,
        unresolved=sum(not proof.holds for proof in (back, forth)),
        causes=(f"the cause is in the compiled part, {few(ran)}",),
        notes=(
            f"with {counted(len(others), 'change')} outside the compiled files put back it fails in the same way",
            *_behind(search, ran),
        ),
    )
    return found, True


def probably_compiled(search: LineSearch, reduced: Reduced) -> Finding | None:
    """The finding that the cause is probably in the compiled files; None if the Python files were not cleared.

    They are if nearly all changes in code that ran were in a mixture that ran and failed alike. Compiled files and
    Python files of two releases often can't be mixed, so that no run shows more.
    """
    if COMPILED not in search.all:
        return None
    alike = (units for units, (verdict, _) in reduced.told.items() if verdict is search.sides.after.verdict)
    cleared = frozenset().union(*alike)
    suspects = search.suspects
    if len(cleared & suspects) < _NEARLY_ALL * len(suspects) or not suspects:
        return None
    ran, package = compiled_that_ran(search), search.exchange.package
    note = f"{len(cleared & suspects)} of {counted(len(suspects), 'change')} in Python code that ran leave it as it is"
    return evolve(
        package,
        compiled=ran,
        causes=(f"the cause is probably in the compiled part, {few(ran)}",),
        runs=package.runs + reduced.runs,
        notes=(*package.notes, note, *_behind(search, ran)),
    )


def removed_from_compiled(search: LineSearch) -> Finding | None:
    """The finding that a name which only a stub declares was removed from compiled code; None if there is none.

    Nothing smaller can be tried: compiled code can't be put back in parts.
    """
    one = next(iter(search.clues.pointers.gone_from_stubs), None) if search.clues is not None else None
    if one is None or COMPILED not in search.all:
        return None
    owner, _, name = one.name.rpartition(".")
    ran, package = compiled_that_ran(search), search.exchange.package
    return evolve(
        package,
        compiled=ran,
        causes=(f"`{name}` was removed from `{owner}`, which is probably in the compiled part, {few(ran)}",),
        notes=(*package.notes, f"only a stub declares it ({one.file}:{one.line})", *_behind(search, ran)),
    )


def _behind(search: LineSearch, ran: tuple[str, ...]) -> tuple[str, ...]:
    """A note on the changed source files behind compiled files, if the releases have source distributions."""
    packages = search.exchange.package.packages
    found = changed_sources(search.trials, packages[0], ran) if len(packages) == 1 else ()
    if not found:
        return ()
    return (f"{counted(len(found), 'changed source file')} behind {'it' if len(ran) == 1 else 'them'}: {few(found)}",)


def few(names: tuple[str, ...]) -> str:
    """The first names of a list, and how many more there are."""
    more = len(names) - _MOST_NAMED
    return f"{', '.join(names[:_MOST_NAMED])} and {more} more" if more > 0 else listed(names)


def compiled_that_ran(search: LineSearch) -> tuple[str, ...]:
    """The compiled files that differ and that a side loaded, or all that differ if none is known to be loaded.

    Libraries that a wheel brings along (`numpy.libs/`) come last.
    """
    files = search.edits.wholes[COMPILED]
    sides = (search.sides.before, search.sides.after)
    loaded = {path for side in sides for paths in side.observation.loaded.values() for path in paths}
    found = [path for path in files if path in loaded] or list(files)
    return tuple(sorted(found, key=lambda path: (path.partition("/")[0].endswith(".libs"), path)))
