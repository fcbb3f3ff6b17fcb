"""Prepares the files and the request of a run and keeps its log, with the standard library only.

A node without the harness uses this same file, so runs start and end there in the same way. Python 3.9 and later.
"""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.run.scratch_folder import ScratchFolder

METRICS_LIMIT = 8 * 1024 * 1024
LOG_KEPT = 16 * 1024 * 1024
OUTPUT_LIMIT = 1024 * 1024 * 1024  # a run that prints more is killed
_GZIP_LEVEL = 3  # logs compress well at any level, and higher levels take seconds
_SHARE_OF_MEMORY = 0.9


def script_command(
    scratch: ScratchFolder,
    *,
    python: Path,
    inside: Path,
    name: str,
    source: str,
    capability: str | None,
    trace: frozenset[str] | None = None,
) -> list[str]:
    """Write a script and the child driver's job; returns the command that starts them.

    `inside` is the folder of the child driver; `capability` is the compute capability to emulate, None to run without
    the stand-in for CUDA.
    """
    script = scratch.script / name
    script.write_text(source, encoding="utf-8")
    emulation = {"package": str(inside / "emulation"), "capability": capability}
    job = {
        "script": str(script),
        "report": str(scratch.report),
        "emulation": emulation if capability is not None else None,
        "trace": sorted(trace) if trace is not None else None,
        "imports": str(scratch.imports) if trace is not None else None,
    }
    scratch.job.write_text(json.dumps(job), encoding="utf-8")
    return [str(python), str(inside / "child.py"), str(scratch.job)]


def repro_variables(params: Mapping[str, Any], device: str) -> dict[str, str]:
    """Return the environment variables for a repro: its parameters and its device."""
    told = {"HARNESS_PARAMS": json.dumps(params), "HARNESS_DEVICE": device}
    # A verdict on the CPU must not come from a GPU.
    return {**told, "CUDA_VISIBLE_DEVICES": ""} if device == "cpu" else told


class GuardLimits(NamedTuple):
    """The limits that the guard enforces: wall time in seconds, memory and output in bytes, and one CPU or all."""

    wall_s: float
    memory: int
    output: int = OUTPUT_LIMIT
    one_cpu: bool = False


def guard_request(
    argv: Sequence[str],
    limits: GuardLimits,
    *,
    env: Mapping[str, str],
    cwd: Path,
    output: Path,
    remove_if_orphaned: Path | None = None,
    sandbox: Sequence[str] = (),
) -> bytes:
    """Return the request for the guard (guard.py): what to start, and within which limits."""
    request = {
        "argv": list(argv),
        "env": dict(env),
        "cwd": str(cwd),
        "wall_s": limits.wall_s,
        "memory": limits.memory,
        "output": str(output),
        "log_keep": LOG_KEPT,
        "output_limit": limits.output,
        "one_cpu": limits.one_cpu,
        "sandbox": list(sandbox),
        "remove_if_orphaned": str(remove_if_orphaned) if remove_if_orphaned else "",
    }
    return json.dumps(request).encode() + b"\n"


def memory_limit(asked: int | None) -> int:
    """Return the memory limit of a process tree in bytes: `asked`, or else 90 % of the machine's memory."""
    return asked if asked is not None else int(physical_memory() * _SHARE_OF_MEMORY)


def physical_memory() -> int:
    """Return the memory of this machine, or of its container, in bytes."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            memory = min(memory, int(Path(limit).read_text()))
        except (OSError, ValueError):  # no such control group, or "max"
            continue
    return memory


def keep_log(log: BinaryIO, target: Path) -> None:
    """Compress a log to `target` atomically. Truncates a log that is longer than the guard writes."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, part = tempfile.mkstemp(prefix=".log", dir=target.parent)
    log.seek(0)
    try:
        with os.fdopen(handle, "wb") as raw, gzip.GzipFile("", "wb", _GZIP_LEVEL, raw, mtime=0) as packed:
            left = LOG_KEPT + 4096  # including the line that says how much was left out
            while left > 0 and (piece := log.read(min(left, 1 << 20))):
                packed.write(piece)
                left -= len(piece)
        Path(part).replace(target)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise
