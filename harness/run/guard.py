"""Holds one process tree under limits and ends it whole, also when the harness dies by kill -9.

Run as `python -I -S guard.py`, standard library only. It reads one JSON line, the order, from stdin and watches stdin
from then on: end of file means that the harness is gone, a byte that it cancels. Its JSON line on stdout tells the end.
"""

# Importing pathlib or typing would cost as much time as all else here.
# ruff: noqa: PTH101, PTH110, PTH114, PTH118, PTH123, PTH208

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SAMPLE_S = 0.1
_SAMPLE_SHARE = 20  # a sample may cost a twentieth of the time between two
_GIVE_UP_S = 10.0  # a process in uninterruptible sleep can't be killed
_LAST_WORDS_S = 1.0
_LINUX = sys.platform.startswith("linux")
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # prctl(2)
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Tree:
    """The descendants of this process, however they got detached from their parents."""

    def __init__(self) -> None:
        self._walk = os.path.exists(f"/proc/self/task/{os.getpid()}/children")
        self._groups: set[int] = set()

    def members(self) -> list[int]:
        """Process ids, this process left out."""
        return self._members_by_walk() if self._walk else list(self._members_by_ps())

    def memory(self, limit: int) -> int:
        """Bytes in use; exact about shared pages only where the limit would be broken without that."""
        if not self._walk:
            return sum(self._members_by_ps().values())
        resident, private, shared, members = 0, 0, 0, self._members_by_walk()
        for pid in members:
            try:
                fields = _read(f"/proc/{pid}/statm").split()
            except OSError:
                continue
            all_of_it, of_files = int(fields[1]) * _PAGE, int(fields[2]) * _PAGE
            resident += all_of_it
            private += all_of_it - of_files
            shared = max(shared, of_files)
        if resident <= limit:
            return min(resident, private + shared)
        # Forked workers share most of their pages, and counting them once costs milliseconds per process.
        return sum(_proportional_memory(pid) for pid in members)

    def _members_by_walk(self) -> list[int]:
        members: list[int] = []
        parents = [os.getpid()]
        while parents:
            parent = parents.pop()
            try:
                for thread in os.listdir(f"/proc/{parent}/task"):
                    children = [int(pid) for pid in _read(f"/proc/{parent}/task/{thread}/children").split()]
                    members += children
                    parents += children
            except OSError:  # it ended meanwhile
                continue
        return members

    def _members_by_ps(self) -> dict[int, int]:
        """Where there is no /proc: descendants, and whoever is in a process group that one of them was in."""
        import subprocess

        listing = subprocess.run(
            ["ps", "-axo", "pid=,ppid=,pgid=,rss="], capture_output=True, text=True, check=False
        ).stdout
        rows = [tuple(map(int, line.split())) for line in listing.splitlines()]
        family = {os.getpid()}
        size = 0
        while size != len(family):
            size = len(family)
            family |= {pid for pid, parent, group, _ in rows if parent in family or group in self._groups}
            self._groups |= {group for pid, _, group, _ in rows if pid in family} - {os.getpgrp(), 0, 1}
        return {pid: rss * 1024 for pid, _, _, rss in rows if pid in family and pid != os.getpid()}


class Guard:
    """One order carried out: start, watch, end."""

    def __init__(self, order: dict[str, Any]) -> None:
        self._order = order
        self._tree = Tree()
        self._peak = 0
        self._main = 0
        self._status: int | None = None
        self._ended = 0.0
        self._cancelled = False
        self._libc = ctypes.CDLL(None, use_errno=True) if _LINUX else None

    def run(self) -> dict[str, Any]:
        """Start the command, wait for its end or bring it about, and leave none of its processes."""
        if self._libc is not None:
            self._libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, self._on_terminate)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._wake, wake_end = os.pipe()
        for end in (self._wake, wake_end):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake_end, warn_on_full_buffer=False)
        oom_kills = _oom_kills()
        begun = time.monotonic()
        problem = self._start()
        if problem:
            return {"problem": problem}
        reason = self._watch(begun + self._order["wall_s"], self._order["memory"])
        if reason == "timeout":
            self._ask_for_tracebacks()
        left = self._end_all()
        code = os.waitstatus_to_exitcode(self._status) if self._status is not None else -signal.SIGKILL
        return {
            "returncode": code,
            "reason": reason,
            "seconds": (self._ended or time.monotonic()) - begun,
            "peak_memory": self._peak,
            "oom_killed": _oom_kills() > oom_kills,
            "left": left,
        }

    def _on_terminate(self, *_: object) -> None:
        self._cancelled = True

    def _start(self) -> int:
        """Start the command; the errno if it can't be started, else 0."""
        order = self._order
        told, tell = os.pipe()
        self._main = os.fork()
        if self._main == 0:
            try:
                self._become(order)
            except OSError as error:
                os.write(tell, str(error.errno or 1).encode())
            finally:
                os._exit(127)
        os.close(tell)
        problem = os.read(told, 16)
        os.close(told)
        if problem:
            os.waitpid(self._main, 0)
        return int(problem or 0)

    def _become(self, order: dict[str, Any]) -> None:
        os.setsid()
        if self._libc is not None:
            self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            # When the machine runs out of memory, the kernel is to take the probe and not the harness.
            with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
                file.write("500")
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # Ignored signals stay ignored through exec; Python itself ignores the first two.
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        output = os.open(order["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(order["cwd"])
        os.execvpe(order["argv"][0], order["argv"], order["env"])  # noqa: S606 - a shell is not wanted

    def _watch(self, deadline: float, limit: int) -> str:
        poller = select.poll()
        poller.register(0, select.POLLIN)
        poller.register(self._wake, select.POLLIN)
        sample_at = time.monotonic() + _SAMPLE_S / 2
        while True:
            now = time.monotonic()
            if now >= deadline:
                return "timeout"
            ready = {fd for fd, _ in poller.poll(max(0.0, min(deadline, sample_at) - now) * 1000 + 1)}
            if self._wake in ready:
                os.read(self._wake, 512)
            self._reap()
            if self._status is not None:
                return "ended"
            if 0 in ready:
                return "cancelled" if os.read(0, 1) else "orphaned"
            if self._cancelled:
                return "cancelled"
            now = time.monotonic()
            if now >= sample_at:
                used = self._tree.memory(limit)
                self._peak = max(self._peak, used)
                if used > limit:
                    return "memory"
                cost = time.monotonic() - now
                sample_at = now + max(_SAMPLE_S, cost * _SAMPLE_SHARE)

    def _reap(self) -> bool:
        """Collect what has ended; whether any child is left."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._main:
                self._status, self._ended = status, time.monotonic()
                self._peak = max(self._peak, usage.ru_maxrss * (1024 if _LINUX else 1))

    def _ask_for_tracebacks(self) -> None:
        """Abort the main process first: Python's faulthandler then writes where every thread stood."""
        os.kill(self._main, signal.SIGABRT)
        until = time.monotonic() + _LAST_WORDS_S
        while self._status is None and time.monotonic() < until:
            select.select([self._wake], [], [], 0.05)
            self._reap()

    def _end_all(self) -> int:
        """Kill until none is left; the number of processes that would not die."""
        until = time.monotonic() + _GIVE_UP_S
        while True:
            # An orphan becomes a child of this subreaper, so that no child means no descendant.
            if not self._reap() and _LINUX:
                return 0
            members = self._tree.members()
            if not members or time.monotonic() > until:
                return len(members)
            for pid in members:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            select.select([self._wake], [], [], 0.005)


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read()


def _proportional_memory(pid: int) -> int:
    try:
        for line in _read(f"/proc/{pid}/smaps_rollup").splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
        return int(_read(f"/proc/{pid}/statm").split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def _oom_kills() -> int:
    """How often the kernel's OOM killer has struck since boot, 0 where that can't be known."""
    with contextlib.suppress(OSError):
        for line in _read("/proc/vmstat").splitlines():
            if line.startswith(b"oom_kill "):
                return int(line.split()[1])
    return 0


def _remove(folder: str) -> None:
    import shutil

    for parent, names, _ in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            if not os.path.islink(path):
                with contextlib.suppress(OSError):
                    os.chmod(path, 0o700)
    shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Read the order, carry it out, and tell."""
    line = b""
    while b"\n" not in line:
        piece = os.read(0, 1 << 16)
        if not piece:
            return
        line += piece
    line, _, cancels = line.partition(b"\n")
    order = json.loads(line)
    # Both may come in one piece, where the harness cancels before this process has come to read.
    result = {"reason": "cancelled"} if cancels else Guard(order).run()
    if result.get("reason") == "orphaned" and order["remove_if_orphaned"]:
        _remove(order["remove_if_orphaned"])
    with contextlib.suppress(OSError):  # nobody may be left to be told
        os.write(1, json.dumps(result).encode() + b"\n")


if __name__ == "__main__":
    main()
