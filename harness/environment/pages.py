"""A page of the package index: what it says about a project, and whether that is still so.

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
import subprocess
import threading
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from html.parser import HTMLParser
from http import HTTPStatus
from http.client import responses
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlsplit

from attrs import define, field, frozen
from uv import find_uv_bin

from harness.atomic import sha256_of
from harness.environment.pip_settings import PipSettings, index_urls
from harness.errors import IndexFault, NoNetwork
from harness.model import Release, parsed_version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from requests import RequestException, Response, Session


_ASKING_UV = threading.Lock()
# requests loads slowly, so it is imported only where a page is fetched.
_T = TypeVar("_T")
_OF_UV = re.compile(r"--default-index\b.*?by\s+default:\s+<(https?://[^>\s]+)>", re.DOTALL)
_PARTS_OF_A_WHEEL = 5  # name, version, Python, interface, platform; beside them a build

_ACCEPTED = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.5, text/html;q=0.1"
PAGES_AT_ONCE = 16
_SILENCE_S = 60.0
# Headers by which a server knows a version of a page, and those that ask whether it has another one.
_MARKS = {"etag": "If-None-Match", "last-modified": "If-Modified-Since"}
_COARSE_S = 2.0  # a date of a page counts whole seconds, in which the page may change again
_CHUNK = 1 << 16
_LARGEST_PAGE = 256 << 20  # the largest of the public index has 40 MB
_LARGEST_FILE = 64 << 30
# Whoever sends less for longer is as good as silent.
_SLOWEST, _PATIENCE_S = 2048.0, 30.0  # bytes per second
_LONGEST_PAGE_S = 600.0
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
class Page:
    """What one index says about a project: its releases, and how to ask whether that is still so.

    `marks` are the headers by which the server knows this version of the page; `digest` is a hash of its content.
    """

    releases: tuple[Release, ...] = ()
    marks: dict[str, str] = field(factory=dict)
    digest: str = ""

    @property
    def state(self) -> str:
        """A text that is another one when the page has changed."""
        return _state(self.marks) or self.digest


def read_page(index_url: str, name: str, known: Page | None = None) -> Page:
    """One page of a simple index (PEP 503, 691, 700); an empty `index_url` is the default index.

    Returns `known` if it did not change, and a page without releases if the index does not have
    the project. Raises `NoNetwork`, and `IndexFault` if the server refuses, fails or is not an index.
    """
    url = _address(index_url, name)
    if url.startswith("file:"):
        text = _local_page(url)
        return Page(tuple(_from_html(text, name)), digest=_digest_of(text.encode())) if text else Page()
    conditions = {_MARKS[mark]: value for mark, value in known.marks.items()} if known is not None else {}
    with _opened(url, headers={"Accept": _ACCEPTED, **conditions}) as response:
        if response is None:
            return Page()
        if known is not None and response.status_code == HTTPStatus.NOT_MODIFIED:
            return known
        body = b"".join(_pieces(response, host_of(url), _LARGEST_PAGE))
    marks, digest = _marks(response.headers), _digest_of(body)
    if known is not None and (known.digest, known.marks) == (digest, marks):
        return known
    kind = response.headers.get("content-type", "").lower()
    releases = parse_page(body, kind, response.encoding, url=response.url, name=name)
    return Page(tuple(releases), marks, digest)


def page_state(index_url: str, name: str) -> str:
    """The `Page.state` of a page, which is not fetched if the server can tell it; "" if the index has no such page.

    Raises `NoNetwork` and `IndexFault`.
    """
    url = _address(index_url, name)
    if url.startswith("file:"):
        return _digest_of(_local_page(url).encode())
    host, body = _host(host_of(url)), b""
    if host.gives_marks is None:
        with host.asking:
            if host.gives_marks is None:
                with _opened(url, "HEAD", headers={"Accept": _ACCEPTED}) as response:
                    host.gives_marks = bool(_state(_marks(response.headers))) if response is not None else None
    for method in ("HEAD", "GET") if host.gives_marks is not False else ("GET",):
        with _opened(url, method, headers={"Accept": _ACCEPTED}) as response:
            if response is None:
                return ""
            if state := _state(_marks(response.headers)):
                return state
            body = b"".join(_pieces(response, host_of(url), _LARGEST_PAGE))
    return _digest_of(body)


@define
class _Host:
    """A server, and whether it says which version of a page it has; many do not. None: it was not asked yet."""

    gives_marks: bool | None = None
    asking: threading.Lock = field(factory=threading.Lock)


@lru_cache(maxsize=64)
def _host(_name: str) -> _Host:
    """What this process knows of a server."""
    return _Host()


def _address(index_url: str, name: str) -> str:
    if index_url:
        return f"{index_url}{name}/"
    with _ASKING_UV:  # or each of many threads asks it
        return f"{_default_index()}{name}/"


@lru_cache(maxsize=1)
def _default_index() -> str:
    """The index that uv takes if no setting names one, as its help says. Raises `IndexFault` if it does not say it."""
    uv = find_uv_bin()
    words = subprocess.run([uv, "pip", "compile", "--help"], capture_output=True, text=True, check=False).stdout
    named = _OF_UV.search(words)
    if named is None:
        raise IndexFault("uv does not say which index it uses by default", hint="UV_DEFAULT_INDEX names one")
    return f"{named[1].rstrip('/')}/"


def _local_page(url: str) -> str:
    page = Path(unquote(urlsplit(url).path)) / "index.html"
    return page.read_text(encoding="utf-8", errors="replace") if page.is_file() else ""


def _digest_of(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:24] if body else ""


def _marks(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of an answer that name its version. A date that is too fresh names none (RFC 9110, 8.8.2.2)."""
    marks = {name: headers[name] for name in _MARKS if name in headers}
    with contextlib.suppress(KeyError, ValueError, TypeError):
        age = parsedate_to_datetime(headers["date"]) - parsedate_to_datetime(headers["last-modified"])
        if age.total_seconds() >= _COARSE_S:
            return marks
    marks.pop("last-modified", None)
    return marks


def _state(marks: Mapping[str, str]) -> str:
    return marks.get("etag", "").removeprefix("W/") or marks.get("last-modified", "")


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


@lru_cache(maxsize=1)
def _connections() -> Session:
    """Connections to servers, which are used again: to open one takes longer than to ask for a page.

    They share one TLS context, else the certificates would be read for each connection, which takes 25 ms.
    """
    import requests
    from requests.adapters import HTTPAdapter
    from urllib3.util import create_urllib3_context

    context, reading = create_urllib3_context(), threading.Lock()
    trusted: set[tuple[str | None, str | None]] = set()

    class Adapter(HTTPAdapter):
        def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
            super().init_poolmanager(*arguments, ssl_context=context, **options)

        def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
            return super().proxy_manager_for(proxy, ssl_context=context, **options)

        def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
            super().cert_verify(conn, url, verify, cert)  # type: ignore[no-untyped-call]
            places = conn.ca_certs, conn.ca_cert_dir
            with reading:
                if any(places) and places not in trusted:
                    context.load_verify_locations(*places)
                    trusted.add(places)
            conn.ca_certs = conn.ca_cert_dir = None

    session = requests.Session()
    session.mount("http://", HTTPAdapter(pool_maxsize=PAGES_AT_ONCE))
    session.mount("https://", Adapter(pool_maxsize=PAGES_AT_ONCE))
    return session


@contextlib.contextmanager
def _opened(url: str, method: str = "GET", **options: Any) -> Iterator[Response | None]:
    """A server's answer, None if it has nothing at this address. Raises `NoNetwork` and `IndexFault`, also for a read.

    A status other than success is an `IndexFault`.
    """
    import requests

    host = host_of(url)
    try:
        with _connections().request(
            method, url, timeout=_SILENCE_S, stream=True, allow_redirects=True, **options
        ) as response:
            status = response.status_code
            if status in _REFUSALS and not (status == HTTPStatus.FORBIDDEN and host in _FORBIDS_WHAT_IT_LACKS):
                raise access_refused(host, status)
            has_answer = status in (HTTPStatus.OK, HTTPStatus.NOT_MODIFIED)
            if not has_answer and status not in (HTTPStatus.NOT_FOUND, *_REFUSALS):
                raise failing_status(host, status)
            yield response if has_answer else None
    except requests.TooManyRedirects as error:
        raise no_list(host, "it redirects in a circle") from error
    except requests.RequestException as error:
        raise unreachable(host, _cause(error)) from error
    except (UnicodeError, ValueError) as error:  # an invalid address, or a redirect to one
        raise no_list(host, "it redirects to an invalid address") from error


def _pieces(response: Response, host: str, limit: int) -> Iterator[bytes]:
    """Yield the content of an answer as it arrives.

    Raises `IndexFault` if it has more than `limit` bytes, and `NoNetwork` if it comes too slowly or breaks off. A page
    may take `_LONGEST_PAGE_S`, a file as long as it needs.
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
            is_too_long = limit <= _LARGEST_PAGE and seconds > _LONGEST_PAGE_S
            if is_too_long or (seconds > _PATIENCE_S and size < seconds * _SLOWEST):
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
    host = host_of(url)
    try:
        if "html" in kind:
            text = body.decode(charset or "utf-8", errors="replace")
            releases = _from_html(text, name)
            if not releases and not _OF_AN_INDEX.search(text):
                raise no_list(host, f"it sends a web page that names no file of {name}")
            return releases
        if "json" in kind:
            return _from_json(body, name)
    except _UNREADABLE as error:
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


def _from_json(body: bytes, name: str) -> list[Release]:
    data = json.loads(body)
    _check_version(_typed(data["meta"]["api-version"], str))
    releases = [_from_file(name, file) for file in data["files"]]
    listed = [Release(name, version) for text in data.get("versions") or () if (version := parsed_version(text))]
    return [release for release in releases if release is not None] + listed


def _from_file(name: str, file: Any) -> Release | None:
    """The release of a file of a page in JSON, None if it is neither a wheel nor an sdist."""
    yanked, uploaded, requires = file.get("yanked", False), file.get("upload-time"), file.get("requires-python")
    size = file.get("size")
    return _release(
        name,
        _typed(file["filename"], str),
        uploaded=datetime.fromisoformat(uploaded) if uploaded is not None else None,
        yanked=_typed(yanked, str) if yanked not in (True, False) else "" if yanked else None,
        requires_python=_typed(requires, str) if requires is not None else None,
        size=_typed(size, int) if size is not None else None,
        digest=_typed(file["hashes"].get("sha256", ""), str),
    )


class _Links(HTMLParser):
    """The links of a page, each with its text and its attributes, and the version of the repository's interface."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[tuple[list[str], dict[str, str]]] = []
        self.version = ""
        self._is_open = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "a" and "href" in values:
            self.links.append(([], values))
        self._is_open = self._is_open if tag != "a" else "href" in values
        if tag == "meta" and values.get("name") == "pypi:repository-version":
            self.version = self.version or values.get("content", "")

    def handle_endtag(self, tag: str) -> None:
        self._is_open = self._is_open and tag != "a"

    def handle_data(self, data: str) -> None:
        if self._is_open:
            self.links[-1][0].append(data)


def _from_html(text: str, name: str) -> list[Release]:
    page = _Links()
    page.feed(text)
    page.close()
    if page.version:
        _check_version(page.version)
    releases = []
    for words, values in page.links:
        kind, _, digest = urlsplit(values["href"]).fragment.partition("=")
        release = _release(
            name,
            "".join(words).strip(),
            uploaded=_moment(values.get("data-upload-time")),
            yanked=values.get("data-yanked"),
            requires_python=values.get("data-requires-python"),
            digest=digest if kind == "sha256" else "",
        )
        if release is not None:
            releases.append(release)
    return releases


def _check_version(text: str) -> None:
    """Raise `ValueError` for a page of another major version (PEP 629); minor ones only add keys."""
    if int(text.partition(".")[0]) != 1:
        raise ValueError(f"the interface of the repository has the version {text}")


def _typed(value: Any, kind: type[_T]) -> _T:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r:.100} is no {kind.__name__}")
    return value


def _moment(stamp: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(stamp) if stamp else None
    except ValueError:
        return None


def _release(
    name: str,
    filename: str,
    *,
    uploaded: datetime | None,
    yanked: str | None,
    requires_python: str | None,
    size: int | None = None,
    digest: str = "",
) -> Release | None:
    is_wheel = filename.endswith(".whl")
    version = parsed_version(_version_in(filename, name))
    if version is None:
        return None
    return Release(
        project=name,
        version=version,
        # UTC is assumed if the index gives no time zone.
        uploaded=uploaded and uploaded.replace(tzinfo=uploaded.tzinfo or UTC).astimezone(UTC),
        yanked=yanked,
        requires_python=requires_python,
        wheels=(filename,) if is_wheel else (),
        has_sdist=not is_wheel,
        size=size if is_wheel else None,
        digests={filename: (digest,)} if is_wheel and digest else {},
    )


def _version_in(filename: str, name: str) -> str:
    """The version in the name of a wheel or an sdist of a project, "" for another file."""
    if filename.endswith(".whl"):
        parts = filename.split("-")
        return parts[1] if len(parts) >= _PARTS_OF_A_WHEEL else ""
    own = re.escape(name).replace(r"\-", "[-_.]+")
    sdist = re.fullmatch(rf"{own}-(.+?)\.(?:tar(?:\.\w+)?|t[a-z]z|zip)", filename, re.IGNORECASE)
    return sdist[1] if sdist is not None else ""


def host_of(url: str) -> str:
    """The host of an address, without user and password; "" if there is none."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2]
    except ValueError:
        return ""


def unreachable(host: str, why: str = "") -> NoNetwork:
    """The error for a server that does not answer."""
    reason = ", ".join(filter(None, (host, why)))
    return NoNetwork(f"the package index can't be reached{f' ({reason})' if reason else ''}", hint=_AGAIN)


def access_refused(host: str, status: int) -> IndexFault:
    """The error for a server that requires a login."""
    return IndexFault(f"the package index refuses access: {host or 'it'} answers {_status_line(status)}", hint=_ACCESS)


def failing_status(host: str, status: int) -> IndexFault:
    """The error for a server that fails, or asks to try later."""
    return IndexFault(f"the package index fails: {host or 'it'} answers {_status_line(status)}", hint=_AGAIN)


def no_list(host: str, why: str) -> IndexFault:
    """The error for an answer that is not an index page, or can't be read."""
    return IndexFault(f"the package index gives no list of releases ({host}): {why}", hint=_LOG_IN)


def _status_line(status: int) -> str:
    return f"{status} {responses.get(status, '')}".strip()
