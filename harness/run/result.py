"""Turns what a run left behind (how it ended, report, metrics, log) into its result and outcome. No verdict.

It works the same for a run on this machine and for one whose files were copied from another machine. The repro can
write to the child driver's report and to its metrics: only regular files of bounded size are read, links are not
followed, every value is checked, and text is made safe to print.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import re
import stat
from collections.abc import Iterable, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, get_args

import cattrs
from attrs import asdict, evolve, field, frozen, resolve_types
from cattrs.gen import make_dict_structure_fn

from harness.model import Device, Outcome, RaisedException, Signature, TestResult, Trace
from harness.model.text import listed, one_line, plain, size_in_words
from harness.run.devices import outcome_of_text
from harness.run.launch import LOG_KEPT, METRICS_LIMIT, Limits
from harness.run.process import Ended, EndReason

REPORT_LIMIT = 64 * 1024 * 1024  # a trace of all called functions takes megabytes
METRICS_COUNT = 1000
_NAME = 200
_MESSAGE = 20_000
_CAUSES = 51
_FRAMES = 400


class Unreadable(Exception):
    """A file from a run can't be read; the message says why in a few words."""


@frozen
class ChildReport:
    """The child driver's report. That of a command, which has none, is empty.

    `end` is "completed", "exit", "raised" or "forked"; `stage` is "emulation" or "script"; `chain` has the type and
    message of each exception in the chain. `installed` has the name and version of each distribution, `loaded` its
    files that the run used, `machine` facts about the device; `python` is the interpreter's full version.
    """

    end: str = ""
    stage: str = "script"
    message: str = ""
    exception: RaisedException | None = None
    chain: tuple[tuple[str, str], ...] = ()
    loaded: dict[str, tuple[str, ...]] = field(factory=dict)
    installed: tuple[tuple[str, str], ...] = ()
    machine: dict[str, Fact] = field(factory=dict)
    python: str = ""
    trace: Trace | None = None


Fact = str | int | float | bool | None
resolve_types(ChildReport)
_NONE = ChildReport()
_ENDS = ("completed", "exit", "raised", "forked")


def read_report(path: Path) -> ChildReport | None:
    """Read the child driver's report; None if there is none. Raises `Unreadable` if the file is not a report."""
    report = _object_in(path, REPORT_LIMIT)
    if report is None:
        return None
    child: ChildReport | None = valid(report, ChildReport)
    if child is None or child.end not in _ENDS or (child.end == "raised") is (child.exception is None):
        raise Unreadable("is not a report")
    return child


def read_imports(path: Path) -> tuple[dict[str, str], dict[str, list[str]]] | None:
    """Read the modules of a traced run with their files, in loading order, and the imports of each module.

    Returns None if there is no readable record.
    """
    try:
        report = _object_in(path, REPORT_LIMIT) or {}
    except Unreadable:
        return None
    modules, imports = valid(report.get("modules"), dict[str, str]), valid(report.get("imports"), dict[str, list[str]])
    return None if modules is None or imports is None else (modules, imports)


def read_metrics(path: Path) -> tuple[dict[str, float], str]:
    """Read the numbers that a repro wrote, and a complaint about anything unreadable ("" if none).

    NaN and infinities are numbers, true and false count as 1 and 0. Only the first thousand are kept.
    """
    try:
        written = _object_in(path, METRICS_LIMIT) or {}
    except Unreadable as why:
        return {}, f"; its metrics file {why}"
    numbers = {plain(name[:_NAME]): _number(value) for name, value in islice(written.items(), METRICS_COUNT)}
    odd = [name for name, number in numbers.items() if number is None]
    complaint = f"; metrics that are not numbers: {listed(odd, 6)}" if odd else ""
    if len(written) > METRICS_COUNT:
        complaint += f"; only the first {METRICS_COUNT} of {len(written)} metrics are kept"
    return {name: number for name, number in numbers.items() if number is not None}, complaint


_STATE = "trainer_state.json"
_STATES = 20  # files
_BENCHMARKS = "--benchmark-json"


def with_numbers_of_tools(ran: Ran, work: Path, argv: Sequence[str], since: float) -> Ran:
    """Return a result with the numbers that tools wrote below the working folder after `since` (seconds of the epoch).

    They are the last values that the Trainer of transformers logged under each name, and the fastest time of each
    benchmark of pytest-benchmark (seconds), which is what it compares by. A run that failed may have written a part.
    """
    if ran.outcome not in (Outcome.COMPLETED, Outcome.EXITED):
        return ran
    numbers: dict[str, float] = {}
    paths = [Path(folder, _STATE) for folder, _, names in os.walk(work) if _STATE in names]
    newest = sorted(paths, key=lambda path: path.lstat().st_mtime)[-_STATES:]
    for state in sorted(
        (_written(path, since) for path in newest), key=lambda state: _number(state.get("global_step")) or 0
    ):
        for logged in _objects_in(state.get("log_history")):
            numbers |= _named(logged.items())
    given = [word.partition("=")[2] for word in argv if word.startswith(f"{_BENCHMARKS}=")]
    given += [word for option, word in pairwise(argv) if option == _BENCHMARKS]
    for name in given:
        for benchmark in _objects_in(_written(work / name, since).get("benchmarks")):
            for stats in _objects_in([benchmark.get("stats")]):
                numbers |= _named((str(benchmark.get(key)), stats.get("min")) for key in ("name", "fullname"))
    return evolve(ran, metrics=dict(islice(numbers.items(), METRICS_COUNT)) | ran.metrics)


def _objects_in(values: Any) -> list[dict[str, Any]]:
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def _written(path: Path, since: float) -> dict[str, Any]:
    """The object in a file that was written after a time; an empty one if there is none."""
    with contextlib.suppress(Unreadable, OSError):
        if path.stat(follow_symlinks=False).st_mtime >= since:
            return _object_in(path, METRICS_LIMIT) or {}
    return {}


def _named(items: Iterable[tuple[str, Any]]) -> dict[str, float]:
    numbers = ((plain(name[:_NAME]), _number(value)) for name, value in items)
    return {name: number for name, number in numbers if number is not None}


def content_of(path: Path, limit: int) -> bytes | None:
    """Read a regular file of at most `limit` bytes; None if there is none. Never blocks and never follows a link.

    Raises `Unreadable` if the file is larger, not a regular file, or can't be read.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    try:
        with open(path, "rb", opener=lambda name, _: os.open(name, flags)) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Unreadable("is not a regular file")
            # A sparse file is cheap to create, and reading it would fill the memory.
            if status.st_size > limit:
                raise Unreadable(f"is larger than {limit >> 20} MiB")
            return file.read(limit)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise Unreadable("is not a regular file") from None
        raise Unreadable(f"can't be read ({os.strerror(error.errno or 0)})") from None


def _object_in(path: Path, limit: int) -> dict[str, Any] | None:
    """Read a JSON object from a file of at most `limit` bytes; None if there is none. Raises `Unreadable`."""
    data = content_of(path, limit)
    try:
        value = json.loads(data.decode("utf-8")) if data is not None else {}
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"can't be read ({type(error).__name__})") from None
    if not isinstance(value, dict):
        raise Unreadable("is not a JSON object")
    return value if data is not None else None


def _number(value: Any) -> float | None:
    if not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def valid(value: Any, kind: Any) -> Any:
    """Return a value of this type from what a run wrote, with its text made safe; None if it is anything else."""
    with contextlib.suppress(TypeError, ValueError, KeyError, AttributeError, RecursionError):
        return _converter.structure(value, kind)
    return None


def _exactly(value: Any, kind: Any) -> Any:
    if type(value) is not kind and type(value) not in get_args(kind):
        raise TypeError(kind)
    return plain(value[:_MESSAGE]) if isinstance(value, str) else value


def _bounded(value: Any, _: Any) -> RaisedException:
    raised = _of_exception(value, RaisedException)
    if len(list(raised.chain())) > _CAUSES or any(len(exception.frames) > _FRAMES for exception in raised.chain()):
        raise ValueError("too large")
    return raised


_converter = cattrs.Converter(detailed_validation=False)  # accepts no other type than the one asked for
for _kind in (str, int, Fact):
    _converter.register_structure_hook(_kind, _exactly)
_of_exception = make_dict_structure_fn(RaisedException, _converter)
_converter.register_structure_hook(RaisedException, _bounded)
_DECLINED = 125
_UNFINISHED = "exit code 0, but it did not reach its end (os._exit, os.execv, a fork, or another exit code before)"
_WIDTH = 300
_KILLED_IN_SHELL = 128 + 9  # a shell's exit code for a command killed by SIGKILL
_KILLED = "killed by SIGKILL from outside, not at a limit of the run"
_MEMORY_TYPES = frozenset({"MemoryError", "OutOfMemoryError"})
# Without a report there is only the output: look for the line of the exception itself, not for any mention of it.
_ERROR_LINE = re.compile(r"^.*(?:Error\b|Exception\b|terminate called|what\(\):|NVRM: Xid).*$", re.MULTILINE)
_DRIVER_LINE = re.compile(r"^.*NVRM: Xid.*$", re.MULTILINE)


@frozen(kw_only=True)
class Ran(ChildReport):
    """The result of one run: the child driver's report, if there is one, and how the process ended.

    `duration_s` is the time in seconds from start to end of the interpreter; `peak_memory` is in bytes; `tail` is the
    end of the log; `tests` has the results of pytest or unittest. `mistake` says what is wrong with the command, if
    that is why it failed. `wrote` is the hash of what a first step wrote. `outside` are the files and programs that it
    used besides its environment, with their hashes (`harness.run.outside`).
    """

    outcome: Outcome
    detail: str
    exit_code: int | None
    duration_s: float = 0.0
    peak_memory: int | None = None
    metrics: dict[str, float] = field(factory=dict)
    tail: str = ""
    tests: tuple[TestResult, ...] = ()
    mistake: str = ""
    wrote: str = ""
    outside: dict[str, str] = field(factory=dict)


def result_of(
    ended: Ended, tail: str, report: Path | None, metrics_file: Path, *, device: Device, limits: Limits
) -> Ran:
    """Return the result of a run from how it ended, the end of its log, its report and its metrics.

    An unreadable report counts as missing, and `detail` says so. A command has no `report`, only an exit code.
    """
    child, complaint = _NONE, ""
    if report is not None:
        try:
            child = read_report(report) or _NONE
        except Unreadable as why:
            complaint = f"; its report {why}"
    outcome, detail = classify(ended, child, device=device, limits=limits, printed=tail, is_command=report is None)
    metrics, about_metrics = read_metrics(metrics_file)
    complaint += about_metrics
    if ended.output > LOG_KEPT:
        complaint += f"; the log leaves out {ended.output - LOG_KEPT} bytes of its output"
    is_exited = ended.reason is EndReason.ENDED and not ended.signal
    return Ran(
        **asdict(child, recurse=False),
        outcome=outcome,
        detail=detail + complaint,
        exit_code=ended.returncode if is_exited else None,
        duration_s=ended.seconds,
        peak_memory=ended.peak_memory or None,
        metrics=metrics,
        tail=tail,
    )


def classify(
    ended: Ended,
    report: ChildReport | None,
    *,
    device: Device,
    limits: Limits,
    printed: str = "",
    is_command: bool = False,
) -> tuple[Outcome, str]:
    """Return the outcome of a run, and one sentence about it.

    Without a `report` (None, or one without an end) it was a command, or a script that never returned to the child
    driver; `printed` is the end of stdout and stderr.
    """
    report = report or _NONE
    if report.exception is not None:
        return _raised(report.exception, report, device, printed)
    is_over = report.end == "completed"
    stopped = _stopped(ended, limits, is_over=is_over)
    if stopped is not None:
        return stopped
    if ended.returncode == 0:
        return (Outcome.COMPLETED, "ran to its end") if is_command or is_over else (Outcome.NO_REPORT, _UNFINISHED)
    if ended.returncode == _DECLINED:
        return Outcome.DECLINED, f"exit code {_DECLINED}: the repro can't tell"
    if not report.end and (failure := outcome_of_text(_ERROR_LINE.findall(printed), device)) is not None:
        return failure
    if ended.signal == "SIGKILL" or (ended.returncode == _KILLED_IN_SHELL and is_command):
        return Outcome.MACHINE_FAILED, _KILLED
    if ended.signal is not None:
        return Outcome.CRASHED, f"killed by {ended.signal}" + (" after the script had ended" if is_over else "")
    return Outcome.EXITED, _titled(f"exit code {ended.returncode}", report.message)


def as_the_bug(ran: Ran, signature: Signature | None, device: Device) -> Ran:
    """Return a result as any other failure if a signature says that such a failure of the machine is the bug."""
    if ran.outcome not in (Outcome.MACHINE_FAILED, Outcome.OUT_OF_MEMORY) or signature is None or signature.captured:
        return ran
    if ran.detail.startswith(_KILLED) and signature.exit_code == _KILLED_IN_SHELL:
        return evolve(ran, outcome=Outcome.EXITED, exit_code=_KILLED_IN_SHELL)
    texts = [text for text in (signature.message, signature.output) if text]
    failure = outcome_of_text([*texts, *(text.replace("\\", "") for text in texts)], device)
    is_named = failure is not None and failure[0] is ran.outcome
    if ran.outcome is Outcome.OUT_OF_MEMORY:
        is_named = is_named or (signature.exception or "").rpartition(".")[2] in _MEMORY_TYPES
    if not is_named:
        return ran
    return evolve(ran, outcome=Outcome.RAISED if ran.exception is not None else Outcome.EXITED)


def _stopped(ended: Ended, limits: Limits, *, is_over: bool) -> tuple[Outcome, str] | None:
    """The outcome of a run that was stopped, None if it ended by itself; `is_over` if its script had ended."""
    match ended.reason:
        case EndReason.TIMEOUT:
            which = ": the script ended, its process did not" if is_over else ""
            return Outcome.TIMED_OUT, f"timed out after {limits.wall_s:g} s{which}"
        case EndReason.MEMORY:
            return Outcome.OUT_OF_MEMORY, f"used more than {size_in_words(limits.bytes)} of memory"
        case EndReason.OUTPUT:
            return Outcome.TOO_MUCH_OUTPUT, f"printed more than {size_in_words(limits.output)}"
        case EndReason.LOST:
            return Outcome.NO_REPORT, "its guard process was killed, so how it ended is not known"
    if ended.oom_killed and (ended.signal == "SIGKILL" or ended.returncode == _KILLED_IN_SHELL):
        return Outcome.OUT_OF_MEMORY, "killed by the system: out of memory"
    return None


def _raised(raised: RaisedException, report: ChildReport, device: Device, printed: str) -> tuple[Outcome, str]:
    detail = _titled(raised.name, raised.message)
    if report.stage == "emulation":
        return Outcome.EMULATION_GAP, f"the stand-in for CUDA can't be set up: {detail}"
    for kind, message in report.chain:
        if kind.endswith("EmulationGap"):
            return Outcome.EMULATION_GAP, _titled(kind.rpartition(".")[2], message)
    # Causes (`raise ... from`) count; an exception that happened to be handled does not.
    for exception in raised.chain():
        if not _MEMORY_TYPES.isdisjoint(kind.rpartition(".")[2] for kind in (exception.type, *exception.bases)):
            return Outcome.OUT_OF_MEMORY, _titled(exception.name, exception.message)
    texts = [_titled(exception.name, exception.message) for exception in raised.chain()]
    failure = outcome_of_text([*texts, *_DRIVER_LINE.findall(printed)], device)
    return failure if failure is not None else (Outcome.RAISED, detail)


def _titled(name: str, message: str) -> str:
    return f"{name}: {one_line(message, _WIDTH)}" if message.strip() else name
