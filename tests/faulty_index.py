"""A local package index that misbehaves like real ones and the proxies in front of them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from attrs import define
from wheelhouse import Wheelhouse

PORTAL = (
    b'<html><head><title>Welcome</title></head><body><form action="/in"><a href="/help">help</a></form></body></html>'
)
JSON = "application/vnd.pypi.simple.v1+json"
DATE = "2024-01-01T00:00:00Z"


@define
class FaultyIndex:
    """Serves the wheels of a house; `pages` and `files` name their current faults, "" for none."""

    house: Wheelhouse
    url: str = ""
    pages: str = ""
    files: str = ""

    def well(self) -> None:
        """Stop misbehaving."""
        self.pages = self.files = ""

    def page(self, name: str) -> dict[str, Any] | None:
        """The page of a project in the form of PEP 691."""
        wheels = sorted((self.house.root / "files").glob(f"{name}-*.whl"))
        files = [
            {
                "filename": path.name,
                "url": f"/files/{path.name}",
                "hashes": {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()},
                "size": path.stat().st_size,
                "upload-time": DATE,
                "yanked": False,
            }
            for path in wheels
        ]
        versions = sorted({path.name.split("-")[1] for path in wheels})
        return {"meta": {"api-version": "1.1"}, "name": name, "versions": versions, "files": files} if wheels else None

    @contextlib.contextmanager
    def served(self) -> Iterator[FaultyIndex]:
        """Serve it for a while."""
        handler = type("Handler", (_Handler,), {"index": self})
        with _Server(("127.0.0.1", 0), handler) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
            thread.start()
            self.url = f"http://127.0.0.1:{server.server_address[1]}/simple"
            try:
                yield self
            finally:
                server.shutdown()
                thread.join()


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Ignore clients that disconnect."""


class _Handler(BaseHTTPRequestHandler):
    index: FaultyIndex
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        if not self.path.startswith(("/simple/", "/files/")):
            self.send(200, "text/html", PORTAL)
            return
        is_page, name = self.path.startswith("/simple/"), self.path.strip("/").split("/")[-1]
        fault = self.index.pages if is_page else self.index.files
        if self.fails(fault):
            return
        page = self.index.page(name) if is_page else None
        path = self.index.house.root / "files" / name
        if page is None and (is_page or not path.is_file()):
            self.send(404, "text/plain", b"")
        elif page is not None:
            self.send_page(page, fault)
        else:
            self.send_file(path, fault)

    def fails(self, fault: str) -> bool:
        if fault == "portal":
            self.send(200, "text/html", PORTAL)
        elif fault == "redirect to a portal":
            self.send(302, "text/html", b"", Location="/login")
        elif fault == "redirect loop":
            self.send(302, "text/html", b"", Location=self.path)
        elif fault == "empty":
            self.send(200, "text/html", b"")
        elif fault.isdigit():
            self.send(int(fault), "text/html", b"no")
        else:
            return False
        return True

    def send_page(self, page: dict[str, Any], fault: str) -> None:
        if fault == "future version":
            page = {**page, "meta": {"api-version": "2.0"}}
        if fault == "wrong hash":
            for file in page["files"]:
                file["hashes"] = {"sha256": hashlib.sha256(file["filename"].encode()).hexdigest()}
        others = {
            "a list": b"[1]",
            "null": b"null",
            "deep": b'{"files":' + b"[" * 100_000,
            "other types": b'{"meta":5}',
        }
        body = others.get(fault) or json.dumps(page).encode()
        if fault == "half":
            body = body[: len(body) // 2]
        self.send(200, "text/plain" if fault == "plain text" else JSON, body, is_cut=fault == "cut")

    def send_file(self, path: Path, fault: str) -> None:
        body = path.read_bytes()
        if fault == "truncated":
            body = body[: len(body) // 2]
        if fault == "another":
            body = body + b"\n"
        self.send(200, "application/octet-stream", body, is_cut=fault == "cut")

    def send(self, code: int, kind: str, body: bytes, *, is_cut: bool = False, **headers: str) -> None:
        self.send_response(code)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if is_cut else body)
        self.close_connection = self.close_connection or is_cut
