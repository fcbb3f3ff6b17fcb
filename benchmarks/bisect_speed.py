"""One bisection three ways, side by side: a loop with pip, a loop with uv, the harness.

All three install the same locks, made once by the harness, and run the same repro with the same Python, one probe
after another. The loops visit what an ordinary bisection visits: both ends, then the middle, until two neighbours
are left; they judge by the exit status and by the signature's message.

What is warm: pip's cache of downloads, uv's cache of wheels and index pages, the harness's index pages and bytecode.
What is cold: every environment, and all results. The harness is measured a second time without the bytecode of the
releases that are bisected over, as if it had never met them. PYTHONDONTWRITEBYTECODE is removed from the environment
of all of them: it would make each first run slower, and every later one too.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uv
from attrs import asdict, field, frozen

sys.path.insert(0, str(Path(__file__).parent.parent))  # the harness of this checkout, installed or not

from harness.environment import read_pip_settings
from harness.model import Device
from harness.planning.plan import make_plan
from harness.request.question import Question
from harness.request.repros import find_repro
from harness.session import local_session
from harness.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness.model import Lock

SUBJECT = "transformers"
TARGETS = {"pip": 8.0, "uv": 2.5}
TARGET_OWN_SHARE = 0.15


@frozen
class Task:
    """The bisection that is measured: releases in order, their locks, the position of the first bad one."""

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


@frozen
class Measured:
    """One way's wall time in seconds over all steps; `repro_s` is what of it the repro itself took."""

    wall_s: float
    probes: int
    repro_s: float | None = None
    detail: dict[str, Any] = field(factory=dict)


class Place:
    """The folders of one benchmark: nothing outside them is changed but pip's cache."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.cache = root / "harness"
        self.results = root / "results"
        environ = {k: v for k, v in os.environ.items() if k not in _UNWANTED}
        environ.update(HARNESS_CACHE_DIR=str(self.cache), UV_CACHE_DIR=str(root / "uv"))
        # The loop with uv finds the indexes and folders that pip is set up with, as the harness does.
        self.environ = {**environ, **read_pip_settings().as_uv_environment(environ)}

    def forget(self, *, bytecode_of: str = "") -> None:
        """Remove environments and results; with a project, the bytecode of its releases too."""
        for folder in (
            self.results,
            self.cache / "environments",
            self.cache / "pycache",
            self.root / "uv" / _KEPT_BY_UV,
        ):
            shutil.rmtree(folder, ignore_errors=True)
        for folder in (self.cache / "bytecode").glob(f"*/{bytecode_of}-*") if bytecode_of else ():
            shutil.rmtree(folder)


_UNWANTED = ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "VIRTUAL_ENV", "HARNESS_PARAMS", "HARNESS_METRICS")
_KEPT_BY_UV = "environments-v2"  # where `uv run --with` keeps environments between calls


def with_pip(task: Task, place: Place) -> Measured:
    """A fresh `python -m venv` and `pip install` for each release."""

    def step(lock: Path, folder: Path) -> list[list[str | Path]]:
        python = folder / "bin" / "python"
        install: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--requirement", lock]
        return [[task.python, "-m", "venv", folder], install, [python, task.repro]]

    return _loop(task, place, step)


def with_uv(task: Task, place: Place) -> Measured:
    """A fresh isolated `uv run` for each release."""

    def step(lock: Path, _folder: Path) -> list[list[str | Path]]:
        options: list[str | Path] = ["--quiet", "--no-project", "--isolated"]
        options += ["--python", task.python, "--with-requirements", lock]
        return [[uv.find_uv_bin(), "run", *options, "python", task.repro]]

    return _loop(task, place, step)


def with_harness(task: Task, place: Place) -> Measured:
    """`harness bisect`, down to the release as the loops go, with no results and no environments."""
    words = [
        SUBJECT,
        "--depth",
        "release",
        "--repro",
        str(task.repro),
        "--good",
        task.releases[0],
        "--bad",
        task.releases[-1],
    ]
    command = [sys.executable, "-m", "harness", "bisect", *words, "--json", "--results", str(place.results)]
    begun = time.monotonic()
    ended = subprocess.run(command, env=place.environ, cwd=_ROOT, capture_output=True, text=True, check=False)
    wall_s = time.monotonic() - begun
    if ended.returncode != 0:
        sys.exit(f"harness bisect ended with {ended.returncode}: {ended.stderr}{ended.stdout}")
    answer = json.loads(ended.stdout)
    _check(task, answer["first_bad"])
    setup = [json.loads(path.read_text())["setup_s"] for path in place.results.glob("observations/*/*.json")]
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


_ROOT = Path(__file__).parent.parent


def _loop(task: Task, place: Place, step: Callable[[Path, Path], list[list[str | Path]]]) -> Measured:
    """An ordinary bisection, one release after another; removing the environments is not measured."""
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


def prepare(place: Place, repro: Path, good: str, bad: str) -> Task:
    """The task, by an unmeasured bisection of the harness; warms its caches, uv's and pip's."""
    os.environ.update(place.environ)
    for name in _UNWANTED:
        os.environ.pop(name, None)
    session = local_session(Settings(results=place.results))
    question = Question(SUBJECT, find_repro(str(repro)), good=good, bad=bad)
    plan = make_plan(question, index=session.index, interpreter=session.interpreter, device=Device.CPU)
    signature = plan.repro.signature
    if plan.bad is None or signature is None or signature.message is None:
        sys.exit("the benchmark needs a repro with a signature's message, and both ends")
    releases = tuple(str(release.version) for release in plan.releases)
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
        env=place.environ, cwd=_ROOT, stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    first_bad = releases.index(json.loads(found.stdout)["first_bad"])
    task = Task(releases, {}, first_bad, repro, signature.message, session.interpreter.path)
    near = session.local.resolve(plan.probe(plan.bad, None)).lock
    for release in task.visited():
        lock = session.local.resolve(plan.probe(releases.index(release), near)).lock
        if lock is None:
            sys.exit(f"{SUBJECT} {release} can't be resolved")
        task.locks[release] = lock
        # The loop may visit other releases than the harness, whose bytecode and wheels are to be as warm.
        probe = plan.probe(releases.index(release), near)
        session.local.execute(session.local.prepare(probe))
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


def measure(task: Task, place: Place, ways: Sequence[str], runs: int) -> dict[str, list[Measured]]:
    """All ways in turn, `runs` times, so that a busy machine troubles all of them alike."""
    functions = {"pip": with_pip, "uv": with_uv, "harness": with_harness, "harness, new releases": with_harness}
    measured: dict[str, list[Measured]] = {way: [] for way in ways}
    for number in range(1, runs + 1):
        for way in ways:
            place.forget(bytecode_of=SUBJECT if way.endswith("new releases") else "")
            result = functions[way](task, place)
            measured[way].append(result)
            print(f"run {number}: {way}: {result.wall_s:.1f} s, {result.probes} probes", file=sys.stderr, flush=True)
    return measured


def report(task: Task, measured: dict[str, list[Measured]]) -> dict[str, Any]:
    """Medians, ratios to the harness, and its own share; printed as a table and returned for JSON."""
    medians = {way: statistics.median(m.wall_s for m in results) for way, results in measured.items()}
    print(f"\n{SUBJECT} {task.releases[0]} .. {task.releases[-1]}, {len(task.releases)} releases; seconds, median")
    print(f"{'':24}{'wall':>8}{'probes':>8}{'x harness':>11}{'own share':>11}")
    ratios, shares = {}, {}
    for way, results in measured.items():
        ratios[way] = medians[way] / medians["harness"]
        told = [1 - m.repro_s / m.wall_s for m in results if m.repro_s is not None]
        shares[way] = statistics.median(told) if told else math.nan
        share = f"{shares[way]:>11.0%}" if told else ""
        print(f"{way:24}{medians[way]:>8.1f}{results[0].probes:>8}{ratios[way]:>11.2f}{share}")
    for way, target in TARGETS.items():
        if way in ratios:
            print(f"{way} / harness {ratios[way]:.2f}, target {target}: {'met' if ratios[way] >= target else 'MISSED'}")
    met = shares["harness"] < TARGET_OWN_SHARE
    print(f"own share {shares['harness']:.0%}, target below {TARGET_OWN_SHARE:.0%}: {'met' if met else 'MISSED'}")
    print((__doc__ or "").partition("\n\n")[2])
    return {
        "schema": 1,
        "subject": SUBJECT,
        "releases": task.releases,
        "visited_by_loops": task.visited(),
        "cpus": os.cpu_count(),
        "load_at_end": os.getloadavg(),
        "median_s": medians,
        "ratio_to_harness": ratios,
        "own_share": {way: share for way, share in shares.items() if not math.isnan(share)},
        "runs": {way: [asdict(m) for m in results] for way, results in measured.items()},
    }


def main() -> None:
    """Parse the command line, warm up, measure, report."""
    ways = ("pip", "uv", "harness", "harness, new releases")
    parser = argparse.ArgumentParser(description="One bisection by pip, by uv and by the harness, side by side.")
    parser.add_argument("--repro", type=Path, default=_ROOT / "repros" / "whisper_lora_checkpointing.py")
    parser.add_argument("--good", default="4.50.3", help=f"release of {SUBJECT} (default: %(default)s)")
    parser.add_argument("--bad", default="4.57.6", help=f"release of {SUBJECT} (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=1, help="how often each way is measured (default: %(default)s)")
    parser.add_argument("--without", choices=("pip", "uv"), action="append", default=[], help="leave a loop out")
    parser.add_argument("--folder", type=Path, help="keep caches there for the next benchmark (default: none kept)")
    parser.add_argument("--output", type=Path, default=_ROOT / "results" / "reports" / "bisect_speed.json")
    options = parser.parse_args()
    if options.runs < 1:
        parser.error("--runs must be 1 or more")
    if options.folder is not None:
        options.folder.mkdir(parents=True, exist_ok=True)
    root = options.folder.absolute() if options.folder else Path(tempfile.mkdtemp(prefix="harness-bench-"))
    try:
        place = Place(root)
        place.forget()
        print("warming up ...", file=sys.stderr, flush=True)
        task = prepare(place, options.repro.absolute(), options.good, options.bad)
        chosen = [way for way in ways if way not in options.without]
        told = report(task, measure(task, place, chosen, options.runs))
    finally:
        if options.folder is None:
            shutil.rmtree(root, ignore_errors=True)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(told, indent=1) + "\n")
    print(f"written to {options.output}")


if __name__ == "__main__":
    main()
