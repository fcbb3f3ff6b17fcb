"""The package index: the releases of a project, their upload times, and which can be installed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import cattrs
from attrs import field, frozen
from packaging.version import InvalidVersion, Version

from harness.atomic import write_whole
from harness.environment.pip_settings import PipSettings
from harness.environment.versions import parsed_version, public_version
from harness.errors import NoNetwork, UnknownProject, UserMistake
from harness.model import Release, normalized_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harness.model import Pin

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_FRESH_S = 600.0  # as long as uv caches an index page


@frozen
class _Row:
    """A release in the cache file."""

    project: str
    version: str
    uploaded: str | None
    yanked: str | None
    requires_python: str | None
    wheels: tuple[str, ...]
    has_sdist: bool
    size: int | None


# Strict: other values in the file must not be converted into a release.
_converter = cattrs.Converter()
for _type in (str, int, bool):
    _converter.register_structure_hook(_type, lambda value, type_: _of_type(value, type_))


def _of_type(value: Any, type_: type) -> Any:
    if type(value) is not type_:
        raise TypeError(f"{value!r} is no {type_.__name__}")
    return value


@frozen
class Index:
    """All indexes that pip and uv are configured for, as one list of releases per project.

    `cache` is a folder for lists of releases. They are valid for ten minutes, or longer while there is no network.
    """

    settings: PipSettings
    cache: Path
    environ: Mapping[str, str] = field(factory=lambda: dict(os.environ), repr=False)
    _memory: dict[str, tuple[Release, ...]] = field(factory=dict, init=False, repr=False, eq=False)
    _undated: dict[str, bool] = field(factory=dict, init=False, repr=False, eq=False)

    def releases(self, project: str) -> tuple[Release, ...]:
        """Every release of a project in version order (PEP 440), installable or not.

        Raises `UnknownProject`, `UserMistake` for an invalid name, `NoNetwork` and `IndexFault`.
        """
        check_project_name(project)
        name = normalized_name(project)
        if name not in self._memory:
            files = self._remote(name)
            self._undated[name] = any(f.uploaded is None for f in files if f.wheels or f.has_sdist)
            found = _merged(name, [*files, *_local_wheels(name, self.settings.find_links)])
            if not found:
                raise UnknownProject(project, hint="check its spelling, and the index that pip is configured for")
            self._memory[name] = found
        return self._memory[name]

    def release(self, project: str, version: str) -> Release | None:
        """One release, or None if the index has none of that version (a local version label is ignored)."""
        try:
            wanted = Version(version)
        except InvalidVersion:
            return None
        return next((r for r in self.releases(project) if r.version == public_version(wanted)), None)

    def size_of(self, pin: Pin) -> int | None:
        """The bytes of a wheel, from its lock or from pages fetched before; None if unknown. Fetches no page."""
        if pin.size is not None:
            return pin.size
        version = parsed_version(pin.version)
        known = [*self._memory.get(pin.name, ()), *_local_wheels(pin.name, self.settings.find_links)]
        sizes = [
            release.size for release in known if version is not None and release.version == public_version(version)
        ]
        return max((size for size in sizes if size), default=None)

    @property
    def is_of_several(self) -> bool:
        """Whether several indexes are used over HTTP: one may have upload times that another lacks."""
        urls = index_urls(self.settings, self.environ)
        return sum(not url.startswith("file:") for url in urls) > 1

    def lacks_dates(self, project: str) -> bool:
        """Whether a page of some index lists a file of this project without upload time. Raises `NoNetwork`."""
        try:
            self.releases(project)
        except UnknownProject:
            return False
        return self._undated[normalized_name(project)]

    def projects_without_dates(self, kept: Iterable[str] = ()) -> frozenset[str]:
        """Projects whose files may have no upload time: those of find-links folders.

        Also those of `kept` (projects with a preferred version) that an index in a folder has: uv would look for that
        version there first, find no time, and choose another.
        """
        linked = {normalized_name(wheel.name.split("-")[0]) for wheel in _wheels(self.settings.find_links)}
        folders = [
            Path(unquote(urlsplit(url).path))
            for url in index_urls(self.settings, self.environ)
            if url.startswith("file:")
        ]
        return frozenset(linked) | {name for name in kept if any((folder / name).is_dir() for folder in folders)}

    def _remote(self, name: str) -> list[Release]:
        urls = index_urls(self.settings, self.environ)
        cached = self.cache / f"{hashlib.sha256('|'.join([*urls, name]).encode()).hexdigest()[:24]}.json"
        if (kept := _read_cache(cached, max_age=_FRESH_S)) is not None:
            return kept
        from harness.environment.index_page import read_page

        try:
            found = [release for url in urls for release in read_page(url, name)]
        except NoNetwork:
            if (kept := _read_cache(cached, max_age=float("inf"))) is not None:
                return kept
            raise
        if found:  # an empty answer is not cached: the index may be wrong for a moment
            _write_cache(cached, found)
        return found


def check_project_name(text: str) -> None:
    """Raise `UserMistake` if a text can't be the name of a project (packaging specifications, "Names")."""
    if not _NAME.fullmatch(text):
        raise UserMistake(
            f"{text!r} is not the name of a project", hint="write it as in pip install, without a version"
        )


def index_urls(settings: PipSettings, environ: Mapping[str, str]) -> list[str]:
    """The URLs of all configured indexes; "" is the default of the index client."""
    if settings.no_index or environ.get("UV_NO_INDEX"):
        return []
    main = environ.get("UV_DEFAULT_INDEX") or environ.get("UV_INDEX_URL") or settings.index_url or ""
    extra = [*environ.get("UV_INDEX", "").split(), *environ.get("UV_EXTRA_INDEX_URL", "").split()]
    named = [
        url.split("=", 1)[-1] if "=" in url.split("://")[0] else url
        for url in [main, *extra, *settings.extra_index_urls]
    ]
    return list(dict.fromkeys(url.rstrip("/") + "/" if url else "" for url in named))


def _merged(name: str, files: Iterable[Release]) -> tuple[Release, ...]:
    """One release from its files. A local label ("2.8.0+cpu") does not make another release."""
    by_version: dict[Version, list[Release]] = {}
    for file in files:
        by_version.setdefault(public_version(file.version), []).append(file)
    return tuple(
        sorted(
            (
                Release(
                    project=name,
                    version=version,
                    uploaded=min((f.uploaded for f in parts if f.uploaded), default=None),
                    # A release is yanked if all its files are.
                    yanked=next((f.yanked for f in parts if f.yanked is not None), None)
                    if all(f.yanked is not None for f in parts if f.wheels or f.has_sdist)
                    else None,
                    requires_python=next((f.requires_python for f in parts if f.requires_python), None),
                    wheels=tuple(wheel for f in parts for wheel in f.wheels),
                    has_sdist=any(f.has_sdist for f in parts),
                    size=max((f.size for f in parts if f.size), default=None),
                )
                for version, parts in by_version.items()
            ),
            key=lambda release: release.version,
        )
    )


def _wheels(find_links: Iterable[str]) -> list[Path]:
    folders = [
        Path(unquote(urlsplit(p).path)) if p.startswith("file:") else Path(p)
        for p in find_links
        if "://" not in p or p.startswith("file:")
    ]
    return sorted(wheel for folder in folders if folder.is_dir() for wheel in folder.glob("*.whl"))


def _local_wheels(name: str, find_links: Iterable[str]) -> list[Release]:
    found = []
    for path in _wheels(find_links):
        project, _, rest = path.name.partition("-")
        if normalized_name(project) == name and (parsed := parsed_version(rest.partition("-")[0])):
            found.append(Release(name, parsed, wheels=(path.name,), size=path.stat().st_size))
    return found


def _read_cache(path: Path, *, max_age: float) -> list[Release] | None:
    """The cached releases, None if there are none or the file is invalid."""
    try:
        if time.time() - path.stat().st_mtime > max_age:
            return None
        return [_kept_release(row) for row in json.loads(path.read_text(encoding="utf-8"))] or None
    except (OSError, ValueError, KeyError, TypeError, RecursionError, cattrs.BaseValidationError):
        return None


def _kept_release(row: Any) -> Release:
    row = _converter.structure(row, _Row)
    return Release(
        project=row.project,
        version=Version(row.version),
        uploaded=datetime.fromisoformat(row.uploaded) if row.uploaded else None,
        yanked=row.yanked,
        requires_python=row.requires_python,
        wheels=row.wheels,
        has_sdist=row.has_sdist,
        size=row.size,
    )


def _write_cache(path: Path, releases: Iterable[Release]) -> None:
    rows = [
        {
            "project": r.project,
            "version": str(r.version),
            "uploaded": r.uploaded.isoformat() if r.uploaded else None,
            "yanked": r.yanked,
            "requires_python": r.requires_python,
            "wheels": r.wheels,
            "has_sdist": r.has_sdist,
            "size": r.size,
        }
        for r in releases
    ]
    write_whole(path, json.dumps(rows))
