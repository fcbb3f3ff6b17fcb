"""The bisection to measure: its releases, locks and folders, and the warm-up."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from harness.bisection.ask import looked_up
from harness.environment import Workspace, read_pip_settings
from harness.environment.manifest import Ledger
from harness.environment.workspace import Location
from harness.question.releases import line_of
from harness.question.request import Request
from harness.session import local_session
from harness.settings import Settings

if TYPE_CHECKING:
    from harness.model import Lock

SUBJECT = "transformers"
ROOT = Path(__file__).parents[2]
_UNWANTED = ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "VIRTUAL_ENV", "HARNESS_PARAMS", "HARNESS_METRICS")
_SETTLE_S = 3.0
_KEPT_BY_UV = "environments-v2"  # where `uv run --with` keeps environments between calls


@frozen
class Task:
    """The bisection to measure: releases in order, the locks of the visited ones, and the first bad position."""

    releases: tuple[str, ...]
    locks: dict[str, Lock]
    first_bad: int
    repro: Path
    message: str
    python: Path

    def visited(self) -> tuple[str, ...]:
        """The releases that an ordinary bisection tries, in order."""
        low, high = 0, len(self.releases) - 1
        order = [low, high]
        while high - low > 1:
            middle = (low + high) // 2
            order.append(middle)
            low, high = (low, middle) if middle >= self.first_bad else (middle, high)
        return tuple(self.releases[position] for position in order)


class Place:
    """The folders of one benchmark. Nothing outside them is changed, except pip's cache."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.cache = root / "harness"
        self.results = root / "results"
        environ = {k: v for k, v in os.environ.items() if k not in _UNWANTED}
        environ.update(HARNESS_CACHE_DIR=str(self.cache), UV_CACHE_DIR=str(root / "uv"))
        # uv uses the indexes and folders in pip's settings, as the harness does.
        self.environ = {**environ, **read_pip_settings().as_uv_environment(environ)}

    def forget(self, *, bytecode_of: str = "") -> None:
        """Remove environments and results, and the bytecode of the releases of `bytecode_of`, if it is not "".

        A file's change time is also that of its last link. So what the harness knows of its wheels is noted again. It
        returns when the disk has settled: removing hundreds of thousands of files slows down what comes next.
        """
        workspace = Workspace(self.cache)
        if self.cache.is_dir():  # to name a folder of the workspace makes it, and only a new one is the harness's own
            for folder in workspace.environments.iterdir():
                Location(workspace, folder.name).remove()
        for folder in (self.results, self.root / "uv" / _KEPT_BY_UV):
            shutil.rmtree(folder, ignore_errors=True)
        for folder in (self.cache / "bytecode").glob(f"*/{bytecode_of}-*") if bytecode_of else ():
            shutil.rmtree(folder)
        os.sync()
        time.sleep(_SETTLE_S)
        if self.cache.is_dir():
            Ledger.of(workspace).below(workspace.wheels)


def prepare(place: Place, repro: Path, good: str, bad: str) -> Task:
    """Find the task with an unmeasured bisection, and warm the caches of the harness, uv and pip."""
    os.environ.update(place.environ)
    for name in _UNWANTED:
        os.environ.pop(name, None)
    session = local_session(Settings(results=place.results, device="cpu"))
    _, question = looked_up(session, Request(SUBJECT, str(repro), good=good, bad=bad))
    line = line_of(question, index=session.index, interpreter=session.interpreter)
    signature = question.repro.signature
    if line.bad is None or signature is None or signature.message is None:
        sys.exit("the benchmark needs a repro with a signature's message, and both ends")
    releases = line.names
    words = [
        SUBJECT,
        "--depth",
        "release",
        "--repro",
        str(repro),
        "--good",
        good,
        "--bad",
        bad,
        "--results",
        str(place.results),
    ]
    found = subprocess.run(
        [sys.executable, "-m", "harness", "bisect", *words, "--json"],
        env=place.environ, cwd=ROOT, stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    first_bad = releases.index(json.loads(found.stdout)["first_bad"])
    task = Task(releases, {}, first_bad, repro, signature.message, session.interpreter.path)
    prober = session.local
    near = prober.resolve(line.beside(None).at(prober, {SUBJECT: releases[line.bad]})).lock
    for release in task.visited():
        probe = line.beside(near).at(prober, {SUBJECT: release})
        lock = prober.resolve(probe).lock
        if lock is None:
            sys.exit(f"{SUBJECT} {release} can't be resolved")
        task.locks[release] = lock
        # The loops may visit other releases than the harness, whose bytecode and wheels must be cached, too.
        prober.execute(prober.prepare(probe))
    _warm_pip(task, place)
    return task


def _warm_pip(task: Task, place: Place) -> None:
    seen: set[str] = set()
    with tempfile.TemporaryDirectory(dir=place.root, prefix="pip-") as folder:
        subprocess.run([task.python, "-m", "venv", f"{folder}/venv"], env=place.environ, check=True)
        for number, lock in enumerate(task.locks.values()):
            new = [line for line in lock.as_requirements().splitlines() if line not in seen]
            seen.update(new)
            requirements = Path(folder) / f"{number}.txt"
            requirements.write_text("\n".join(new))
            command = [f"{folder}/venv/bin/python", "-m", "pip", "download", "--quiet", "--no-deps"]
            command += ["--dest", f"{folder}/wheels", "--requirement", str(requirements)]
            ended = subprocess.run(command, env=place.environ, capture_output=True, text=True, check=False)
            if ended.returncode != 0:
                sys.exit(f"pip download failed: {ended.stderr}")
