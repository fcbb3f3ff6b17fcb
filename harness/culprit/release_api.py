"""Reads the API of a release from its sources, in a folder or a wheel.

Griffe (https://mkdocstrings.github.io/griffe/) reads them; nothing is imported or run.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from harness.model import normalized_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    import griffe


_TESTS = re.compile(r"(^|/)(tests?|_tests?|benchmarks|examples)/|(^|/)(conftest|test_\w+)\.pyi?$")
_SOURCE = (".py", ".pyi")
_OVERLOAD = re.compile(rb"@(?:\w+\.)?overload\b")
_MOST_BYTES = 400 * 1024 * 1024
_LARGEST = 4 * 1024 * 1024


@frozen
class ApiSource:
    """The sources of one release: paths relative to site-packages, and a function to read them. Tests are left out."""

    files: tuple[str, ...]
    read: Callable[[str], bytes]

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
def source_of(where: Path, package: str) -> Iterator[ApiSource]:
    """Open the sources of a distribution: in a folder of installed packages, or in the wheel at a path.

    Yields a source without files if the distribution is not there. Raises `OSError` if the location can't be read.
    """
    if where.is_file():
        with zipfile.ZipFile(where) as wheel:
            sizes = {member.filename: member.file_size for member in wheel.infolist()}
            yield ApiSource(_to_read(sizes), _reading(wheel.read))
        return
    names = _recorded(where, package)
    sizes = {name: path.stat().st_size for name in names if (path := where / name).is_file() and _is_source(name)}
    yield ApiSource(_to_read(sizes), _reading(lambda name: (where / name).read_bytes()))


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


def _recorded(folder: Path, package: str) -> list[str]:
    """The files of a distribution: from its RECORD, else the Python files in the folder with its name."""
    wanted = normalized_name(package)
    for info in folder.glob("*.dist-info"):
        if normalized_name(info.name.removesuffix(".dist-info").rpartition("-")[0]) == wanted:
            with contextlib.suppress(OSError):
                lines = (info / "RECORD").read_text(encoding="utf-8", errors="replace").splitlines()
                return [line[1:].split('"')[0] if line.startswith('"') else line.split(",")[0] for line in lines]
    top = folder / wanted.replace("-", "_")
    return [path.relative_to(folder).as_posix() for path in top.rglob("*.py*")]


def _is_source(name: str) -> bool:
    return name.endswith(_SOURCE) and not name.startswith(("..", "/")) and not _TESTS.search(name)


def _to_read(sizes: dict[str, int]) -> tuple[str, ...]:
    """The sources to read, up to a total size; very large ones are left out. `sizes` maps all files to bytes."""
    names, total = [], 0
    for name, size in sorted(sizes.items()):
        total += size
        if _is_source(name) and size <= _LARGEST and total <= _MOST_BYTES:
            names.append(name)
    return tuple(names)


def _reading(read: Callable[[str], bytes]) -> Callable[[str], bytes]:
    """Wrap `read` so that it returns b"" for a file that can't be read."""

    def reading(name: str) -> bytes:
        try:
            return read(name)
        except (OSError, KeyError, zipfile.BadZipFile):
            return b""

    return reading
