"""Three ways to run the same bisection: a loop with pip, a loop with uv, and the harness."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uv
from attrs import field, frozen

from speed.task import ROOT, SUBJECT, Place, Task

if TYPE_CHECKING:
    from collections.abc import Callable


@frozen
class Measured:
    """The wall time of one way over all steps, in seconds; `repro_s` is the part of the repro itself.

    `idle` is the share of the time of all CPUs in which they had nothing to do, on a machine that does nothing else.
    """

    wall_s: float
    probes: int
    repro_s: float | None = None
    detail: dict[str, Any] = field(factory=dict)
    idle: float = 0.0


def with_pip(task: Task, place: Place) -> Measured:
    """Bisect with a fresh `python -m venv` and `pip install` for each release."""

    def step(lock: Path, folder: Path) -> list[list[str | Path]]:
        python = folder / "bin" / "python"
        install: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--requirement", lock]
        return [[task.python, "-m", "venv", folder], install, [python, task.repro]]

    return _loop(task, place, step)


def with_uv(task: Task, place: Place) -> Measured:
    """Bisect with a fresh, isolated `uv run` for each release."""

    def step(lock: Path, _folder: Path) -> list[list[str | Path]]:
        options: list[str | Path] = ["--quiet", "--no-project", "--isolated"]
        options += ["--python", task.python, "--with-requirements", lock]
        return [[uv.find_uv_bin(), "run", *options, "python", task.repro]]

    return _loop(task, place, step)


def on_one_lane(task: Task, place: Place) -> Measured:
    """As `with_harness` with one lane: then the time that is not spent in runs is that of the harness itself."""
    return with_harness(task, place, "--lanes", "1")


def each_once(task: Task, place: Place) -> Measured:
    """As `with_harness`, without the repetitions that rule out a lucky run: what the loops do."""
    return with_harness(task, place, "--confirm", "0")


def to_lines(task: Task, place: Place) -> Measured:
    """As `with_harness`, down to the lines, with their proofs; the loops find only the release."""
    return with_harness(task, place, "--depth", "region")


def with_harness(task: Task, place: Place, *options: str) -> Measured:
    """Bisect with `harness bisect`, to the release unless `options` say otherwise, since the loops find that."""
    words = [
        *(() if "--depth" in options else ("--depth", "release")),
        *options,
        SUBJECT,
        "--repro",
        str(task.repro),
        "--good",
        task.releases[0],
        "--bad",
        task.releases[-1],
    ]
    command = [sys.executable, "-m", "harness", "bisect", *words, "--json", "--results", str(place.results)]
    begun = time.monotonic()
    ended = subprocess.run(command, env=place.environ, cwd=ROOT, capture_output=True, text=True, check=False)
    wall_s = time.monotonic() - begun
    if ended.returncode != 0:
        sys.exit(f"harness bisect ended with {ended.returncode}: {ended.stderr}{ended.stdout}")
    answer = json.loads(ended.stdout)
    _check(task, answer["first_bad"])
    setup = [json.loads(path.read_text()).get("setup_s", 0.0) for path in place.results.glob("observations/*/*.json")]
    return Measured(
        wall_s,
        answer["probes"],
        repro_s=sum(step["seconds"] for step in answer["steps"]),
        detail={
            "answer_wall_s": answer["wall_s"],
            "setup_s": setup,
            "steps": [[step["release"], step["verdict"], step["seconds"]] for step in answer["steps"]],
        },
    )


def _loop(task: Task, place: Place, step: Callable[[Path, Path], list[list[str | Path]]]) -> Measured:
    """Bisect one release after another; removing the environments is not measured."""
    wall_s, verdicts, parts = 0.0, {}, []
    for release in task.visited():
        with tempfile.TemporaryDirectory(dir=place.root, prefix="step-") as folder:
            lock = Path(folder) / "lock.txt"
            lock.write_text(task.locks[release].as_requirements())
            commands = step(lock, Path(folder) / "venv")
            spent = []
            for number, command in enumerate(commands, start=1):
                begun = time.monotonic()
                ended = subprocess.run(
                    command, env=place.environ, cwd=folder, capture_output=True, text=True, check=False
                )
                spent.append(time.monotonic() - begun)
                if number < len(commands) and ended.returncode != 0:
                    sys.exit(f"{release}: {command} failed: {ended.stderr}")
            wall_s += sum(spent)
            parts.append([release, *(round(seconds, 2) for seconds in spent)])
        if ended.returncode != 0 and task.message not in ended.stderr:
            sys.exit(f"{release} failed in another way: {ended.stderr[-2000:]}")
        verdicts[release] = ended.returncode != 0
    _check(task, next(release for release in task.releases if verdicts.get(release)))
    return Measured(wall_s, len(verdicts), detail={"steps": parts})


def _check(task: Task, first_bad: str) -> None:
    if first_bad != task.releases[task.first_bad]:
        sys.exit(f"{first_bad} is not the {task.releases[task.first_bad]} that the warm-up found")
