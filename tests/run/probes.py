"""Helpers of these tests: one short way to run a script, and to see whether a process is gone."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from attrs import fields_dict

from harness.model import Device, Repro
from harness.run.result import Ran
from harness.run.runner import Job, Place, Terms, run_repro

# Starts a grandchild that leaves its process group, session and parent; then waits with it.
DETACHED_GRANDCHILD = """
import os, time
def tell():
    with open(os.environ["PIDS"], "a") as file:
        file.write(f"{os.getpid()}\\n")
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        tell()
        time.sleep(1000)
    os._exit(0)
os.wait()
while not os.path.exists(os.environ["PIDS"]) or not os.path.getsize(os.environ["PIDS"]):
    time.sleep(0.01)
tell()
"""
LIMIT = "at the limit"
HANG = DETACHED_GRANDCHILD + f"print({LIMIT!r}, flush=True); time.sleep(1000)\n"


def limit_when_printed(patch: pytest.MonkeyPatch) -> None:
    """Let the time limit of a run come when it has printed `LIMIT`, and not before."""
    patch.setattr("harness.run.process.GUARD", Path(__file__).parent / "at_the_limit" / "guard.py")


def job(
    folder: Path,
    source: str = "",
    *,
    argv: tuple[str, ...] = (),
    name: str = "probe",
    params: dict[str, Any] | None = None,
    python: str = sys.executable,
    device: Device = Device.CPU,
    timeout: float = 60.0,
    memory: int | None = None,
    **more: Any,
) -> Job:
    """A job whose every file is below `folder`."""
    repro = Repro(name=name, digest="", source=source, argv=argv, params=params or {}, timeout=timeout, memory=memory)
    where = {name: more.pop(name) for name in fields_dict(Place) if name in more}
    # The variables of a job are those to add, of its terms a hash.
    terms = Terms(**{name: more.pop(name) for name in fields_dict(Terms) if name in more and name != "variables"})
    place = Place(Path(python), folder / "scratch", **where)
    return Job(repro, place, folder / "logs" / "log.gz", device, terms, **more)


def run(folder: Path, source: str = "", **more: Any) -> Ran:
    """Run a script or command once."""
    return run_repro(job(folder, source, **more))


def told_pids(path: Path, count: int) -> list[int]:
    """Wait until so many processes have written their ids."""
    until = time.monotonic() + 300
    while time.monotonic() < until:
        pids = path.read_text().split() if path.exists() else []
        if len(pids) == count:
            return [int(pid) for pid in pids]
        time.sleep(0.01)
    raise AssertionError(f"{count} processes were expected to start")


def is_gone(pid: int) -> bool:
    """Whether the process has ended."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def all_gone(pids: list[int]) -> bool:
    """Whether all have ended within five minutes."""
    until = time.monotonic() + 300
    while time.monotonic() < until:
        if all(is_gone(pid) for pid in pids):
            return True
        time.sleep(0.01)
    return False
