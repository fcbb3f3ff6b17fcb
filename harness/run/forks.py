"""Runs that are forked from a process with preloaded modules: the harness's side of `inside/zygote.py`."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from attrs import evolve, field, frozen

from harness.model import Device
from harness.run.launch import ForkedGuard, ScratchFolder, fork_guard, scratch_folder
from harness.run.process import GUARD, ZygoteFailed, end_strays
from harness.run.runner import INSIDE, Job, environment_of, file_access
from harness.run.sandbox import DIE_WITH_PARENT

_ENDS_WITHIN_S = 10.0
_ANOTHER = b"z"  # the request for another zygote, as in inside/zygote.py


@frozen
class Zygote:
    """A running zygote with the socket that controls it.

    Its forks write below `scratch`, and have its `hash_seed`; `executed` are the installed files that it executed.
    `turn` is held for as long as a fork runs, if forks must not run at the same time: they share the files and sockets
    that an import has opened.
    """

    control: socket.socket
    scratch: Path
    hash_seed: int
    executed: frozenset[str] = frozenset()
    turn: AbstractContextManager[object] = field(factory=contextlib.nullcontext)

    @contextlib.contextmanager
    def guard(self) -> Iterator[ForkedGuard]:
        """Fork a guard, in its turn, which waits for the request of a run; it ends with the context.

        Raises `ZygoteFailed` if it can't be forked.
        """
        with self.turn, self._forked() as guard:
            yield guard

    @contextlib.contextmanager
    def _forked(self) -> Iterator[ForkedGuard]:
        try:
            guard = fork_guard(self.control)
        except EOFError:
            raise ZygoteFailed("a fork died before it started") from None
        except TimeoutError:
            raise ZygoteFailed("a fork hung before it started") from None
        except OSError as error:
            raise ZygoteFailed(f"the zygote process has ended: {error.strerror}") from error
        with guard.channel:
            yield guard


@contextlib.contextmanager
def started_zygote(job: Job, modules: Sequence[str], parent: Zygote | None = None) -> Iterator[Zygote]:
    """Start a process that imports `modules`, in this order, where a job would run; stop it with the context.

    With a `parent` it is a fork of that zygote, which keeps what the parent has imported, in the parent's sandbox; the
    job's scratch folder is below that of the parent's. Raises `ZygoteFailed` if that fails, or if an import started a
    thread or initialised CUDA.
    """
    with scratch_folder(job.place.scratch) as folder:
        env = environment_of(folder, job, job.place.invoked_from.absolute())
        emulation = {"package": str(INSIDE / "emulation"), "capability": job.terms.capability}
        order = {
            "modules": list(modules),
            "emulation": emulation if job.device is Device.EMULATED else None,
            "guard": str(GUARD),
            "sandboxed": job.place.sandbox is not None,
            "script_folder": str(folder.script),
            "python": str(job.place.python),
            "env": env,
            "work": str(folder.work),
            "log": str(folder.log),
        }
        folder.order.write_text(json.dumps(order), encoding="utf-8")
        starting = _forked(parent, folder) if parent is not None else _process(job, folder, env)
        with starting as control:
            report = _report(control, job.repro.timeout)
            if report.problem:
                words = folder.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
                raise ZygoteFailed(": ".join([report.problem, *words[-1:]]))
            turn = parent.turn if parent is not None else contextlib.nullcontext()
            if report.opened and isinstance(turn, contextlib.nullcontext):
                turn = threading.Lock()
            yield Zygote(control, job.place.scratch, job.hash_seed, report.executed, turn)


@contextlib.contextmanager
def _process(job: Job, folder: ScratchFolder, env: Mapping[str, str]) -> Iterator[socket.socket]:
    """Start a zygote as a new process, which ends with the context; yields the socket that controls it."""
    sandbox: list[str] = []
    if job.place.sandbox is not None:
        access = file_access(folder, job, job.repro.argv, env)
        readable = (*access.readable, INSIDE.parent)
        sandbox = job.place.sandbox.around(evolve(access, scratch=job.place.scratch, readable=readable))
        # The parent would be the thread that starts it. It ends with its socket, so with this process.
        sandbox.remove(DIE_WITH_PARENT)
    ours, theirs = socket.socketpair()
    with theirs, folder.log.open("wb") as log:
        process = subprocess.Popen(
            [*sandbox, str(job.place.python), str(INSIDE / "zygote.py"), str(folder.order)],
            stdin=theirs.fileno(),
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder.work,
            env=dict(env),
            start_new_session=True,
        )
    try:
        yield ours
    finally:
        ours.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_ENDS_WITHIN_S)
        process.kill()
        process.wait()
        end_strays(env)  # a guard that hangs, which nobody else ends


@contextlib.contextmanager
def _forked(parent: Zygote, folder: ScratchFolder) -> Iterator[socket.socket]:
    """Let a zygote fork another one, which ends with the context. Raises `ZygoteFailed` if the parent has ended."""
    ours, theirs = socket.socketpair()
    with ours:
        try:
            with theirs:
                socket.send_fds(parent.control, [_ANOTHER], [theirs.fileno()])
            ours.sendall(f"{folder.order}\n".encode())
        except OSError as error:
            raise ZygoteFailed(f"the zygote process has ended: {error.strerror}") from error
        yield ours


@frozen
class _Report:
    """What a zygote says of its imports: why it can't be forked, what it executed, and what is open since."""

    problem: str
    executed: frozenset[str] = frozenset()
    opened: frozenset[str] = frozenset()


def _report(control: socket.socket, timeout: float) -> _Report:
    """Wait `timeout` seconds for the report on the imports."""
    control.settimeout(timeout)
    try:
        with control.makefile(errors="replace") as answer:
            line = answer.readline()
    except OSError as error:
        return _Report(f"the imports did not end in {timeout:g} s: {error}")
    control.settimeout(None)
    try:
        told = json.loads(line)
        return _Report(str(told["problem"]), frozenset(map(str, told["executed"])), frozenset(map(str, told["opened"])))
    except (ValueError, TypeError, KeyError):  # an import may write to the socket, or end the process
        return _Report("an import ended the process")
