"""Forks probes from a process with preloaded modules: the harness's side of `inside/zygote.py`."""

from __future__ import annotations

import array
import contextlib
import json
import os
import select
import socket
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from io import FileIO
from pathlib import Path
from typing import Any

from attrs import define, field

_ZYGOTE = Path(__file__).with_name("inside") / "zygote.py"
_GUARD = Path(__file__).with_name("guard.py")
_ENDS_WITHIN_S = 10.0
_FORKS_WITHIN_S = 10.0


class ZygoteFailed(Exception):
    """The zygote could not be started or must not be forked; the message says why."""


@define
class ForkedGuard:
    """The guard of a forked run, connected by two pipes. It has ended when `stdout` reaches end of file."""

    stdin: FileIO
    stdout: FileIO
    returncode: int = 0

    def wait(self, timeout: float | None = None) -> int:  # noqa: ARG002 - the signature of subprocess
        """Return at once: it is not a child of this process, so only the end of its output shows that it has ended."""
        return self.returncode

    def kill(self) -> None:
        """Close its input, which makes it kill its processes and exit."""
        with contextlib.suppress(OSError):
            self.stdin.close()


@define
class Zygote:
    """A running zygote; `close` stops it. A lock serialises calls of `guard` from several threads."""

    _process: subprocess.Popen[bytes]
    _control: socket.socket
    _folder: tempfile.TemporaryDirectory[str]
    _lock: threading.Lock = field(factory=threading.Lock)

    @classmethod
    def start(
        cls,
        python: Path,
        modules: Sequence[str],
        *,
        env: Mapping[str, str],
        scratch_root: Path,
        emulation: Mapping[str, Any] | None = None,
        sandbox: Sequence[str] = (),
        timeout: float = 300.0,
    ) -> Zygote:
        """Start an interpreter and import `modules` in it, in this order; `timeout` is in seconds.

        Raises `ZygoteFailed` if that fails, or if an import started a thread or initialised CUDA.
        """
        with contextlib.ExitStack() as undo:
            folder = tempfile.TemporaryDirectory(prefix="z", dir=scratch_root)
            undo.callback(folder.cleanup)
            place = Path(folder.name)
            (place / "script").mkdir()
            order = {
                "modules": list(modules),
                "emulation": dict(emulation) if emulation else None,
                "guard": str(_GUARD),
                "script_folder": str(place / "script"),
            }
            (place / "order.json").write_text(json.dumps(order), encoding="utf-8")
            ours, theirs = socket.socketpair()
            with theirs, (place / "log").open("wb") as log:
                process = subprocess.Popen(
                    [*sandbox, str(python), str(_ZYGOTE), str(place / "order.json")],
                    stdin=theirs.fileno(),
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=place,
                    env=dict(env),
                    start_new_session=True,
                )
            if problem := _answer(ours, timeout):
                _end(process, ours)
                words = (place / "log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
                raise ZygoteFailed(": ".join([problem, *words[-1:]]))
            undo.pop_all()
            return cls(process, ours, folder)

    def guard(self) -> ForkedGuard:
        """Fork a guard that waits for the request of a run. Raises `ZygoteFailed` if it can't be forked."""
        order_out, order_in = os.pipe()
        report_out, report_in = os.pipe()
        try:
            with self._lock:
                pipes = array.array("i", [order_out, report_in])
                self._control.sendmsg([b"f"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, pipes)])
        except OSError as error:
            for pipe in (order_in, report_out):
                os.close(pipe)
            raise ZygoteFailed(f"the zygote process has ended: {error.strerror}") from error
        finally:
            os.close(order_out)
            os.close(report_in)
        guard = ForkedGuard(FileIO(order_in, "wb"), FileIO(report_out, "rb"))
        if problem := _fork_problem(guard.stdout):
            guard.kill()
            guard.stdout.close()
            raise ZygoteFailed(problem)
        return guard

    def close(self) -> None:
        """Stop the zygote and remove its folder."""
        _end(self._process, self._control)
        self._folder.cleanup()


def _fork_problem(report: FileIO) -> str:
    """Wait for the first byte of a forked guard; returns why there is none, "" if it has come."""
    poller = select.poll()
    poller.register(report, select.POLLIN)
    if not poller.poll(_FORKS_WITHIN_S * 1000):
        return f"a fork hung: it did not start within {_FORKS_WITHIN_S:g} s"
    return "" if report.read(1) else "a fork died before it started"


def _answer(control: socket.socket, timeout: float) -> str:
    """Wait `timeout` seconds for the report on the imports; returns why the zygote can't be forked, "" if it can."""
    control.settimeout(timeout)
    said = b""
    try:
        while not said.endswith(b"\n"):
            piece = control.recv(1 << 16)
            if not piece:
                return "an import ended the process"
            said += piece
        report = json.loads(said)
        if report["threads"]:
            return f"an import started threads ({', '.join(report['threads'][:3])}), which a fork would not have"
        return "an import initialised CUDA, which does not survive a fork" if report["device"] else ""
    except TimeoutError:
        return f"the imports timed out after {timeout:g} s"
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"its answer can't be read: {error}"
    finally:
        control.settimeout(None)


def _end(process: subprocess.Popen[bytes], control: socket.socket) -> None:
    control.close()
    try:
        process.wait(_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
