"""Links to the builds of an index, for a page of an index in the cache that has only some of them.

PyTorch's index of nightly builds may have those for CPUs and for several versions of CUDA side by side, of which uv
would take the last one.
"""

from __future__ import annotations

import hashlib
import html
import re
import tempfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from attrs import frozen
from packaging.version import Version

from harness.atomic import write_whole
from harness.environment.pages import download, read_page
from harness.environment.pip_settings import read_pip_settings
from harness.errors import NoNetwork
from harness.events import Note, Reporter
from harness.model import parsed_version

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.environment.workspace import Workspace

_LINK = re.compile(
    r"<a\b(?P<before>[^>]*?)\bhref\s*=\s*(?P<href>\"[^\"]*\"|'[^']*'|[^\s>]+)(?P<after>[^>]*)>\s*"
    r"(?P<file>[^<]+?)\s*</a>",
    re.IGNORECASE,
)
_DEVICE = r"cpu|cu\d+|rocm[\d.]+|xpu"
_OF_DEVICE, _IN_URL = re.compile(_DEVICE), re.compile(rf"/(?:{_DEVICE})(?:/|$)")


@frozen
class Link:
    """A link of a page to a wheel: its file name, its address, and its other attributes as written."""

    file: str
    address: str
    attributes: str = ""

    @property
    def version(self) -> Version | None:
        """The version of the wheel, None if its name has none."""
        return parsed_version(self.file.split("-")[1]) if self.file.endswith(".whl") and "-" in self.file else None

    def tag(self, date: datetime | None = None) -> str:
        """The link for a page of another index, with the time (UTC) of its commit."""
        moment = f' data-upload-time="{date.astimezone(UTC).isoformat()}"' if date is not None else ""
        return f'<a href="{html.escape(self.address)}"{self.attributes}{moment}>{html.escape(self.file)}</a><br/>'


def for_device(
    backend: str | None, workspace: Workspace, reporter: Reporter, name: str, url: str, *, has_gpu: bool
) -> str:
    """Return the address of an index with only the builds for one device, or `url` if it has no others.

    They are those for `backend` (cpu, cu128), and without one those for CPUs if there is no GPU.
    """
    address = f"{url.rstrip('/')}/"
    if url.startswith("file:") or _IN_URL.search(url) is not None:
        return url
    try:
        releases = read_page(address, name).releases
    except NoNetwork:  # what was resolved before is known without it
        return url
    versions = (parsed_version(wheel.split("-")[1]) for release in releases for wheel in release.wheels)
    labels = {version.local for version in versions if version is not None and version.local}
    devices = {label for label in labels if _OF_DEVICE.fullmatch(label)}
    wanted = backend if backend in devices else "cpu" if "cpu" in devices and not has_gpu else ""
    if len(devices) < 2 or not wanted:  # the last of several is uv's choice
        return url
    reporter.report(Note(f"of the builds of {name} those for {wanted} (--torch-backend changes it)"))
    links = (link for link in links_of(f"{address}{name}/") if link.version is not None)
    chosen = (link.tag() for link in links if link.version is not None and link.version.local in (wanted, None))
    return written(workspace, f"{url} {wanted}", name, chosen)


def links_of(page: str) -> tuple[Link, ...]:
    """Return the links of a page. Raises `NoNetwork` and `IndexFault`."""
    with tempfile.TemporaryDirectory(prefix="harness-page-") as folder:
        path = Path(folder, "page.html")
        download(read_pip_settings(), page, path, "")
        text = path.read_text(encoding="utf-8", errors="replace")
    return tuple(
        Link(
            html.unescape(found["file"]),
            urljoin(page, html.unescape(found["href"].strip("\"'"))),
            f"{found['before'].rstrip()}{found['after'].rstrip()}",
        )
        for found in _LINK.finditer(text)
    )


def written(workspace: Workspace, key: str, name: str, links: Iterable[str]) -> str:
    """Write a page of an index in the cache; returns the address of the index."""
    folder = workspace.clones / "builds" / hashlib.sha256(key.encode()).hexdigest()[:20]
    write_page(folder, name, links)
    return folder.as_uri()


def write_page(folder: Path, name: str, links: Iterable[str]) -> None:
    """Write the page of a project to the folder of an index."""
    page = "\n".join(("<!DOCTYPE html><html><body>", *links, "</body></html>\n"))
    write_whole(folder / name / "index.html", page.encode())


def with_version(wheel: Path, version: str, target: Path) -> Path:
    """Write a wheel again with another version into a folder; what its modules say of their version stays."""
    project, _, *rest = wheel.name.split("-")
    target.mkdir(exist_ok=True)
    path = target / "-".join((project, version, *rest))
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        old = next(name.partition(".dist-info/")[0] for name in source.namelist() if ".dist-info/" in name)
        new = f"{project}-{version}"
        folder = re.compile(rf"^{re.escape(old)}(?=\.(?:dist-info|data)/)", re.MULTILINE)
        for entry in source.infolist():
            data = source.read(entry)
            if entry.filename == f"{old}.dist-info/METADATA":
                data = re.sub(rb"(?m)^Version: .*$", b"Version: " + version.encode(), data, count=1)
            elif entry.filename == f"{old}.dist-info/RECORD":
                text = folder.sub(new, data.decode())
                data = re.sub(r"(?m)^([^,\n]*/METADATA),.*$", r"\1,,", text).encode()
            entry.filename = folder.sub(new, entry.filename)
            packed.writestr(entry, data)
    return path
