"""Reads the API of a release from its installed sources.

Griffe (https://mkdocstrings.github.io/griffe/) reads them; nothing is imported or run.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from harness.culprit.sides import PackageFiles

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    import griffe


_TESTS = re.compile(r"(^|/)(tests?|_tests?|benchmarks|examples)/|(^|/)(conftest|test_\w+)\.pyi?$")
_SOURCE = (".py", ".pyi")
_OVERLOAD = re.compile(rb"@(?:\w+\.)?overload\b")
_MOST_BYTES = 400 * 1024 * 1024
_LARGEST = 4 * 1024 * 1024


@frozen
class ApiSource:
    """The sources of one release, without tests: paths relative to site-packages."""

    files: tuple[str, ...]
    installed: PackageFiles

    @classmethod
    def of(cls, packages: Path, package: str) -> ApiSource:
        """Return the sources of a distribution (normalised name) in a folder of installed packages, up to a total size.

        Very large files are left out; there are none if the distribution is not there. Raises `OSError`.
        """
        installed = PackageFiles.at(packages, [package])
        names, total = [], 0
        for name in sorted(path for path in installed.digests if path.endswith(_SOURCE) and not _TESTS.search(path)):
            size = installed.size(name)
            total += size
            if size <= _LARGEST and total <= _MOST_BYTES:
                names.append(name)
        return cls(tuple(names), installed)

    def read(self, path: str) -> bytes:
        """Return the content of a file. Raises `OSError`."""
        return self.installed.read(path) or b""

    @property
    def tops(self) -> tuple[str, ...]:
        """The top-level modules and packages, sorted."""
        return tuple(sorted({path.split("/")[0].removesuffix(".py").removesuffix(".pyi") for path in self.files}))

    def has_module(self, dotted: str) -> bool:
        """Whether there is a module or a package with this dotted name."""
        path = dotted.replace(".", "/")
        return any(name in self.files for name in (f"{path}.py", f"{path}.pyi")) or any(
            name.startswith(f"{path}/") for name in self.files
        )

    def containing(self, *words: str) -> dict[str, bytes]:
        """The contents of all files with at least one of these whole words, by path."""
        pattern = re.compile(b"|".join(rb"(?<!\w)%s(?!\w)" % re.escape(word.encode()) for word in words))
        return {path: text for path in self.files if pattern.search(text := self.read(path))}


@frozen
class ReleaseApi:
    """One release: its version, its sources, and the relevant part of its API by top-level module."""

    version: str
    source: ApiSource
    api: dict[str, griffe.Module]


@contextlib.contextmanager
def api_of(source: ApiSource, words: Collection[str], also: Collection[str] = ()) -> Iterator[dict[str, griffe.Module]]:
    """Load the API of the modules that contain one of the words, by top-level module.

    `also` are further files to load. The files of the result are in a temporary folder that lasts as long as the
    context; `place_of` returns their paths relative to site-packages.
    """
    import griffe

    pattern = re.compile(b"|".join(re.escape(word.encode()) for word in words) or b"(?!)")
    with tempfile.TemporaryDirectory(prefix="harness-api-") as folder:
        for path in source.files:
            text = source.read(path)
            # A package may re-export names in its __init__.py or with `from .module import *`.
            is_way = path.endswith(("__init__.py", "__init__.pyi")) or b"import *" in text
            if is_way or path in also or pattern.search(text):
                target = Path(folder, path)
                target.parent.mkdir(parents=True, exist_ok=True)
                # Griffe has no member for a method of which a stub declares overloads only.
                target.write_bytes(_OVERLOAD.sub(b"", text) if path.endswith(".pyi") else text)
        loader = griffe.GriffeLoader(search_paths=[folder], allow_inspection=False)
        loaded: dict[str, griffe.Module] = {}
        for top in source.tops:
            # The source may be for another Python version; griffe then raises various exceptions.
            with contextlib.suppress(Exception):
                module = loader.load(top, submodules=True, try_relative_path=False)
                if isinstance(module, griffe.Module):
                    loaded[top] = module
        with contextlib.suppress(Exception):
            loader.resolve_aliases(implicit=False, external=False)
        yield loaded


def place_of(definition: griffe.Object | griffe.Alias) -> tuple[str, int]:
    """The file, relative to site-packages, and the line of a definition; of an import if its target is not found."""
    import griffe

    target: griffe.Object | griffe.Alias = definition
    line = 0
    if isinstance(definition, griffe.Alias):
        line = definition.alias_lineno or 0
        try:
            target = definition.final_target
        except griffe.GriffeError:
            target = definition.parent or definition
    try:
        path, line = target.filepath, target.lineno or line
    except griffe.GriffeError:
        return "", line
    if not isinstance(path, Path):
        return "", line
    stub = path.with_suffix(".pyi")
    if not _defines(path, line, definition.name) and _defines(stub, line, definition.name):
        path = stub  # griffe adds what only the stub has to the module
    parts = path.parts
    start = next((i for i, part in enumerate(parts) if part.startswith("harness-api-")), -1)
    return "/".join(parts[start + 1 :]), line


def _defines(path: Path, line: int, name: str) -> bool:
    """Whether a name is defined on a line of a file, from 1, or on one of the next few, after decorators."""
    with contextlib.suppress(OSError):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[line - 1 : line + 4]
        return any(re.match(rf"\s*(?:(?:async )?def |class )?{name}\s*[(:=]", text) for text in lines)
    return False


def look_up(api: dict[str, griffe.Module], dotted: str) -> griffe.Object | griffe.Alias | None:
    """Return the object with a dotted name, or None."""
    top, *parts = dotted.split(".")
    definition: griffe.Object | griffe.Alias | None = api.get(top)
    for part in parts:
        if definition is None:
            return None
        try:
            definition = definition.members.get(part)
        except Exception:  # noqa: BLE001 - an alias whose target is missing
            return None
    return definition


def named(api: dict[str, griffe.Module], name: str, kind: str) -> Iterator[griffe.Object]:
    """Every definition of a name in any module or class; `kind` is griffe's: "class", "function", "attribute"."""
    waiting: list[griffe.Object] = list(api.values())
    while waiting:
        owner = waiting.pop()
        for member in list(owner.members.values()):
            if member.is_alias:
                continue
            if member.name == name and member.kind.value == kind:
                yield member  # type: ignore[misc]
            if member.is_module or member.is_class:
                waiting.append(member)  # type: ignore[arg-type]
