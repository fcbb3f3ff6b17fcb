"""A cluster on loopback: a real scheduler and real workers, a process each, as a person would start them."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from attrs import define, field
from support import ROOT

WAIT_S = 180  # a machine that runs other tests too is slow
# A worker on another kind of machine: Python reports a different machine in that process.
PRETEND = "import platform\nplatform.machine = lambda: 'riscv64'\n"
SMI = "#!/bin/sh\necho '0, {name}, 81920, 81038, 550.54.15, GPU-{name}, 8.0'\n"


def wait_for(condition, what: str = "it"):
    """Wait until a condition holds, and give its value."""
    until = time.monotonic() + WAIT_S
    while not (value := condition()):
        assert time.monotonic() < until, f"waited in vain for {what}"
        time.sleep(0.02)
    return value


@define
class Machines:
    """A scheduler, and workers that are added; each has folders of its own below `folder`."""

    folder: Path
    environ: dict[str, str]
    address: str = ""  # what is given as --scheduler
    processes: dict[str, subprocess.Popen[bytes]] = field(factory=dict)

    def start(self) -> None:
        """Start the scheduler, which chooses a free port."""
        options = ("--host", "127.0.0.1", "--port", 0, "--dashboard-address", ":0")
        self._start("scheduler", "dask_scheduler", *options)
        said = wait_for(lambda: re.search(r"Scheduler at:\s+(tcp://\S+)", self.log("scheduler")), "the scheduler")
        self.address = said[1]

    def add(self, name: str, *, gpu: str = "", pretends: bool = False) -> None:
        """Start a worker of one thread; `gpu` is the name of the one that its nvidia-smi lists."""
        here = self.folder / name
        here.mkdir(exist_ok=True)
        more = ["--resources", "gpu=1"] if gpu else []
        path = os.environ["PATH"]
        if gpu:
            (here / "nvidia-smi").write_text(SMI.format(name=gpu))
            (here / "nvidia-smi").chmod(0o755)
            path = f"{here}{os.pathsep}{path}"
        if pretends:
            (here / "pretend.py").write_text(PRETEND)
            more += ["--preload", str(here / "pretend.py")]
        options = ["--no-nanny", "--no-dashboard", "--nthreads", 1, "--name", name, "--local-directory", here, *more]
        own = {"HARNESS_CACHE_DIR": str(self.cache(name)), "PATH": path}
        self._start(name, "dask_worker", self.address, *options, **own)

    def cache(self, name: str) -> Path:
        """Where a worker builds and runs."""
        return self.folder / name / "cache"

    def wait_until_there(self, *names: str) -> None:
        """Wait until the scheduler has taken workers in."""
        for name in names:
            wait_for(lambda name=name: "Registered to" in self.log(name), f"worker {name}")

    def log(self, name: str) -> str:
        """What a process has printed."""
        return (self.folder / f"{name}.log").read_text()

    def worker_of(self, pid: int) -> str:
        """The name of the worker whose probe a process belongs to."""
        above = {process.pid for process in psutil.Process(pid).parents()}
        return next(name for name, process in self.processes.items() if process.pid in above)

    def kill(self, name: str) -> None:
        """End a process at once."""
        process = self.processes.pop(name)
        process.kill()
        process.wait(WAIT_S)

    def _start(self, name: str, program: str, *arguments: object, **environ: str) -> None:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("UV_", "PIP_", "HARNESS_"))}
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{program}", *map(str, arguments)],
                env={**kept, "PYTHONPATH": str(ROOT), **self.environ, **environ},
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )


@contextlib.contextmanager
def machines(folder: Path, environ: dict[str, str]) -> Iterator[Machines]:
    """A scheduler for a while, and whatever workers are added meanwhile."""
    started = Machines(folder, environ)
    try:
        started.start()
        yield started
    finally:
        for name in list(started.processes):
            started.kill(name)
