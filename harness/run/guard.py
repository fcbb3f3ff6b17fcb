"""Runs one process tree under limits and kills all of it at the end, even if the harness is killed with SIGKILL.

Imported by `python -I -S`, standard library only. A guard is a fork of the process that imported it (`serve`), or of
one that runs are forked from (`inside/zygote.py`). It prints its process id and reads its request from stdin, a line
with the size and then a marshalled value. It keeps watching stdin: end of file means that the harness has ended, a byte
means cancel. It answers with one line of JSON.
It reads the output of the tree from a pipe and writes it to the log, and stops a tree that prints too much. What a tree
could do to its own log, such as `echo x > /dev/stderr`, which truncates a file, it can't do to a pipe.
"""

# Each command of the harness starts it, so it imports only what starts at once: json would need re, signal would need
# enum, and contextlib or pathlib would take as long as all the rest of this module.
# ruff: noqa: PTH110, PTH123, PTH208

from __future__ import annotations

import ctypes
import marshal
import os
import resource
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any
else:
    import _signal as signal

_SAMPLE_S = 0.1
_GIVE_UP_S = 10.0  # a process in uninterruptible sleep can't be killed
_LAST_WORDS_S = 1.0
_LAST_WORDS_OF_ALL_S = 5.0
_PIECE = 1 << 20
_PROBLEM_BYTES = 512  # below PIPE_BUF, so written and read at once
_PIECES_AT_ONCE = 16  # then check the clock and the memory
_LINUX = sys.platform.startswith("linux")
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 1, 4, 36  # prctl(2)
_KEYCTL, _JOIN_SESSION_KEYRING = {"x86_64": 250, "aarch64": 219}, 1  # keyctl(2), by machine
_FD_BYTES = 4  # of a file descriptor in a message (cmsg(3))
_PAGE = os.sysconf("SC_PAGE_SIZE")
_FATAL = frozenset(
    {signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM}
)


class _ignored:  # noqa: N801 - it reads like contextlib.suppress
    """A context that ignores errors of these kinds."""

    def __init__(self, *kinds: type[BaseException]) -> None:
        self._kinds = kinds

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, self._kinds)


class Guard:
    """Carries out one request: starts, watches and kills one process tree."""

    def __init__(self, request: dict[str, Any]) -> None:
        self._request = request
        self._tree = ProcessTree()
        self._log = Log(request["output"])
        self._peak = 0
        self._main = 0
        self._status: int | None = None
        self._ended = 0.0
        self._status_end = 0  # where bubblewrap writes how the command ended
        self._libc = ctypes.CDLL(None, use_errno=True) if _LINUX else None

    def run(self) -> dict[str, Any]:
        """Start the command, wait until it ends or kill it, leave no processes behind, and return the answer."""
        self._settle()
        oom_kills = _oom_kills()
        begun = time.monotonic()
        deadline = begun + self._request["wall_s"]
        problem = self._start(deadline)
        if problem:
            return {"problem": int(problem) if problem.isdecimal() else problem}
        reason = self._watch(deadline, self._request["memory"])
        if reason == "timeout":
            self._ask_for_tracebacks()
        self._end_all()
        self._pump()
        returncode = os.waitstatus_to_exitcode(self._status) if self._status is not None else -signal.SIGKILL
        if self._request["sandbox"] and returncode >= 0 and reason == "ended":
            # It reports an exit code only of a command that it could start.
            reason = reason if b'"exit-code"' in os.read(self._status_end, 4096) else "unsandboxed"
        # A shell and bubblewrap exit with 128 and more after a signal, so such a code means the same everywhere.
        if returncode - 128 in _FATAL:
            returncode = 128 - returncode
        return {
            "returncode": returncode,
            "reason": reason,
            "seconds": (self._ended or time.monotonic()) - begun,
            "peak_memory": self._peak,
            "oom_killed": _oom_kills() > oom_kills,
            "output": self._log.size,
            "log_error": self._log.error,
        }

    def _settle(self) -> None:
        if self._libc is not None:
            self._libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
            # Processes of the tree run as the same user and must not read or write this process.
            self._libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._wake, self._wake_end = os.pipe()
        self._printed, self._print_end = os.pipe()
        for end in (self._wake, self._wake_end, self._printed):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self._wake_end, warn_on_full_buffer=False)

    def _start(self, deadline: float) -> str:
        """Start the command; returns "" or why it can't be started: an errno, or another error in words."""
        request = self._request
        argv = request["argv"]
        status_end = 0
        if request["sandbox"]:
            program, *options = request["sandbox"]
            self._status_end, status_end = os.pipe()
            os.set_blocking(self._status_end, False)
            os.set_inheritable(status_end, True)
            argv = [program, "--json-status-fd", str(status_end), *_without_gone(options), *argv]
        problem_end, self._tell = os.pipe()
        self._main = os.fork()
        if self._main == 0:
            try:
                self._become(argv, request)
            except BaseException as error:  # noqa: BLE001 - of a fork, whatever it is must be reported
                with _ignored(OSError):  # a fork that has started reports by itself
                    os.write(self._tell, self._problem(error).encode("utf-8", "replace")[:_PROBLEM_BYTES])
            finally:
                os._exit(127)
        for end in filter(None, (self._tell, self._print_end, status_end)):
            os.close(end)
        # A fork may hang before it starts the command, for example on a lock that was held when it was forked.
        poller = select.poll()
        for end in (problem_end, 0, self._wake):
            poller.register(end, select.POLLIN)
        ready = [end for end, _ in poller.poll(max(0.0, deadline - time.monotonic()) * 1000)]
        problem = os.read(problem_end, _PROBLEM_BYTES) if problem_end in ready else b""
        os.close(problem_end)
        if problem:
            os.waitpid(self._main, 0)
        return problem.decode("utf-8", "replace")

    def _problem(self, error: BaseException) -> str:
        """What `_start` returns for an error before the command has started."""
        return str(error.errno or 1) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"

    def _become(self, argv: list[str], request: dict[str, Any]) -> None:
        os.setsid()
        if self._libc is not None:
            self._libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
            self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            # If the machine runs out of memory, the kernel should kill the probe, not the harness.
            with _ignored(OSError), open("/proc/self/oom_score_adj", "w") as file:
                file.write("500")
        if request["sandbox"]:
            leave_keyring()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # Ignored signals stay ignored through exec; Python itself ignores the first two.
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(self._print_end, 1)
        os.dup2(self._print_end, 2)
        os.chdir(request["cwd"])
        self._execute(argv, request["env"])

    def _execute(self, argv: list[str], env: dict[str, str]) -> None:
        """Replace this process by the command. On success, exec closes the pipe that reports a failure to start."""
        os.execvpe(argv[0], argv, env)  # noqa: S606 - a shell is not wanted

    def _watch(self, deadline: float, limit: int) -> str:
        poller = select.poll()
        for end in (0, self._wake, self._printed):
            poller.register(end, select.POLLIN)
        sample_at = time.monotonic() + _SAMPLE_S / 2
        while True:
            now = time.monotonic()
            if now >= deadline:
                return "timeout"
            ready = {fd for fd, _ in poller.poll(max(0.0, min(deadline, sample_at) - now) * 1000 + 1)}
            if self._wake in ready:
                os.read(self._wake, 512)
            if self._printed in ready and not self._pump():
                poller.unregister(self._printed)
            self._reap()
            if self._status is not None:
                return "ended"
            if 0 in ready:
                return "cancelled" if os.read(0, 1) else "orphaned"
            if self._log.size > self._request["output_limit"]:
                return "output"
            now = time.monotonic()
            if now >= sample_at:
                used = self._tree.memory(limit)
                self._peak = max(self._peak, used)
                if used > limit:
                    return "memory"
                sample_at = time.monotonic() + _SAMPLE_S

    def _pump(self) -> bool:
        """Copy new output to the log; returns whether more may follow."""
        for _ in range(_PIECES_AT_ONCE):
            try:
                piece = os.read(self._printed, _PIECE)
            except BlockingIOError:
                return True
            if not piece:
                return False
            self._log.add(piece)
        return True

    def _reap(self) -> bool:
        """Reap ended children; returns whether any are left."""
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
        """Abort each process, so that Python's faulthandler prints the traceback of every thread, the main one last.

        The main process is stopped meanwhile: a launcher would end all others when one of them has gone.
        """
        members = self._tree.members()
        if self._request["sandbox"]:  # below two processes of bubblewrap
            del members[:2]
        main = members[0] if self._request["sandbox"] and members else self._main
        others = [pid for pid in members if pid != main]
        ranks = {pid: _rank(pid) for pid in others}
        until = time.monotonic() + _LAST_WORDS_OF_ALL_S
        _kill(main, signal.SIGSTOP)
        for pid in others:
            if time.monotonic() < until:
                self._log.add(b"\n[harness: process %d%s at the time limit]\n" % (pid, ranks[pid]))
                self._abort(pid)
        if not any(ranks.values()):  # a launcher only waits
            self._abort(main)

    def _abort(self, pid: int) -> None:
        """Abort a process, and copy what it prints until it has ended."""
        _kill(pid, signal.SIGABRT)
        _kill(pid, signal.SIGCONT)
        until = time.monotonic() + _LAST_WORDS_S
        while (self._status is None if pid == self._main else _is_alive(pid)) and time.monotonic() < until:
            select.select([self._wake, self._printed], [], [], 0.02)
            self._pump()
            self._reap()
        self._pump()

    def _end_all(self) -> None:
        """Kill until no process is left, or only those that can't be killed."""
        until = time.monotonic() + _GIVE_UP_S
        while True:
            # Orphans become children of this subreaper, so no children means no descendants.
            members = [] if not self._reap() and _LINUX else self._tree.members()
            if not members or time.monotonic() > until:
                return
            for pid in members:
                with _ignored(OSError):
                    os.kill(pid, signal.SIGKILL)
            self._pump()
            select.select([self._wake], [], [], 0.005)


def _kill(pid: int, number: int) -> None:
    with _ignored(ProcessLookupError):
        os.kill(pid, number)


def _is_alive(pid: int) -> bool:
    """Whether a process has not ended; a zombie has. Without /proc, whether there is one with this id."""
    try:
        return _LINUX and _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def _rank(pid: int) -> bytes:
    """The words for the rank of a process that a launcher started, none for any other."""
    with _ignored(OSError):
        variables = _read(f"/proc/{pid}/environ").split(b"\0")
        return b"".join(b", rank " + variable[5:] for variable in variables if variable.startswith(b"RANK="))
    return b""


class ProcessTree:
    """The descendants of this process, including those that detached from their parents."""

    def __init__(self) -> None:
        self._walk = os.path.exists(f"/proc/self/task/{os.getpid()}/children")
        self._groups: set[int] = set()

    def members(self) -> list[int]:
        """Return their process ids, without that of this process."""
        return self._members_by_walk() if self._walk else list(self._members_by_ps())

    def memory(self, limit: int) -> int:
        """Return the memory in use, in bytes: an estimate, or the exact value if the tree may exceed `limit`."""
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
        # Forked workers share most pages; counting shared pages once takes milliseconds per process.
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
            except OSError:  # it has ended in the meantime
                continue
        return members

    def _members_by_ps(self) -> dict[int, int]:
        """The memory in bytes of each descendant and each member of their process groups, for systems without /proc."""
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


class Log:
    """Writes all that it gets to a file; `size` is how much that was.

    A full disk raises nothing: `error` has the errno, and the rest is left out.
    """

    def __init__(self, path: str) -> None:
        # The reader has already created the file; never follow a link that took its place.
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        self.size = 0
        self.error = 0

    def add(self, data: bytes) -> None:
        """Add more output."""
        self.size += len(data)
        try:
            while data and not self.error:
                data = data[os.write(self._file, data) :]
        except OSError as problem:
            self.error = problem.errno or 1


def _without_gone(options: list[str]) -> list[str]:
    """Leave out of bubblewrap's options to hide sockets that have gone since; it can't hide what does not exist."""
    hides = ["--ro-bind", os.devnull]
    gone = {
        at for at in range(len(options) - 2) if options[at : at + 2] == hides and not os.path.lexists(options[at + 2])
    }
    return [word for at, word in enumerate(options) if not {at, at - 1, at - 2} & gone]


def leave_keyring() -> None:
    """Give this process an empty session keyring of its own; that of the user may hold tickets and keys."""
    number = _KEYCTL.get(os.uname().machine) if _LINUX else None
    if number is not None:
        ctypes.CDLL(None).syscall(number, _JOIN_SESSION_KEYRING, None)


def _oom_kills() -> int:
    """How often the kernel's OOM killer has run since boot, 0 if unknown."""
    with _ignored(OSError), open("/proc/vmstat", "rb", buffering=0) as file:
        for line in file.read().splitlines():
            if line.startswith(b"oom_kill "):
                return int(line.split()[1])
    return 0


def _as_json(answer: dict[str, Any]) -> str:
    """An answer as JSON. Only an error has texts that need the module for it."""
    if "problem" in answer:
        import json

        return json.dumps(answer)
    values = {name: f'"{value}"' if isinstance(value, str) else repr(value).lower() for name, value in answer.items()}
    return "{" + ", ".join(f'"{name}": {value}' for name, value in values.items()) + "}"


def serve(kind: type[Guard] = Guard) -> None:
    """Fork a guard for each socket that arrives on the socket that is stdin, until that is closed."""
    import _socket  # socket would import selectors and enum

    control = _socket.socket(fileno=0)
    if _LINUX:
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    while True:
        message, sent, _, _ = control.recvmsg(1, _socket.CMSG_SPACE(_FD_BYTES))
        with _ignored(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not message:
            os._exit(0)
        channel = int.from_bytes(sent[0][2][:_FD_BYTES], sys.byteorder)
        if os.fork() == 0:
            os.dup2(channel, 2)
            become(channel, kind)
        os.close(channel)


def become(channel: int, kind: type[Guard]) -> None:
    """Be a guard of this class in a fork, whose stdin and stdout are the socket `channel`, and exit."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        for number in (0, 1):
            os.dup2(channel, number)
        os.close(channel)
        os.write(1, b"%d\n" % os.getpid())
        _main(kind)
    except BaseException:  # noqa: BLE001 - of a fork, whatever it is must be reported
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(0)


def _main(kind: type[Guard]) -> None:
    """Read the request, carry it out with a guard of this class, and print the result."""
    head, rest = b"", b""
    while not head or len(rest) < int(head):
        piece = os.read(0, 1 << 16)
        if not piece:
            return
        rest += piece
        if not head and b"\n" in rest:
            head, _, rest = rest.partition(b"\n")
    request, cancels = marshal.loads(rest[: int(head)]), rest[int(head) :]  # noqa: S302 - the harness sends it
    # Both may arrive at once if the harness cancels before this process reads.
    result = {"reason": "cancelled"} if cancels else kind(request).run()
    with _ignored(OSError):  # the reader may have ended
        os.write(1, f"{_as_json(result)}\n".encode())
