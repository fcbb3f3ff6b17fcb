"""Runs a command under the guard; none of its processes outlives the call or the harness."""

from __future__ import annotations

import atexit
import contextlib
import enum
import errno
import json
import os
import select
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from harness.errors import HarnessFault
from harness.run.launch import ForkedGuard, GuardServer, Limits, fork_guard, guard_request

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from contextlib import AbstractContextManager


GUARD = Path(__file__).with_name("guard.py")


class ZygoteFailed(Exception):
    """The zygote could not be started or must not be forked; the message says why."""


class GuardFailed(Exception):
    """The guard could not do its work; the message says why."""


_POLL_MS = 100
_SILENT_S = 30.0  # the guard stops a run at its time limit and reports well before this
_STRAYS_END_WITHIN_S = 10.0
_STARTS = 2
_servers: dict[tuple[int, Path], GuardServer] = {}
_starting = threading.Lock()


class Cancelled(Exception):
    """The run was cancelled; all its processes have ended and nothing was observed."""


_NEVER = threading.Event()
# Set when what a thread does is no longer wanted. All that waits looks at it, and raises `Cancelled`.
_unwanted: ContextVar[threading.Event] = ContextVar("unwanted", default=_NEVER)


@contextlib.contextmanager
def cancelled_by(event: threading.Event) -> Iterator[None]:
    """Let an event cancel what this thread does in the context."""
    token = _unwanted.set(event)
    try:
        yield
    finally:
        _unwanted.reset(token)


def pause(seconds: float = 0.0) -> None:
    """Wait some seconds, or until this thread's work is cancelled: raises `Cancelled`."""
    if _unwanted.get().wait(seconds):
        raise Cancelled


class NoSandbox(Exception):
    """The sandbox could not be created; the message is bubblewrap's."""


class EndReason(enum.StrEnum):
    """Why a process tree ended."""

    ENDED = "ended"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    OUTPUT = "output"
    LOST = "lost"  # its guard was killed, usually by a process of the tree


@frozen
class Ended:
    """How a command ended.

    `returncode` is negative for a signal, as in `subprocess`. `seconds` is the duration. `peak_memory` is in bytes, for
    the whole tree. `oom_killed` says that the kernel's OOM killer ran during the run. `output` is the
    number of bytes printed.
    """

    returncode: int
    reason: EndReason
    seconds: float
    peak_memory: int
    oom_killed: bool = False
    output: int = 0

    @property
    def signal(self) -> str | None:
        """The name of the signal that ended the command ("SIGSEGV"), or None."""
        if self.returncode >= 0:
            return None
        try:
            return signal.Signals(-self.returncode).name
        except ValueError:  # a real-time signal has no name
            return f"signal {-self.returncode}"


def run_guarded(
    argv: Sequence[str | Path],
    *,
    env: Mapping[str, str],
    cwd: Path,
    limits: Limits,
    output: Path,
    sandbox: Sequence[str] = (),
    forked: Callable[[], AbstractContextManager[ForkedGuard]] | None = None,
) -> Ended:
    """Run a command within limits until it ends, and append its output to `output`.

    All its processes have ended on return. `sandbox` is the command that creates a sandbox and starts the rest of its
    command line in it (see sandbox.py). `forked` forks a guard from a zygote.

    Raises `OSError` if the command can't be started or the log can't be written, `NoSandbox` if the sandbox can't be
    created, `Cancelled` if the run is cancelled, and `HarnessFault` if the guard itself fails.
    """
    command = [str(argument) for argument in argv]
    request = guard_request(command, limits, env=env, cwd=cwd, output=output, sandbox=sandbox)
    begun = time.monotonic()
    with forked() if forked is not None else _guard() as guard:
        answer = _converse(guard.channel, request, begun + limits.wall_s + _SILENT_S)
        if answer is None and forked is None:
            guard.kill()  # stopped by a signal, it would not notice the end of its context
    if not answer and forked is not None:
        raise ZygoteFailed("a fork died or hung")
    if not answer:
        end_strays(env)
        return Ended(-signal.SIGKILL, EndReason.LOST, time.monotonic() - begun, peak_memory=0)
    try:
        return _ended(answer, command, output)
    except GuardFailed as error:
        if forked is not None:
            raise ZygoteFailed(f"a fork died: {error}") from None
        raise HarnessFault(f"the guard of {command[0]} failed: {error}") from None


@contextlib.contextmanager
def _guard() -> Iterator[ForkedGuard]:
    """Fork a guard, which ends with the context. Raises `HarnessFault` if that fails."""
    guard = _forked_guard()
    with guard.channel:
        try:
            yield guard
        finally:
            guard.end()


def _forked_guard() -> ForkedGuard:
    own = os.getpid(), GUARD  # a fork of this process has servers of its own
    with _starting:
        for _ in range(_STARTS):  # a run may have ended the server
            server = _servers[own] = _servers.get(own) or GuardServer(GUARD)
            try:
                return fork_guard(server.control)
            except (EOFError, OSError):
                _servers.pop(own).end()
    raise HarnessFault("no guard can be forked")


@atexit.register
def _end_servers() -> None:
    for (pid, _), server in _servers.items():
        if pid == os.getpid():
            server.end()


def _converse(channel: socket.socket, request: bytes, deadline: float) -> bytes | None:
    """Send a request to a guard and return its answer; None if there is none at the deadline."""
    with contextlib.suppress(ConnectionError):  # the guard has ended; its answer is in the channel
        channel.sendall(request)
    answer = b""
    poller = select.poll()  # unlike select, it accepts any file descriptor
    poller.register(channel, select.POLLIN)
    while True:
        if _unwanted.get().is_set():
            with contextlib.suppress(ConnectionError):  # it may have just ended
                channel.send(b"c")
        if time.monotonic() > deadline:  # a process stopped by a signal does not answer, but can be killed
            return None
        if not poller.poll(_POLL_MS):
            continue
        piece = b""
        with contextlib.suppress(ConnectionResetError):  # the guard ended before it read everything
            piece = channel.recv(1 << 16)
        if not piece:
            return answer
        answer += piece


def _ended(answer: bytes, argv: Sequence[str], log: Path) -> Ended:
    try:
        result: dict[str, Any] = json.loads(answer)
    except ValueError:
        raise GuardFailed(answer.decode(errors="replace").strip()) from None
    problem = result.get("problem")
    if isinstance(problem, str):
        raise GuardFailed(problem)
    if problem is not None:
        raise OSError(problem, os.strerror(problem), argv[0])
    if log_error := result.pop("log_error", 0):
        raise OSError(log_error, os.strerror(log_error), str(log))
    if result["reason"] == "unsandboxed":
        words = log.read_text(errors="replace").strip().rpartition("\n")[2]
        if "execvp" in words:
            raise FileNotFoundError(errno.ENOENT, words.rpartition(": ")[2], argv[0])
        raise NoSandbox(words or "no error message")
    if result["reason"] not in set(EndReason):
        raise Cancelled
    return ended_from(result)


def ended_from(answer: Mapping[str, Any]) -> Ended:
    """Parse the guard's answer. Raises `ValueError` or `TypeError` if it is invalid."""
    known = {name: value for name, value in answer.items() if name != "log_error"}
    return Ended(**{**known, "reason": EndReason(answer["reason"])})


def end_strays(env: Mapping[str, str]) -> None:
    """Kill the processes of a run whose guard was killed; they have its HOME and TMPDIR."""
    import psutil  # type: ignore[import-untyped,unused-ignore]  # imported late: most runs leave none

    marks = {(name, env.get(name)) for name in ("HOME", "TMPDIR")}
    until = time.monotonic() + _STRAYS_END_WITHIN_S
    while all(value for _, value in marks) and time.monotonic() < until:
        processes = psutil.process_iter(["environ"])  # None for those of other users
        strays = [
            process
            for process in processes
            if marks <= (process.info["environ"] or {}).items() and process.pid != os.getpid()
        ]
        if not strays:
            return
        for stray in strays:
            with contextlib.suppress(psutil.Error):
                stray.kill()
        time.sleep(0.01)
