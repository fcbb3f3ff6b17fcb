"""One page of a package index, fetched and parsed into releases: one for each file that it lists.

The answer may not come from an index at all: a login page, a proxy, a failing server. None of these is a list of
releases, not even an empty one. Import this module only to fetch a page: its parsers load slowly.
"""

from __future__ import annotations

import json
import re
import time
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import requests
from pypi_simple import (
    ACCEPT_ANY,
    PYPI_SIMPLE_ENDPOINT,
    DistributionPackage,
    ProjectPage,
    UnexpectedRepoVersionWarning,
    UnsupportedRepoVersionError,
)
from pypi_simple.html import RepositoryPage

from harness.environment.installer_errors import access_refused, failing_status, host_of, no_list, unreachable
from harness.environment.versions import parsed_version
from harness.model import Release

if TYPE_CHECKING:
    from collections.abc import Iterator

_SILENCE_S = 60.0
_LONGEST_S = 300.0
_LARGEST = 256 * 2**20
_CHUNK = 1 << 16
_REFUSALS = (401, 403, 407)
# uv, "Using uv with PyTorch": these indexes answer 403 for an unknown project, and uv continues too.
_FORBIDS_WHAT_IT_LACKS = ("download.pytorch.org",)
# A page may contain anything: deep nesting, wrong types, impossible dates.
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError, OverflowError)
_OF_AN_INDEX = re.compile(r"pypi:repository-version|pypi:project-status|<(?:title|h1)>\s*Links for\b", re.IGNORECASE)


def read_page(index_url: str, name: str) -> list[Release]:
    """The releases on one page of a simple index (PEP 503, 691, 700); an empty `index_url` is the default index.

    Returns an empty list if the index does not have the project. Raises `NoNetwork`, and `IndexFault` if the server
    refuses, fails or is not an index.
    """
    url = f"{index_url or PYPI_SIMPLE_ENDPOINT}{name}/"
    if url.startswith("file:"):
        page = Path(unquote(urlsplit(url).path)) / "index.html"
        return _from_html(page.read_text(encoding="utf-8", errors="replace"), url, name) if page.is_file() else []
    host = host_of(url)
    try:
        with requests.get(url, headers={"Accept": ACCEPT_ANY}, timeout=_SILENCE_S, stream=True) as response:
            status = response.status_code
            if status == requests.codes.not_found or (status == 403 and host in _FORBIDS_WHAT_IT_LACKS):
                return []
            if status in _REFUSALS:
                raise access_refused(host, status)
            if status != requests.codes.ok:
                raise failing_status(host, status)
            body = b"".join(_pieces(response, host))
            kind = response.headers.get("content-type", "").lower()
            charset, where = response.encoding, response.url
    except requests.TooManyRedirects as error:
        raise no_list(host, "it redirects in a circle") from error
    except requests.RequestException as error:
        raise unreachable(host, _cause(error)) from error
    except (UnicodeError, ValueError) as error:  # an invalid address, or a redirect to one
        raise no_list(host, "it redirects to an invalid address") from error
    return parse_page(body, kind, charset, url=where, name=name)


def parse_page(body: bytes, kind: str, charset: str | None, *, url: str, name: str) -> list[Release]:
    """Parse a page; `kind` is its content type. Raises `IndexFault` if it is not an index page.

    A page without a link to a file of the project counts as the login page of a network, unless it says that there are
    no files.
    """
    host = host_of(url)
    try:
        if "html" in kind:
            text = body.decode(_known(charset), errors="replace")
            found = _from_html(text, url, name)
            if not found and not _OF_AN_INDEX.search(text):
                raise no_list(host, f"it sends a web page that names no file of {name}")
            return found
        if "json" in kind:
            return _from_json(body, url, name)
    except UnsupportedRepoVersionError as error:
        raise no_list(
            host, "it answers in a later version of the simple index API than 1", hint="a later harness may read it"
        ) from error
    except _UNREADABLE as error:
        raise no_list(host, f"its page of {name} can't be read ({type(error).__name__})") from error
    raise no_list(host, f"its page of {name} is neither HTML nor JSON")


def _pieces(response: requests.Response, host: str) -> Iterator[bytes]:
    begun, size = time.monotonic(), 0
    for piece in response.iter_content(_CHUNK):
        size += len(piece)
        if size > _LARGEST or time.monotonic() - begun > _LONGEST_S:
            raise no_list(host, "its page is too large, or comes too slowly")
        yield piece


def _cause(error: requests.RequestException) -> str:
    """The reason in a few words, without the address, which may contain a password."""
    kinds = {
        requests.exceptions.SSLError: "its certificate is not trusted",
        requests.exceptions.ProxyError: "the proxy fails",
        requests.exceptions.Timeout: "no answer in time",
        requests.exceptions.ChunkedEncodingError: "the answer was cut off",
        requests.exceptions.ContentDecodingError: "the answer is garbled",
    }
    return next((words for kind, words in kinds.items() if isinstance(error, kind)), "")


def _known(charset: str | None) -> str:
    try:
        "".encode(charset or "utf-8")
    except LookupError:
        return "utf-8"
    return charset or "utf-8"


def _from_json(body: bytes, url: str, name: str) -> list[Release]:
    data = json.loads(body)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnexpectedRepoVersionWarning)  # minor versions only add keys
        page = ProjectPage.from_json_data(data, url)
    found = [_release(name, package, package.upload_time) for package in page.packages]
    listed = [Release(name, version) for text in page.versions or () if (version := parsed_version(text))]
    return [release for release in found if release is not None] + listed


def _from_html(text: str, url: str, name: str) -> list[Release]:
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
        uploaded=_in_utc(uploaded),
        yanked=(package.yanked_reason or "") if package.is_yanked else None,
        requires_python=package.requires_python,
        wheels=(package.filename,) if is_wheel else (),
        has_sdist=not is_wheel,
        size=package.size if is_wheel else None,
    )


def _in_utc(moment: datetime | None) -> datetime | None:
    """The time in UTC, which is assumed if the index gives no time zone."""
    if moment is None:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
