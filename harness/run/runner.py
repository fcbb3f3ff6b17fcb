"""One repro, one interpreter, one run: sandbox, guard, child driver, and the classified result."""

from __future__ import annotations

import errno
import gzip
import json
import math
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from attrs import field, frozen

from harness.errors import HarnessFault, NoSpace
from harness.model import Device, Outcome, RaisedException, Repro, StackFrame
from harness.run.classify import Report, classify, not_started
from harness.run.process import Ended, EndReason, Limits, run_guarded
from harness.run.sandbox import Sandbox, process_environment, sandbox

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator, Mapping

_INSIDE = Path(__file__).with_name("inside")
_TAIL = 64 * 1024
_GZIP_LEVEL = 3  # logs shrink well at any level, and higher ones take seconds on a long one
_METRICS_LIMIT = 16 * 1024 * 1024


@frozen
class Job:
    """What to run and how.

    `python` is the environment's interpreter; `timeout` (seconds) and `memory` (bytes) take the place of
    the repro's own; `log_path` gets the whole log, compressed by gzip; `scratch_root` is a folder for what
    the run writes; `pass_env` names variables of the harness's environment that are let through;
    `capability` is the compute capability to emulate; `invoked_from` is the folder that the paths of a
    command are relative to; `trace` records which installed functions are called, at some cost in speed.
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
    capability: str = "8.6"
    invoked_from: Path = field(factory=Path.cwd)
    trace: bool = False

    @property
    def limits(self) -> Limits:
        """The limits in force."""
        return Limits(
            self.timeout if self.timeout is not None else self.repro.timeout,
            self.memory if self.memory is not None else self.repro.memory,
        )


@frozen
class Ran:
    """What one run came to.

    `installed` has name and version of each distribution, `loaded` the files of each that were used,
    `machine` what is known of the device; `python` is the interpreter's full version. All four are empty
    for a command, and for a script that never came back to the child driver. `duration_s` is in seconds
    from the start of the interpreter to its end; `peak_memory` in bytes; `tail` the end of the log; `called` maps
    installed files to functions and the rank of their last call, where that was traced.
    """

    outcome: Outcome
    detail: str
    exit_code: int | None
    duration_s: float
    peak_memory: int | None
    exception: RaisedException | None = None
    metrics: dict[str, float] = field(factory=dict)
    loaded: dict[str, tuple[str, ...]] = field(factory=dict)
    installed: tuple[tuple[str, str], ...] = ()
    machine: dict[str, Any] = field(factory=dict)
    python: str = ""
    tail: str = ""
    called: dict[str, dict[str, int]] = field(factory=dict)


def run_repro(job: Job, *, cancel: threading.Event | None = None) -> Ran:
    """Run a repro once and say what happened.

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
        _keep_log(log, job.log_path)
    return ran


def _run_with(log: BinaryIO, place: Sandbox, job: Job, cancel: threading.Event | None) -> Ran:
    env = process_environment(
        place,
        ours=os.environ,
        python=job.python,
        pass_env=job.pass_env,
        pycache_prefix=job.pycache_prefix,
        extra={
            "HARNESS_PARAMS": json.dumps(job.repro.params),
            "HARNESS_ROOT": str(job.invoked_from.absolute()),
            "HARNESS_DEVICE": job.device.value,
            # A verdict on the CPU must not come from a GPU that happens to be there.
            **({"CUDA_VISIBLE_DEVICES": ""} if job.device is Device.CPU else {}),
            **job.extra_env,
        },
    )
    argv = _command(job) if job.repro.argv else _script(place, job)
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
        return Ran(outcome, detail, code, duration_s=0.0, peak_memory=None, tail=f"{detail}\n")
    return _result(place, job, ended, _tail(log))


def _result(place: Sandbox, job: Job, ended: Ended, tail: str) -> Ran:
    told = _read_report(place.report)
    exception = _exception(told.get("exception"))
    report = (
        Report(
            end=told["end"],
            stage=told["stage"],
            message=told.get("message", ""),
            exception=exception,
            chain=tuple((kind, message) for kind, message in told.get("chain", ())),
        )
        if told
        else None
    )
    outcome, detail = classify(ended, report, device=job.device, limits=job.limits, printed=tail)
    metrics, complaint = read_metrics(place.metrics)
    if ended.left:
        complaint += f"; {ended.left} of its processes could not be killed"
    killed = ended.reason is not EndReason.ENDED
    return Ran(
        outcome=outcome,
        detail=detail + complaint,
        exit_code=None if killed or ended.signal else ended.returncode,
        duration_s=ended.seconds,
        peak_memory=ended.peak_memory or None,
        exception=exception,
        metrics=metrics,
        loaded={name: tuple(files) for name, files in told.get("loaded", {}).items()},
        installed=tuple((name, version) for name, version in told.get("installed", ())),
        machine=told.get("machine", {}) | ({"problems": told["problems"]} if "problems" in told else {}),
        python=told.get("python", ""),
        tail=tail,
        called=told.get("called", {}),
    )


def _script(place: Sandbox, job: Job) -> list[str]:
    """Lay out script and job for the child driver; the command that starts it."""
    script = place.script / (Path(job.repro.path).name or f"{job.repro.name}.py")
    script.write_text(job.repro.source, encoding="utf-8")
    emulation = {"package": str(_INSIDE / "emulation"), "capability": job.capability}
    order = {
        "script": str(script),
        "report": str(place.report),
        "emulation": emulation if job.device is Device.EMULATED else None,
        "trace": job.trace,
    }
    place.job.write_text(json.dumps(order), encoding="utf-8")
    return [str(job.python), str(_INSIDE / "child.py"), str(place.job)]


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


def read_metrics(path: Path) -> tuple[dict[str, float], str]:
    """The numbers that a repro wrote, and a complaint about what could not be read ("" if nothing).

    NaN and infinities count as numbers, true and false as 1 and 0.
    """
    try:
        if path.stat().st_size > _METRICS_LIMIT:
            return {}, "; its metrics file is too large to read"
        written = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}, ""
    except (OSError, ValueError, RecursionError) as error:
        return {}, f"; its metrics file can't be read ({type(error).__name__})"
    if not isinstance(written, dict):
        return {}, "; its metrics file is not a JSON object"
    metrics = {str(name): _number(value) for name, value in written.items()}
    odd = [name for name, value in metrics.items() if value is None]
    complaint = f"; metrics that are no numbers: {', '.join(odd)}" if odd else ""
    return {name: value for name, value in metrics.items() if value is not None}, complaint


def _number(value: Any) -> float | None:
    if not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _read_report(path: Path) -> dict[str, Any]:
    try:
        report: dict[str, Any] = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise HarnessFault(f"the child driver wrote a report that can't be read: {error}") from error
    return report


def _exception(told: Mapping[str, Any] | None) -> RaisedException | None:
    if told is None:
        return None
    return RaisedException(
        type=told["type"],
        message=told["message"],
        bases=tuple(told["bases"]),
        frames=tuple(_frames(told["frames"])),
        cause=_exception(told["cause"]),
    )


def _frames(told: list[dict[str, Any]]) -> Iterator[StackFrame]:
    for frame in told:
        yield StackFrame(frame["file"], frame["line"], frame["function"], frame["package"], frame["text"])


def _tail(log: BinaryIO) -> str:
    size = log.seek(0, os.SEEK_END)
    log.seek(max(0, size - _TAIL))
    return log.read().decode("utf-8", "replace")


def _keep_log(log: BinaryIO, target: Path) -> None:
    """Compress the log to its place, whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, part = tempfile.mkstemp(prefix=".log", dir=target.parent)
    log.seek(0)
    try:
        with (
            os.fdopen(handle, "wb") as raw,
            gzip.GzipFile("", "wb", _GZIP_LEVEL, raw, mtime=0) as packed,
        ):
            shutil.copyfileobj(log, packed, 1 << 20)
        Path(part).replace(target)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise
