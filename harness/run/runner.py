"""One repro, one interpreter, one run: sandbox, guard, child driver, and the classified result."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from attrs import evolve, field, frozen

from harness.errors import HarnessFault, MissingProgram, NoSpace
from harness.model import Device, Repro
from harness.run.classify import not_started
from harness.run.collecting import collection_of
from harness.run.devices.registry import hidden, passed_variables
from harness.run.inside.emulation.cards import DEFAULT_CAPABILITY
from harness.run.launch import keep_log, script_command, told_variables
from harness.run.mistakes import mistake_in
from harness.run.process import Limits, run_guarded
from harness.run.programs import missing_program, program_of, write_stubs
from harness.run.result import LeftBehind, Ran, result_of
from harness.run.sandbox import Sandbox, process_environment, sandbox, user_path

if TYPE_CHECKING:
    import threading

INSIDE = Path(__file__).with_name("inside")
_TAIL = 64 * 1024


@frozen
class Job:
    """What to run and how.

    `python` is the environment's interpreter; `timeout` (seconds) and `memory` (bytes) take the place of
    the repro's own; `log_path` gets the whole log, compressed by gzip; `scratch_root` is a folder for what
    the run writes; `pass_env` names variables of the harness's environment that are let through;
    `capability` is the compute capability to emulate; `invoked_from` is the folder that the paths of a
    command are relative to; `trace` names installed files of which it records what runs, at some cost in speed.
    """

    python: Path
    repro: Repro
    log_path: Path
    scratch_root: Path
    device: Device = Device.CPU
    timeout: float | None = None
    memory: int | None = None
    pycache_prefix: Path | None = None
    pass_env: tuple[str, ...] = ()
    extra_env: dict[str, str] = field(factory=dict)
    capability: str = DEFAULT_CAPABILITY
    invoked_from: Path = field(factory=Path.cwd)
    trace: frozenset[str] | None = None

    @property
    def limits(self) -> Limits:
        """The limits in force."""
        return Limits(
            self.timeout if self.timeout is not None else self.repro.timeout,
            self.memory if self.memory is not None else self.repro.memory,
        )


def run_repro(job: Job, *, cancel: threading.Event | None = None) -> Ran:
    """Run a repro once and say what happened. Raises `MissingProgram` where the environment lacks a command's program.

    Nothing that it started is left on return, nor any file but the log. Raises `Cancelled` once `cancel`
    is set, `NoSpace` where the disk is full, `HarnessFault` where the harness itself fails.
    """
    try:
        with sandbox(job.scratch_root) as place:
            return _run_in(place, job, cancel)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoSpace(f"no space left for a run below {job.scratch_root}: {error}") from error
        raise


def _run_in(place: Sandbox, job: Job, cancel: threading.Event | None) -> Ran:
    # Held open, so that nothing is lost if the script removes the whole sandbox.
    with place.log.open("x+b") as log:
        ran = _run_with(log, place, job, cancel)
        keep_log(log, job.log_path)
    return ran


def _run_with(log: BinaryIO, place: Sandbox, job: Job, cancel: threading.Event | None) -> Ran:
    if why := missing_program(job.repro.argv, job.python, user_path(os.environ), job.invoked_from):
        raise MissingProgram(why, program_of(job.repro.argv))
    write_stubs(place.stubs, job.python, user_path(os.environ))
    tests = collection_of(job.repro.argv, place.report.parent)
    if tests is not None:
        job = evolve(job, repro=evolve(job.repro, argv=tests.command.argv))
    env = process_environment(
        place,
        ours=os.environ,
        python=job.python,
        pass_env=(*job.pass_env, *passed_variables()),
        pycache_prefix=job.pycache_prefix,
        stubs=True,
        extra={
            **told_variables(job.repro.params, job.device.value),
            "HARNESS_ROOT": str(job.invoked_from.absolute()),
            **(hidden() if job.device is Device.CPU else {}),
            **job.extra_env,
        },
    )
    argv = _command(job) if job.repro.argv else _script(place, job)
    if tests is not None:
        argv = tests.start(argv, env)
    try:
        ended = run_guarded(
            argv,
            env=env,
            cwd=place.work,
            limits=job.limits,
            output=place.log,
            cancel=cancel,
            remove_if_orphaned=place.root,
        )
    except (FileNotFoundError, PermissionError) as error:
        if not job.repro.argv:
            raise HarnessFault(f"the interpreter {job.python} can't be started: {error.strerror}") from error
        outcome, detail, code = not_started(job.repro.argv[0], error.strerror or "unknown reason")
        log.write(f"{detail}\n".encode())
        return Ran(outcome, detail, code, duration_s=0.0, peak_memory=None, tail=f"{detail}\n", mistake=detail)
    left = LeftBehind(ended, _tail_of(log), place.report, place.metrics, is_command=bool(job.repro.argv))
    ran = result_of(left, device=job.device, limits=job.limits)
    if tests is not None:
        ran = tests.added_to(ran)
    if mistake := mistake_in(ran, job.repro.argv, job.invoked_from):
        ran = evolve(ran, mistake=mistake, detail=f"{ran.detail}; {mistake}")
    return ran


def _script(place: Sandbox, job: Job) -> list[str]:
    return script_command(
        place,
        python=job.python,
        inside=INSIDE,
        name=script_name(job.repro),
        source=job.repro.source,
        capability=job.capability if job.device is Device.EMULATED else None,
        trace=job.trace,
    )


def script_name(repro: Repro) -> str:
    """The file name that a repro's script has where it runs."""
    return Path(repro.path).name or f"{repro.name}.py"


def _command(job: Job) -> list[str]:
    """The command with existing relative paths made absolute, as it runs in a folder of its own."""
    program, *arguments = job.repro.argv
    if os.sep in program:
        program = _absolute(program, job.invoked_from)
    return [program, *(_absolute(argument, job.invoked_from) for argument in arguments)]


def _absolute(argument: str, folder: Path) -> str:
    """`tests/test_x.py::test_y` and `--rootdir=tests` name paths, too."""
    option, equals, value = argument.partition("=") if argument.startswith("-") else ("", "", argument)
    path, colons, rest = value.partition("::")
    try:
        exists = bool(path) and not path.startswith("-") and (folder / path).exists()
    except (OSError, ValueError):  # too long for a path, or with a zero byte: no path then
        exists = False
    return f"{option}{equals}{(folder / path).absolute()}{colons}{rest}" if exists else argument


def _tail_of(log: BinaryIO) -> str:
    """The end of a log, as much as is looked at."""
    size = log.seek(0, os.SEEK_END)
    log.seek(max(0, size - _TAIL))
    return log.read().decode("utf-8", "replace")
