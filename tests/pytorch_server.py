"""PyTorch's own server of builds, on this machine: its name, its folders, its pages without upload times, and TLS.

uv has the address built in, so a proxy leads each connection to this server, whose certificate a new authority signed.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

NAME = "download.pytorch.org"
_PIECE = 1 << 16


@contextlib.contextmanager
def pytorch_server(root: Path, wheels: Path, asked: list[str]) -> Iterator[dict[str, str]]:
    """Serve wheels as https://download.pytorch.org/whl/cpu/ does; yields the variables that lead uv there.

    `asked` gets the paths that were requested.
    """
    pages: dict[str, list[str]] = {}
    for wheel in sorted(wheels.glob("*.whl")):
        (root / "whl" / "cpu").mkdir(parents=True, exist_ok=True)
        shutil.copy2(wheel, root / "whl" / "cpu" / wheel.name)
        link = f"/whl/cpu/{wheel.name.replace('+', '%2B')}#sha256={hashlib.sha256(wheel.read_bytes()).hexdigest()}"
        pages.setdefault(wheel.name.partition("-")[0], []).append(f'<a href="{link}">{wheel.name}</a><br/>')
    for project, lines in pages.items():
        page = root / "whl" / "cpu" / project / "index.html"
        page.parent.mkdir()
        page.write_text("<!DOCTYPE html>\n<html><body>\n" + "\n".join(lines) + "\n</body></html>\n", encoding="utf-8")
    authority, certificate = _certificates(root / "tls")

    class Files(SimpleHTTPRequestHandler):
        def send_head(self) -> object:
            asked.append(self.path)
            return super().send_head()

        def log_message(self, *words: object) -> None:
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with contextlib.ExitStack() as stack:
        files = ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=str(root)))
        files.socket = context.wrap_socket(files.socket, server_side=True)
        proxy = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Tunnel, files.server_address[1]))
        for server in (files, proxy):
            stack.enter_context(server)
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
            thread.start()
            stack.callback(thread.join)
            stack.callback(server.shutdown)
        yield {"HTTPS_PROXY": f"http://127.0.0.1:{proxy.server_address[1]}", "SSL_CERT_FILE": str(authority)}


class _Tunnel(BaseHTTPRequestHandler):
    """Connects to one port whatever is asked for, if that is PyTorch's server."""

    def __init__(self, port: int, *more: object) -> None:
        self._port = port
        super().__init__(*more)  # type: ignore[arg-type]

    def do_CONNECT(self) -> None:
        if self.path != f"{NAME}:443":
            self.send_error(403)
            return
        with socket.create_connection(("127.0.0.1", self._port)) as other:
            self.send_response(200)
            self.end_headers()
            back = threading.Thread(target=_pass, args=(other, self.connection))
            back.start()
            _pass(self.connection, other)
            back.join()

    def log_message(self, *words: object) -> None:
        pass


def _pass(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(_PIECE):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)


def _certificates(folder: Path) -> tuple[Path, Path]:
    """A new authority, and a certificate with its key for PyTorch's server."""
    folder.mkdir(parents=True)

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    new = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj")
    openssl(*new, "/CN=tests", "-keyout", "ca.key", "-out", "ca.pem")
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "basicConstraints=CA:FALSE")
    named = ("-addext", f"subjectAltName=DNS:{NAME}")
    openssl(*new, f"/CN={NAME}", *signed, *named, "-keyout", "own.key", "-out", "own.pem")
    both = folder / "both.pem"
    both.write_text((folder / "own.key").read_text() + (folder / "own.pem").read_text())
    return folder / "ca.pem", both
