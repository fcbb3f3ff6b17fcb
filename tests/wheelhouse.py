"""Tiny handmade wheels and a local package index of them, so that real uv works quickly and without network.

A `Wheelhouse` is a folder with a simple index of `file://` pages (PEP 503 with upload times) and a find-links folder.
Wheels are reproducible byte for byte.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import html
import io
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import attrs
from attrs import define, field, frozen

_WHEN = (2020, 1, 1, 0, 0, 0)


@frozen
class Wheel:
    """The content of a wheel; `files` maps paths to their content, `tag` is its compatibility tag."""

    name: str
    version: str
    files: dict[str, str | bytes] = field(factory=dict)
    requires: tuple[str, ...] = ()
    requires_python: str | None = None
    tag: str = "py3-none-any"
    source_url: str | None = None

    @property
    def filename(self) -> str:
        """The file name for its name, version and tag."""
        return f"{self.name.replace('-', '_')}-{self.version}-{self.tag}.whl"

    @property
    def dist_info(self) -> str:
        """The folder of its metadata."""
        return f"{self.name.replace('-', '_')}-{self.version}.dist-info"

    def metadata(self) -> str:
        """The text of METADATA."""
        lines = ["Metadata-Version: 2.1", f"Name: {self.name}", f"Version: {self.version}"]
        lines += [f"Requires-Dist: {requirement}" for requirement in self.requires]
        if self.requires_python:
            lines.append(f"Requires-Python: {self.requires_python}")
        if self.source_url:
            lines.append(f"Project-URL: Source, {self.source_url}")
        return "\n".join(lines) + "\n"

    def write(self, folder: Path) -> Path:
        """Write the wheel into a folder."""
        files = {
            **{path: text.encode() if isinstance(text, str) else text for path, text in self.files.items()},
            f"{self.dist_info}/METADATA": self.metadata().encode(),
            f"{self.dist_info}/WHEEL": (
                f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {self.tag}\n".encode()
            ),
        }
        rows = [f"{path},sha256={_urlsafe(data)},{len(data)}" for path, data in files.items()]
        record = f"{self.dist_info}/RECORD"
        files[record] = ("\n".join([*rows, f"{record},,"]) + "\n").encode()
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / self.filename
        with zipfile.ZipFile(target, "w") as packed:
            for path, data in files.items():
                packed.writestr(zipfile.ZipInfo(path, _WHEN), data)
        return target


def _urlsafe(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


@frozen
class _Link:
    filename: str
    sha256: str
    uploaded: str | None
    yanked: str | None
    requires_python: str | None
    metadata_sha256: str | None

    def anchor(self) -> str:
        """The link in the form of a simple index page."""
        attributes = {
            "href": f"../../files/{self.filename}#sha256={self.sha256}",
            "data-upload-time": self.uploaded,
            "data-yanked": self.yanked,
            "data-requires-python": self.requires_python,
            "data-core-metadata": self.metadata_sha256 and f"sha256={self.metadata_sha256}",
        }
        told = " ".join(f'{key}="{html.escape(value)}"' for key, value in attributes.items() if value is not None)
        return f"<a {told}>{self.filename}</a><br/>"


@define
class Wheelhouse:
    """A local index below `root`: `add` wheels, then point pip's or uv's settings at `url` or `links`."""

    root: Path
    _pages: dict[str, list[_Link]] = field(factory=dict, init=False)

    @property
    def url(self) -> str:
        """The address of the simple index."""
        return f"file://{self.root / 'simple'}"

    @property
    def links(self) -> Path:
        """The find-links folder."""
        return self.root / "links"

    @property
    def environ(self) -> dict[str, str]:
        """Settings that make uv and the harness use only this index."""
        return {"UV_DEFAULT_INDEX": self.url}

    def add(
        self,
        name: str,
        version: str,
        *,
        files: dict[str, str] | None = None,
        requires: tuple[str, ...] = (),
        requires_python: str | None = None,
        tag: str = "py3-none-any",
        uploaded: str | None = "2024-01-01T12:00:00Z",
        yanked: str | None = None,
        damaged: bool = False,
        source_url: str | None = None,
    ) -> Path:
        """Add a wheel to the index. A `damaged` one does not match the hash on the page, so installing it fails."""
        wheel = Wheel(name, version, files or {}, requires, requires_python, tag, source_url)
        path = wheel.write(self.root / "files")
        metadata = wheel.metadata()
        path.with_name(f"{path.name}.metadata").write_text(metadata, encoding="utf-8")
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if damaged:
            attrs.evolve(wheel, files={**wheel.files, "added_later.py": ""}).write(path.parent)
        link = _Link(
            path.name, digest, uploaded, yanked, requires_python, hashlib.sha256(metadata.encode()).hexdigest()
        )
        self._put(name, link)
        return path

    def add_sdist(
        self,
        name: str,
        version: str,
        *,
        files: dict[str, str] | None = None,
        requires: tuple[str, ...] = (),
        build_requires: tuple[str, ...] = (),
        backend: str = "",
        uploaded: str | None = "2024-01-01T12:00:00Z",
    ) -> None:
        """Add a source distribution, without files not a real one; `backend` is code that its build runs first.

        A build appends a line to `built.log` in the folder of the index, if it can.
        """
        path = self.root / "files" / f"{name}-{version}.tar.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"not unpacked by anyone")
        if files is not None:
            wheel = Wheel(name, version, files, requires)
            content = base64.b64encode(wheel.write(self.root / "prebuilt").read_bytes()).decode()
            log, line = str(self.root / "built.log"), f"{path.name}\n"
            code = (
                f"import base64, contextlib, pathlib\n{backend}\n"
                "def build_wheel(folder, settings=None, metadata=None):\n"
                f"    with contextlib.suppress(OSError), open({log!r}, 'a') as log:\n"
                f"        log.write({line!r})\n"
                f"    pathlib.Path(folder, {wheel.filename!r}).write_bytes(base64.b64decode({content!r}))\n"
                f"    return {wheel.filename!r}\n"
            )
            settings = f"requires = {list(build_requires)!r}\nbuild-backend = 'own_backend'\nbackend-path = ['.']\n"
            inside = {
                "PKG-INFO": wheel.metadata(),
                "pyproject.toml": f"[build-system]\n{settings}",
                "own_backend.py": code,
            }
            with tarfile.open(path, "w:gz") as packed:
                for file, text in inside.items():
                    info = tarfile.TarInfo(f"{name}-{version}/{file}")
                    info.size = len(text.encode())
                    packed.addfile(info, io.BytesIO(text.encode()))
        self._put(name, _Link(path.name, hashlib.sha256(path.read_bytes()).hexdigest(), uploaded, None, None, None))

    def add_link(self, name: str, version: str, **more: object) -> Path:
        """Add a wheel to the find-links folder only, where nothing has an upload time."""
        return Wheel(name, version, **more).write(self.links)  # type: ignore[arg-type]

    def withdraw(self, name: str, version: str) -> None:
        """Remove all files of a version from the page and the disk."""
        gone = [kept for kept in self._pages[name] if kept.filename.split("-")[1].removesuffix(".tar.gz") == version]
        self._pages[name] = [kept for kept in self._pages[name] if kept not in gone]
        for link in gone:
            (self.root / "files" / link.filename).unlink()
        self._write_page(name)

    def _put(self, name: str, link: _Link) -> None:
        links = self._pages.setdefault(name, [])
        links[:] = [kept for kept in links if kept.filename != link.filename] + [link]
        self._write_page(name)

    def _write_page(self, name: str) -> None:
        page = self.root / "simple" / name.replace("_", "-") / "index.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        anchors = "\n".join(kept.anchor() for kept in self._pages[name])
        page.write_text(f"<!DOCTYPE html><html><body>\n{anchors}\n</body></html>\n", encoding="utf-8")

    @contextlib.contextmanager
    def served(self) -> Iterator[str]:
        """Serve the index by HTTP for a while; the address is that of the simple index."""
        with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Silent, directory=str(self.root))) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
            thread.start()
            try:
                yield f"http://127.0.0.1:{server.server_address[1]}/simple"
            finally:
                server.shutdown()
                thread.join()


class _Silent(SimpleHTTPRequestHandler):
    """Serves files; a page that ends in .json has the JSON form of the index (PEP 691)."""

    protocol_version = "HTTP/1.0"

    def send_head(self) -> object:
        page = Path(self.translate_path(self.path)) / "index.json"
        if page.is_file():
            body = page.read_bytes()
            self.send_response(200)
            self.send_header("Content-Type", "application/vnd.pypi.simple.v1+json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            return page.open("rb")
        return super().send_head()

    def log_message(self, *words: object) -> None:
        """Say nothing."""


def free_port_url() -> str:
    """An address on this machine without a listener; no test gets this port for a server of its own."""
    return "http://127.0.0.1:9/simple"
