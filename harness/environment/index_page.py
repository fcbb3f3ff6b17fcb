"""One page of a package index, fetched and read as releases: one for each file that it lists.

Imported only when a page is fetched: what parses pages takes longer to load than an answer from the cache.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

import requests
from pypi_simple import ACCEPT_ANY, PYPI_SIMPLE_ENDPOINT, DistributionPackage, ProjectPage
from pypi_simple.html import RepositoryPage

from harness.environment.versions import parsed_version
from harness.model import Release


class Unreachable(Exception):
    """The index did not answer."""


def read_page(index_url: str, name: str) -> list[Release]:
    """The releases on one page of a simple index (PEP 503, 691, 700); an empty `index_url` is the built-in default.

    Raises `Unreachable`.
    """
    url = f"{index_url or PYPI_SIMPLE_ENDPOINT}{name}/"
    if url.startswith("file:"):
        page = Path(unquote(urlsplit(url).path)) / "index.html"
        if not page.is_file():
            return []
        return _from_html(page.read_text(encoding="utf-8"), url, name)
    try:
        response = requests.get(url, headers={"Accept": ACCEPT_ANY}, timeout=60)
        if response.status_code == requests.codes.not_found:
            return []
        response.raise_for_status()
    except requests.RequestException as error:
        raise Unreachable(str(error)) from error
    if "html" in response.headers.get("content-type", ""):
        return _from_html(response.text, url, name)
    page_data = ProjectPage.from_response(response, name)
    found = [_release(name, package, package.upload_time) for package in page_data.packages]
    listed = [Release(name, version) for text in page_data.versions or () if (version := parsed_version(text))]
    return [release for release in found if release is not None] + listed


def _from_html(text: str, url: str, name: str) -> list[Release]:
    found = []
    for link in RepositoryPage.from_html(text, base_url=url).links:
        stamp = link.get_str_attrib("data-upload-time")
        uploaded = datetime.fromisoformat(stamp) if stamp else None
        release = _release(name, DistributionPackage.from_link(link, name), uploaded)
        if release is not None:
            found.append(release)
    return found


def _release(name: str, package: DistributionPackage, uploaded: datetime | None) -> Release | None:
    version = parsed_version(package.version)
    if version is None or package.package_type not in ("wheel", "sdist"):
        return None
    is_wheel = package.package_type == "wheel"
    return Release(
        project=name,
        version=version,
        uploaded=uploaded.astimezone(UTC) if uploaded else None,
        yanked=(package.yanked_reason or "") if package.is_yanked else None,
        requires_python=package.requires_python,
        wheels=(package.filename,) if is_wheel else (),
        has_sdist=not is_wheel,
        size=package.size if is_wheel else None,
    )
