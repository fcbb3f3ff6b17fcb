"""From how a process ended, and its own report if there is one, to an outcome: no I/O and no judgement."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from attrs import frozen

from harness.model import Device, Outcome
from harness.run.process import EndReason

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.model import RaisedException
    from harness.run.process import Ended, Limits

_DECLINED = 125
_NOT_FOUND = 127
_KILLED_IN_SHELL = 128 + 9  # how a shell passes on that SIGKILL ended its command


@frozen
class Report:
    """What the child driver says of the end of the script.

    `end` is "completed", "exit" or "raised"; `stage` is "emulation" while the stand-in for CUDA is being
    set up, then "script"; `chain` has type and message of each exception that this one came out of.
    """

    end: str
    stage: str = "script"
    message: str = ""
    exception: RaisedException | None = None
    chain: tuple[tuple[str, str], ...] = ()


@frozen
class _Rule:
    """Texts that give an outcome on some devices, whoever raised them."""

    outcome: Outcome
    devices: frozenset[Device]
    texts: re.Pattern[str]


_ANYWHERE = frozenset(Device)
_MEMORY_TYPES = frozenset({"MemoryError", "OutOfMemoryError"})

_RULES = (
    _Rule(
        Outcome.OUT_OF_MEMORY,
        _ANYWHERE,
        re.compile(
            r"(CUDA|HIP) out of memory|CUDA error: out of memory|CUBLAS_STATUS_ALLOC_FAILED"
            r"|DefaultCPUAllocator: (can't allocate|not enough) memory|std::bad_alloc"
            r"|\[Errno 12\] Cannot allocate memory"
        ),
    ),
    _Rule(
        Outcome.DEVICE_FAILED,
        frozenset({Device.CUDA}),
        re.compile(
            r"no kernel image is available|CUDA driver version is insufficient|busy or unavailable"
            r"|Found no NVIDIA driver|NVIDIA driver on your system is too old|no CUDA-capable device"
            r"|Torch not compiled with CUDA enabled|No CUDA GPUs are available|driver initialization failed"
            r"|forward compatibility was attempted on non supported HW|system not yet initialized"
            r"|device lost|GPU is lost|fallen off the bus|uncorrectable ECC error|libcuda\.so"
        ),
    ),
    _Rule(
        Outcome.EMULATION_GAP,
        frozenset({Device.EMULATED}),
        re.compile(
            r"Found no NVIDIA driver|CUDA driver version is insufficient|Torch not compiled with CUDA enabled"
            r"|no CUDA-capable device|No CUDA GPUs are available|invalid device context|libcuda\.so"
            r"|Cannot initialize CUDA without|compiled without CUDA support|not linked with support for cuda"
            r"|Cannot access accelerator device when none is available|requires a CUDA or other accelerator backend"
            r"|but found some tensors to not be on a GPU|cannot be accessed from Triton"
            r"|from the 'CUDA' backend|0 active drivers|CUDA driver initialization failed|CUDA error:"
        ),
    ),
)
# Without a report only what was printed can tell; an exception's own line, not any mention of it.
_ERROR_LINE = re.compile(r"^.*(?:Error\b|Exception\b|terminate called|what\(\):).*$", re.MULTILINE)


def classify(
    ended: Ended, report: Report | None, *, device: Device, limits: Limits, printed: str = ""
) -> tuple[Outcome, str]:
    """The outcome of a run and one sentence on it.

    `report` is None for a command, and for a script that never came back to the child driver; `printed`
    is the end of what was written to stdout and stderr.
    """
    if report is not None and report.end == "raised":
        return _raised(report, device)
    ran_to_its_end = report is not None and report.end == "completed"
    if ended.reason is EndReason.TIMEOUT:
        if ran_to_its_end:
            return Outcome.TIMED_OUT, f"the script ended, its process did not within {limits.wall_s:g} s"
        return Outcome.TIMED_OUT, f"no end within {limits.wall_s:g} s"
    if ended.reason is EndReason.MEMORY:
        return Outcome.OUT_OF_MEMORY, f"used more than {_size(limits.bytes)} of memory"
    if ended.oom_killed and (ended.signal == "SIGKILL" or ended.returncode == _KILLED_IN_SHELL):
        return Outcome.OUT_OF_MEMORY, "killed by the system for want of memory"
    if ended.returncode == 0:
        return Outcome.COMPLETED, "ran to its end"
    if ended.returncode == _DECLINED:
        return Outcome.DECLINED, f"exit code {_DECLINED}: the repro says that it can't tell"
    if report is None:
        found = _by_texts(_ERROR_LINE.findall(printed), device)
        if found is not None:
            return found
    if ended.signal is not None:
        late = " after the script had ended" if ran_to_its_end else ""
        return Outcome.CRASHED, f"killed by {ended.signal}{late}"
    message = _one_line(report.message) if report is not None else ""
    return Outcome.EXITED, f"exit code {ended.returncode}" + (f": {message}" if message else "")


def not_started(command: str, why: str) -> tuple[Outcome, str, int]:
    """Outcome, sentence and a shell's exit code for a command that the environment does not have."""
    return Outcome.EXITED, f"{command} can't be started: {why}", _NOT_FOUND


def _raised(report: Report, device: Device) -> tuple[Outcome, str]:
    raised = report.exception
    detail = _titled(raised.name, raised.message) if raised is not None else "an unknown exception"
    if report.stage == "emulation":
        return Outcome.EMULATION_GAP, f"the stand-in for CUDA can't be set up: {detail}"
    for kind, message in report.chain:
        if kind.endswith("EmulationGap"):
            return Outcome.EMULATION_GAP, _titled(kind.rpartition(".")[2], message)
    # The exceptions it was raised `from` count; one that was being handled by chance does not.
    explicit = list(_causes(raised))
    for one in explicit:
        if not _MEMORY_TYPES.isdisjoint(kind.rpartition(".")[2] for kind in (one.type, *one.bases)):
            return Outcome.OUT_OF_MEMORY, _titled(one.name, one.message)
    found = _by_texts((_titled(one.name, one.message) for one in explicit), device)
    return found if found is not None else (Outcome.RAISED, detail)


def _by_texts(texts: Iterable[str], device: Device) -> tuple[Outcome, str] | None:
    candidates = list(texts)
    for rule in _RULES:
        if device in rule.devices:
            for text in candidates:
                if rule.texts.search(text):
                    return rule.outcome, _one_line(text)
    return None


def _causes(raised: RaisedException | None) -> Iterable[RaisedException]:
    while raised is not None:
        yield raised
        raised = raised.cause


def _titled(name: str, message: str) -> str:
    return f"{name}: {_one_line(message)}" if message.strip() else name


def _one_line(text: str, width: int = 300) -> str:
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} GiB"
