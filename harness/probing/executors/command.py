"""A command of the user as an executor: `sbatch --wait {script}`, `ssh gpu1 {script}`, `sky exec pool {script}`.

`{script}` is a file in the folder of a job, which answers it there. The folder is below the results, and the machine
must see it under the same path, with this Python: a cluster's shared file system does. A command that starts jobs
elsewhere copies the script's folder there and back. A job that is removed while it runs ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import define, evolve, field

from harness.errors import NoSpace, UserMistake
from harness.probing.executors import TRIES, Lost
from harness.probing.job import Result, read_problem
from harness.probing.node import DESCRIBE, Machine, read_machine
from harness.run.process import pause

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from harness.events import Reporter
    from harness.probing.job import ProbeJob

SCRIPT = "{script}"
_AT_ONCE = 4
_TICK_S = 0.1
_SETTLES_S = 3.0  # a shared file system shows a new file a little later
_ENDS_WITHIN_S = 10.0
_SCRIPT = """\
#!/bin/sh
folder=$(dirname "$0")
[ -e "$folder/{mark}" ] || folder={folder}
exec {python} -m harness job run "$folder"
"""


def takes(address: str) -> bool:
    """Whether this is a command line with the place of a script."""
    return SCRIPT in address


def connect(address: str, reporter: Reporter, *, lanes: int | None, folder: Path | None) -> CommandExecutor:  # noqa: ARG001
    """Check that the command is there; starts nothing. Raises `UserMistake` and `NoSpace`."""
    try:
        words = shlex.split(address)
    except ValueError as error:
        raise UserMistake(f"--on {address!r} can't be parsed: {error}") from error
    if shutil.which(words[0]) is None:
        raise UserMistake(f"--on: there is no program {words[0]}")
    try:
        root = (folder or Path.cwd()).absolute()
        root.mkdir(parents=True, exist_ok=True)
        jobs = Path(tempfile.mkdtemp(prefix="jobs-", dir=root))
    except OSError as error:
        raise NoSpace(f"can't write jobs below {root}: {error.strerror}") from error
    return CommandExecutor(address, tuple(words), jobs, lanes or _AT_ONCE)


@define
class Started:
    """A command that was started for a job; `ended` is when its end was first seen."""

    folder: Path
    process: subprocess.Popen[bytes]
    ended: float | None = None


@define
class CommandExecutor:
    """Starts a command for each job in a folder of its own below `folder`, at most `slots` of them at a time.

    The first job describes the machine where the command runs it, which stands for all of them.
    """

    address: str
    words: tuple[str, ...]
    folder: Path
    slots: int
    _known: dict[tuple[str, str], Machine | str] = field(factory=dict, init=False)
    _asking: threading.Lock = field(factory=threading.Lock, init=False)

    def machines(self, python: str, cache_tag: str) -> Mapping[str, Machine | str]:
        """The machine that a first job has described."""
        with self._asking:
            key = python, cache_tag
            if key not in self._known:
                self._known[key] = self._described(python, cache_tag)
            return {self.words[0]: self._known[key]}

    def _described(self, python: str, cache_tag: str) -> Machine | str:
        why = ""
        for _ in range(TRIES):
            folder = self._new_folder()
            (folder / DESCRIBE).write_text(json.dumps({"python": python, "cache_tag": cache_tag}), encoding="utf-8")
            started = self._start(folder, DESCRIBE)
            try:
                while (machine := read_machine(folder)) is None:
                    self._check(started)
                    pause(_TICK_S)
            except Lost as lost:
                why = str(lost)
            else:
                return evolve(machine, slots=self.slots, gpu_slots=self.slots if machine.gpus else 0)
            finally:
                self.cancel(started)
        return why

    def submit(self, job: ProbeJob, machines: Collection[str]) -> Started:  # noqa: ARG002 - it has but one
        """Write a job, and start the command for it. Raises `NoSpace`."""
        folder = self._new_folder()
        try:
            job.write(folder)
        except OSError as error:
            raise NoSpace(f"can't write a job to {folder}: {error.strerror}") from error
        return self._start(folder, "job.json")

    def poll(self, handle: Started) -> Result | None:
        """Return the result of a job, None until there is one; see `Executor`."""
        if (handle.folder / "result.json").is_file():
            return Result.read(handle.folder)
        if (problem := read_problem(handle.folder)) is not None:
            raise problem
        self._check(handle)
        return None

    def cancel(self, handle: Started) -> None:
        """Remove a job, which ends it wherever it runs, and end its command."""
        shutil.rmtree(handle.folder, ignore_errors=True)
        process = handle.process
        for sent in (signal.SIGTERM, signal.SIGKILL):
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, sent)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_ENDS_WITHIN_S)

    def close(self) -> None:
        """Remove all jobs."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _new_folder(self) -> Path:
        return Path(tempfile.mkdtemp(dir=self.folder))

    def _start(self, folder: Path, mark: str) -> Started:
        script = folder / "job"
        python, place = shlex.quote(sys.executable), shlex.quote(str(folder))
        script.write_text(_SCRIPT.format(mark=mark, folder=place, python=python), encoding="utf-8")
        script.chmod(0o755)
        words = [word.replace(SCRIPT, str(script)) for word in self.words]
        with (folder / "output").open("wb") as output:
            process: subprocess.Popen[Any] = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
        return Started(folder, process)

    def _check(self, started: Started) -> None:
        """Raise `Lost` if the command has ended for a while, although its job has no result."""
        code = started.process.poll()
        if code is None:
            return
        started.ended = started.ended or time.monotonic()
        if code or time.monotonic() - started.ended > _SETTLES_S:
            lines = (started.folder / "output").read_text(encoding="utf-8", errors="replace").split("\n")
            words = next((line.strip() for line in reversed(lines) if line.strip()), "no output")
            raise Lost(f"{self.words[0]} ended with exit code {code} and no result: {words[:300]}")
