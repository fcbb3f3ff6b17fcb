"""The package index: the releases of a project, their upload times, and which can be installed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlsplit

from attrs import evolve, field, frozen
from packaging.version import Version

from harness.atomic import sha256_of
from harness.environment.pages import PAGES_AT_ONCE, Page, page_state, read_page
from harness.environment.pip_settings import PipSettings, index_urls, urls_of
from harness.errors import NoNetwork, UnknownProject, UserMistake
from harness.model import Lock, Pin, Release, normalized_name, parsed_version
from harness.records import read_record, write_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


_T = TypeVar("_T")
_DAY = re.compile(r"(?<!\d)20\d{6}(?!\d)")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


@frozen
class Index:
    """All indexes that pip and uv are configured for, as one list of releases per project.

    `cache` is a folder for pages. Each session asks once whether a page has changed; without network, it has not.
    """

    settings: PipSettings
    cache: Path
    environ: Mapping[str, str] = field(factory=lambda: dict(os.environ), repr=False)
    _memory: dict[str, tuple[Release, ...]] = field(factory=dict, init=False, repr=False, eq=False)
    _undated: dict[str, bool] = field(factory=dict, init=False, repr=False, eq=False)
    _states: dict[str, str] = field(factory=dict, init=False, repr=False, eq=False)

    def releases(self, project: str) -> tuple[Release, ...]:
        """Every release of a project in version order (PEP 440), installable or not.

        Raises `UnknownProject`, `UserMistake` for an invalid name, `NoNetwork` and `IndexFault`.
        """
        name = _checked(project)
        if name not in self._memory:
            files = self._remote(name)
            self._undated[name] = any(f.uploaded is None for f in files if f.wheels or f.has_sdist)
            files = [file if file.uploaded else evolve(file, uploaded=day_in(file.version)) for file in files]
            releases = _merged(name, [*files, *_local_wheels(name, self.settings.find_links)])
            if not releases:
                raise UnknownProject(project)
            self._memory[name] = releases
        return self._memory[name]

    def known_releases(self, project: str) -> tuple[Release, ...]:
        """Every release of a project, none if the index does not have it. Otherwise like `releases`."""
        try:
            return self.releases(project)
        except UnknownProject:
            return ()

    def release(self, project: str, version: str) -> Release | None:
        """One release, or None if the index has none of that version (a local version label is ignored)."""
        wanted = parsed_version(version)
        releases = self.releases(project) if wanted is not None else ()
        return next((r for r in releases if wanted and r.version == public_version(wanted)), None)

    def known_release(self, project: str, version: str) -> Release | None:
        """One release, or None if the index has none of that version, or no such project. Otherwise like `release`."""
        return self.release(project, version) if self.known_releases(project) else None

    def size_of(self, pin: Pin) -> int | None:
        """The bytes of a wheel, from its lock or from pages fetched before; None if unknown. Fetches no page."""
        if pin.size is not None:
            return pin.size
        version = parsed_version(pin.version)
        known = [*self._memory.get(pin.name, ()), *_local_wheels(pin.name, self.settings.find_links)]
        sizes = [release.size for release in known if version and release.version == public_version(version)]
        return max((size for size in sizes if size), default=None)

    def local_wheels(self) -> list[Path]:
        """The wheels in the find-links folders of pip and uv."""
        variables = {**self.environ, **self.settings.as_uv_environment(self.environ)}
        return _wheels(filter(None, variables.get("UV_FIND_LINKS", "").split(",")))

    def has_replaced(self, lock: Lock) -> bool:
        """Whether a wheel of a lock has another content by now.

        It is in a find-links folder, or on a page that was read in this session.
        """
        local = {path.name: path for path in self.local_wheels()}
        for pin in lock.pins:
            if not pin.digests:
                continue
            if pin.wheel in local:
                path = local[pin.wheel]
                now = {_digest(path, path.stat().st_mtime_ns)}
            else:
                listed = (release.digests.get(pin.wheel, ()) for release in self._memory.get(pin.name, ()))
                now = {digest for digests in listed for digest in digests}
            if now and now.isdisjoint(pin.digests):
                return True
        return False

    def state(self, projects: Iterable[str]) -> str:
        """A hash that is another one when an index has added, yanked or replaced a file of these projects.

        It asks for no page that did not change. Raises `UserMistake` for an invalid name, `NoNetwork` and `IndexFault`.
        """
        names = sorted({_checked(project) for project in projects})
        new = [name for name in names if name not in self._states]
        self._states.update(zip(new, at_once(self._state_of, new), strict=True))
        return hashlib.sha256(json.dumps([(name, self._states[name]) for name in names]).encode()).hexdigest()[:16]

    def has_state(self, projects: Iterable[str]) -> bool:
        """Whether the state of all these projects is that of an earlier moment of this session."""
        return self._states.keys() >= set(map(normalized_name, projects))

    def _state_of(self, name: str) -> str:
        local = [(p.name, p.stat().st_size, p.stat().st_mtime_ns) for p in self.local_wheels() if _project(p) == name]
        urls = urls_of(name, self.settings, self.environ)
        return json.dumps([*(self._page_state(url, name) for url in urls), *local])

    def _page_state(self, url: str, name: str) -> str:
        try:
            return page_state(url, name)
        except NoNetwork:
            if (known := read_record(self._cached(url, name), Page)) is None:
                raise
            return known.state

    @property
    def is_of_several(self) -> bool:
        """Whether several indexes are used over HTTP: one may have upload times that another lacks."""
        urls = [*index_urls(self.settings, self.environ), *(url for _, url in self.settings.own)]
        return sum(not url.startswith("file:") for url in urls) > 1

    def lacks_dates(self, project: str) -> bool:
        """Whether a page of some index lists a file of this project without upload time. Raises `NoNetwork`."""
        self.known_releases(project)
        return self._undated[normalized_name(project)]

    def projects_without_dates(self, preferred: Iterable[str] = ()) -> frozenset[str]:
        """Projects whose files may have no upload time: those of find-links folders, and of an index of their own.

        Also those of `preferred`, projects with a preferred version, that an index in a folder has: uv would look for
        that version there first, find no time, and choose another.
        """
        linked = {_project(wheel) for wheel in _wheels(self.settings.find_links)}
        own = {name for name, _ in self.settings.own if self.lacks_dates(name)}
        return frozenset(linked) | own | {name for name in preferred if self._is_in_a_folder(name)}

    def _is_in_a_folder(self, name: str) -> bool:
        urls = (url for url in urls_of(name, self.settings, self.environ) if url.startswith("file:"))
        return any((Path(unquote(urlsplit(url).path)) / name).is_dir() for url in urls)

    def _remote(self, name: str) -> list[Release]:
        pages = [self._page(url, name) for url in urls_of(name, self.settings, self.environ)]
        return [release for page in pages for release in page.releases]

    def _cached(self, url: str, name: str) -> Path:
        return self.cache / f"{hashlib.sha256(f'{url}|{name}'.encode()).hexdigest()[:24]}.json"

    def _page(self, url: str, name: str) -> Page:
        cached = self._cached(url, name)
        known = read_record(cached, Page) if not url.startswith("file:") else None
        try:
            page = read_page(url, name, known)
        except NoNetwork:
            if known is None:
                raise
            return known
        # An empty answer is not cached: the index may be wrong for a moment.
        if page is not known and page.releases and not url.startswith("file:"):
            write_record(cached, page)
        return page


def at_once(answer: Callable[..., _T], *values: Iterable[Any]) -> list[_T]:
    """What a function answers to each value, several at once, because it fetches slow index pages."""
    with ThreadPoolExecutor(PAGES_AT_ONCE, thread_name_prefix="pages") as pool:
        return list(pool.map(answer, *values))


@lru_cache(maxsize=256)
def _digest(path: Path, _changed: int) -> str:
    return sha256_of(path)


def _checked(project: str) -> str:
    check_project_name(project)
    return normalized_name(project)


def check_project_name(text: str) -> None:
    """Raise `UserMistake` if a text can't be the name of a project (packaging specifications, "Names")."""
    if not _NAME.fullmatch(text):
        raise UserMistake(
            f"{text!r} is not the name of a project", hint="write it as in pip install, without a version"
        )


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
                    digests={
                        wheel: tuple(digest for f in parts for digest in f.digests.get(wheel, ()))
                        for f in parts
                        for wheel in f.digests
                    },
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
    releases = []
    for path in _wheels(find_links):
        version = path.name.partition("-")[2].partition("-")[0]
        if _project(path) == name and (parsed := parsed_version(version)):
            releases.append(Release(name, parsed, wheels=(path.name,), size=path.stat().st_size))
    return releases


def _project(wheel: Path) -> str:
    return normalized_name(wheel.name.partition("-")[0])


def day_in(version: Version) -> datetime | None:
    """The day that the version of a nightly build names (2.9.0.dev20250801, 1.0+git20250801.ab12cd3), at 00:00 UTC."""
    numbers = [str(number) for number in (version.dev, version.post) if number is not None]
    for text in (*numbers, *_DAY.findall(version.local or "")):
        with contextlib.suppress(ValueError):
            if len(text) == len("20250801") and text.startswith("20"):
                return datetime.strptime(text, "%Y%m%d").replace(tzinfo=UTC)
    return None


def public_version(version: Version) -> Version:
    """The version without a local label, as a value, so that 1.0 and 1.0.0 are equal (PEP 440)."""
    return Version(version.public)
