"""The package index: the releases of a project, their upload times, and which can be installed.

The answer of a server may not come from an index at all: a login page, a proxy, a failing server. None of these is a
list of releases, not even an empty one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import time
import warnings
from datetime import UTC, datetime
from functools import lru_cache
from http import HTTPStatus
from http.client import responses
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from attrs import field, frozen
from packaging.version import Version

from harness.atomic import sha256_of
from harness.environment.pip_settings import PipSettings
from harness.environment.record import read_record, write_record
from harness.errors import IndexFault, NoNetwork, UnknownProject, UserMistake
from harness.model import Lock, Pin, Release, normalized_name, parsed_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pypi_simple import DistributionPackage
    from requests import RequestException, Response


# requests and pypi_simple load slowly, so they are imported only where a page is fetched.

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_FRESH_S = 600.0  # as long as uv caches an index page

_SILENCE_S = 60.0
_CHUNK = 1 << 16
_LARGEST_PAGE = 256 << 20  # the largest of pypi.org has 40 MB
_LARGEST_FILE = 64 << 30
# Whoever sends less for longer is as good as silent.
_SLOWEST, _PATIENCE_S = 2048.0, 30.0  # bytes per second
_REFUSALS = (401, 403, 407)
# uv, "Using uv with PyTorch": these indexes answer 403 for an unknown project, and uv continues too.
_FORBIDS_WHAT_IT_LACKS = ("download.pytorch.org",)
# A page may contain anything: deep nesting, wrong types, impossible dates, an unknown charset.
_UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError)
_OF_AN_INDEX = re.compile(r"pypi:repository-version|pypi:project-status|<(?:title|h1)>\s*Links for\b", re.IGNORECASE)
_AGAIN = "run the same command again when the index answers"
_LOG_IN = "does this network need a login? log in, then run the same command again"
_ACCESS = "check the user name, password or token in the index URL, netrc or the keyring"


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
        told = {**self.environ, **self.settings.as_uv_environment(self.environ)}
        return _wheels(filter(None, told.get("UV_FIND_LINKS", "").split(",")))

    def has_replaced(self, lock: Lock) -> bool:
        """Whether a wheel of a lock is in a find-links folder, with another content than when it was locked."""
        local = {path.name: path for path in self.local_wheels()}
        locked = [(local[pin.wheel], pin.digests) for pin in lock.pins if pin.digests and pin.wheel in local]
        return any(_digest(path, path.stat().st_mtime_ns) not in digests for path, digests in locked)

    @property
    def is_of_several(self) -> bool:
        """Whether several indexes are used over HTTP: one may have upload times that another lacks."""
        urls = index_urls(self.settings, self.environ)
        return sum(not url.startswith("file:") for url in urls) > 1

    def lacks_dates(self, project: str) -> bool:
        """Whether a page of some index lists a file of this project without upload time. Raises `NoNetwork`."""
        self.known_releases(project)
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
        try:
            found = [release for url in urls for release in read_page(url, name)]
        except NoNetwork:
            if (kept := _read_cache(cached, max_age=float("inf"))) is not None:
                return kept
            raise
        if found:  # an empty answer is not cached: the index may be wrong for a moment
            write_record(cached, found)
        return found


@lru_cache(maxsize=256)
def _digest(path: Path, _changed: int) -> str:
    return sha256_of(path)


def check_project_name(text: str) -> None:
    """Raise `UserMistake` if a text can't be the name of a project (packaging specifications, "Names")."""
    if not _NAME.fullmatch(text):
        raise UserMistake(
            f"{text!r} is not the name of a project", hint="write it as in pip install, without a version"
        )


def index_urls(settings: PipSettings, environ: Mapping[str, str]) -> list[str]:
    """The URLs of all indexes that uv gets; "" is the default of the index client."""
    told = {**environ, **settings.as_uv_environment(environ)}
    if told.get("UV_NO_INDEX"):
        return []
    main = told.get("UV_DEFAULT_INDEX") or told.get("UV_INDEX_URL") or ""
    extra = [*told.get("UV_INDEX", "").split(), *told.get("UV_EXTRA_INDEX_URL", "").split()]
    named = [url.split("=", 1)[-1] if "=" in url.split("://")[0] else url for url in [main, *extra]]
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
        age = time.time() - path.stat().st_mtime
    except OSError:
        return None
    # A page that is younger than now was written before the clock was set back.
    return read_record(path, list[Release]) or None if abs(age) <= max_age else None


def read_page(index_url: str, name: str) -> list[Release]:
    """The releases on one page of a simple index (PEP 503, 691, 700); an empty `index_url` is the default index.

    Returns an empty list if the index does not have the project. Raises `NoNetwork`, and `IndexFault` if the server
    refuses, fails or is not an index.
    """
    from pypi_simple import ACCEPT_ANY, PYPI_SIMPLE_ENDPOINT

    url = f"{index_url or PYPI_SIMPLE_ENDPOINT}{name}/"
    if url.startswith("file:"):
        page = Path(unquote(urlsplit(url).path)) / "index.html"
        return _from_html(page.read_text(encoding="utf-8", errors="replace"), url, name) if page.is_file() else []
    with _opened(url, headers={"Accept": ACCEPT_ANY}) as response:
        if response is None:
            return []
        body = b"".join(_pieces(response, host_of(url), _LARGEST_PAGE))
    kind = response.headers.get("content-type", "").lower()
    return parse_page(body, kind, response.encoding, url=response.url, name=name)


def download(settings: PipSettings, url: str, target: Path, sha256: str) -> None:
    """Download a file of an index, of any size. Raises `NoNetwork`, and `IndexFault` if its hash is another one."""
    host, part = host_of(url), target.with_name(f"{target.name}.part")
    try:
        if url.startswith("file:"):
            shutil.copyfile(unquote(urlsplit(url).path), part)
        else:
            with _opened(url, auth=_login(settings, url)) as response, part.open("wb") as file:
                if response is None:
                    raise failing_status(host, HTTPStatus.NOT_FOUND)
                file.writelines(_pieces(response, host, _LARGEST_FILE))
        if sha256 and sha256_of(part) != sha256:
            raise no_list(host, f"{target.name} is not the file that the index lists")
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


@contextlib.contextmanager
def _opened(url: str, **options: Any) -> Iterator[Response | None]:
    """A server's answer, None if it has nothing at this address. Raises `NoNetwork` and `IndexFault`, also for a read.

    A status other than success is an `IndexFault`.
    """
    import requests

    host = host_of(url)
    try:
        with requests.get(url, timeout=_SILENCE_S, stream=True, **options) as response:
            status = response.status_code
            if status in _REFUSALS and not (status == HTTPStatus.FORBIDDEN and host in _FORBIDS_WHAT_IT_LACKS):
                raise access_refused(host, status)
            if status not in (HTTPStatus.OK, HTTPStatus.NOT_FOUND, *_REFUSALS):
                raise failing_status(host, status)
            yield response if status == HTTPStatus.OK else None
    except requests.TooManyRedirects as error:
        raise no_list(host, "it redirects in a circle") from error
    except requests.RequestException as error:
        raise unreachable(host, _cause(error)) from error
    except (UnicodeError, ValueError) as error:  # an invalid address, or a redirect to one
        raise no_list(host, "it redirects to an invalid address") from error


def _pieces(response: Response, host: str, limit: int) -> Iterator[bytes]:
    """Yield the content of an answer as it arrives.

    Raises `IndexFault` if it has more than `limit` bytes, and `NoNetwork` if it comes too slowly or breaks off.
    """
    from requests import exceptions
    from urllib3.exceptions import DecodeError, HTTPError, ReadTimeoutError

    begun, size = time.monotonic(), 0
    try:
        while piece := response.raw.read1(_CHUNK, decode_content=True):
            size += len(piece)
            if size > limit:
                raise no_list(host, f"its answer has more than {limit >> 20} MiB")
            seconds = time.monotonic() - begun
            if seconds > _PATIENCE_S and size < seconds * _SLOWEST:
                raise unreachable(host, f"it sent {size} bytes in {seconds:.0f} s")
            yield piece
    except ReadTimeoutError as error:  # as requests does for the whole content
        raise exceptions.ReadTimeout(error) from error
    except DecodeError as error:
        raise exceptions.ContentDecodingError(error) from error
    except HTTPError as error:
        raise exceptions.ChunkedEncodingError(error) from error


def _login(settings: PipSettings, url: str) -> tuple[str, str] | None:
    """User and password of the index on the same host, None if it has none; then netrc counts."""
    for index in index_urls(settings, os.environ):
        parts = urlsplit(index)
        if parts.hostname == urlsplit(url).hostname and parts.username:
            return unquote(parts.username), unquote(parts.password or "")
    return None


def parse_page(body: bytes, kind: str, charset: str | None, *, url: str, name: str) -> list[Release]:
    """Parse a page; `kind` is its content type. Raises `IndexFault` if it is not an index page.

    A page without a link to a file of the project counts as the login page of a network, unless it says that there are
    no files.
    """
    from pypi_simple import UnsupportedRepoVersionError

    host = host_of(url)
    try:
        if "html" in kind:
            text = body.decode(charset or "utf-8", errors="replace")
            found = _from_html(text, url, name)
            if not found and not _OF_AN_INDEX.search(text):
                raise no_list(host, f"it sends a web page that names no file of {name}")
            return found
        if "json" in kind:
            return _from_json(body, url, name)
    except (*_UNREADABLE, UnsupportedRepoVersionError) as error:
        raise no_list(host, f"its page of {name} can't be read ({type(error).__name__})") from error
    raise no_list(host, f"its page of {name} is neither HTML nor JSON")


def _cause(error: RequestException) -> str:
    """The reason in a few words, without the address, which may contain a password."""
    from requests import exceptions

    kinds = {
        exceptions.SSLError: "its certificate is not trusted",
        exceptions.ProxyError: "the proxy fails",
        exceptions.Timeout: "no answer in time",
        exceptions.ChunkedEncodingError: "the answer was cut off",
        exceptions.ContentDecodingError: "the answer is garbled",
    }
    return next((words for kind, words in kinds.items() if isinstance(error, kind)), "")


def _from_json(body: bytes, url: str, name: str) -> list[Release]:
    from pypi_simple import ProjectPage, UnexpectedRepoVersionWarning

    data = json.loads(body)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnexpectedRepoVersionWarning)  # minor versions only add keys
        page = ProjectPage.from_json_data(data, url)
    found = [_release(name, package, package.upload_time) for package in page.packages]
    listed = [Release(name, version) for text in page.versions or () if (version := parsed_version(text))]
    return [release for release in found if release is not None] + listed


def _from_html(text: str, url: str, name: str) -> list[Release]:
    from pypi_simple import DistributionPackage
    from pypi_simple.html import RepositoryPage

    found = []
    for link in RepositoryPage.from_html(text, base_url=url).links:
        uploaded = _moment(link.get_str_attrib("data-upload-time"))
        release = _release(name, DistributionPackage.from_link(link, name), uploaded)
        if release is not None:
            found.append(release)
    return found


def _moment(stamp: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(stamp) if stamp else None
    except ValueError:
        return None


def _release(name: str, package: DistributionPackage, uploaded: datetime | None) -> Release | None:
    version = parsed_version(package.version)
    if version is None or package.package_type not in ("wheel", "sdist"):
        return None
    is_wheel = package.package_type == "wheel"
    return Release(
        project=name,
        version=version,
        # UTC is assumed if the index gives no time zone.
        uploaded=uploaded and uploaded.replace(tzinfo=uploaded.tzinfo or UTC).astimezone(UTC),
        yanked=(package.yanked_reason or "") if package.is_yanked else None,
        requires_python=package.requires_python,
        wheels=(package.filename,) if is_wheel else (),
        has_sdist=not is_wheel,
        size=package.size if is_wheel else None,
    )


def host_of(url: str) -> str:
    """The host of an address, without user and password; "" if there is none."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2]
    except ValueError:
        return ""


def unreachable(host: str, why: str = "") -> NoNetwork:
    """The error for a server that does not answer."""
    told = ", ".join(filter(None, (host, why)))
    return NoNetwork(f"the package index can't be reached{f' ({told})' if told else ''}", hint=_AGAIN)


def access_refused(host: str, status: int) -> IndexFault:
    """The error for a server that requires a login."""
    return IndexFault(f"the package index refuses access: {host or 'it'} answers {_said(status)}", hint=_ACCESS)


def failing_status(host: str, status: int) -> IndexFault:
    """The error for a server that fails, or asks to try later."""
    return IndexFault(f"the package index fails: {host or 'it'} answers {_said(status)}", hint=_AGAIN)


def no_list(host: str, why: str) -> IndexFault:
    """The error for an answer that is not an index page, or can't be read."""
    return IndexFault(f"the package index gives no list of releases ({host}): {why}", hint=_LOG_IN)


def _said(status: int) -> str:
    return f"{status} {responses.get(status, '')}".strip()


def public_version(version: Version) -> Version:
    """The version without a local label, as a value, so that 1.0 and 1.0.0 are equal (PEP 440)."""
    return Version(version.public)
