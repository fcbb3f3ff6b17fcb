"""Compares the speed of four workers and of one, with the same search over repros that sleep.

A scan runs every position, as many at a time as there are lanes. The scheduler and the workers, with one thread each,
are processes on this machine. Before the clock starts, environments are built and every worker has run once. The
remaining overhead is communication with the workers, starting Python, and a last round that is not full.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parent.parent))  # import the harness of this checkout

from attrs import evolve, field, frozen

from harness.events import SILENT, Event, Judged, Progress
from harness.model import Combination, Device, Judgement, Lock, Observation, Outcome, Repro, Verdict
from harness.model.repro import parse_repro
from harness.probing import Probe
from harness.probing.executors import RemoteProber
from harness.probing.executors.dask import connect
from harness.probing.lanes import Engine, Lanes
from harness.search import Grid
from harness.session import local_session
from harness.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

TARGET = 3.5
_REPRO = """\
# /// script
# dependencies = []
# ///
import json, os, time
time.sleep(json.loads(os.environ["HARNESS_PARAMS"])["seconds"])
"""
_START_S = 60.0


@frozen
class Counts:
    """A reporter that only counts runs, not answers from the store."""

    ran: list[str] = field(factory=list)

    def report(self, event: Event) -> None:
        """Count a run. Raises `SystemExit` if it is not good."""
        if not isinstance(event, Judged):
            return
        if event.judgement.verdict is not Verdict.GOOD:
            raise SystemExit(f"a repro that only sleeps did not end well: {event.observation.detail}")
        if not event.cached:
            self.ran.append(event.label)


@contextlib.contextmanager
def cluster(folder: Path, workers: int) -> Iterator[str]:
    """Start a scheduler and workers on loopback; yields the scheduler's address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    root = str(Path(__file__).parent.parent)
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environ |= {"HARNESS_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": root}
    commands = [["dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--dashboard-address", ":0"]]
    options = ["--no-nanny", "--no-dashboard", "--nthreads", "1", "--local-directory", str(folder)]
    commands += [["dask_worker", address, *options] for _ in range(workers)]
    started = [
        subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{program}", *arguments],
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for program, *arguments in commands
    ]
    try:
        yield address
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(_START_S)


def measured(folder: Path, workers: int, probes: int, seconds: float) -> dict[str, Any]:
    """Measure the wall time (seconds) of the whole search on a warm cluster with this number of workers."""
    session = local_session(Settings(results=folder / f"results-{workers}"))
    interpreter = session.interpreter
    lock = Lock(python=interpreter.version, platform=interpreter.platform, pins=())
    repro = parse_repro(_REPRO, name="sleeps")
    with cluster(folder, workers) as address:
        until = time.monotonic() + _START_S
        while True:
            with contextlib.suppress(Exception):
                executor = connect(address, SILENT, lanes=None, folder=None)
                break
            if time.monotonic() > until:
                raise SystemExit("the scheduler does not start")
        try:
            executor.client.wait_for_workers(workers, timeout=_START_S)
            prober = RemoteProber.over(executor, session.local, SILENT)
            lanes = Lanes(prober.slots(Device.CPU))
            try:
                warm_up = evolve(repro, params={"seconds": 2.0})
                drive(prober, lanes, lock, warm_up, workers)
                begun = time.monotonic()
                ran = drive(prober, lanes, lock, evolve(repro, params={"seconds": seconds}), probes)
                wall = time.monotonic() - begun
            finally:
                lanes.close()
        finally:
            executor.close()
    if ran != probes:
        raise SystemExit(f"{ran} probes were run, not {probes}")
    return {"workers": workers, "lanes": lanes.count, "probes": ran, "sleep_s": seconds, "wall_s": round(wall, 2)}


def drive(prober: RemoteProber, lanes: Lanes, lock: Lock, repro: Repro, count: int) -> int:
    """Run every position once; return the number of runs."""

    def probe_of(position: int) -> Probe:
        combination = Combination(python=lock.python, requirements=())
        return Probe(repro, combination, attempt=position, lock=lock)

    def judged(_: int, observation: Observation, cached: bool) -> Judgement:  # noqa: ARG001
        good = observation.outcome is Outcome.COMPLETED
        return Judgement(Verdict.GOOD if good else Verdict.SKIP, observation.detail)

    counts = Counts()
    Engine(prober, lanes, probe_of, str, judged, counts, Progress).drive(Grid(count))
    return len(counts.ran)


def main() -> None:
    """Measure both, and print a table and JSON; the exit code is 1 if the target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--probes", type=int, default=16, help="how many repros are run [16]")
    parser.add_argument("--sleep", type=float, default=4.0, help="seconds that each of them sleeps [4]")
    parser.add_argument("--workers", type=int, default=4, help="how many workers are compared with one [4]")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cluster-speed-") as folder:
        os.environ["HARNESS_CACHE_DIR"] = str(Path(folder) / "cache")
        rows = [measured(Path(folder), workers, asked.probes, asked.sleep) for workers in (1, asked.workers)]
    ratio = rows[0]["wall_s"] / rows[1]["wall_s"]
    rounds = math.ceil(asked.probes / asked.workers)
    for row in rows:
        print(f"{row['workers']} workers: {row['wall_s']:.1f} s for {row['probes']} probes of {asked.sleep:g} s")
    print(f"{ratio:.2f} times as fast (at most {asked.probes / rounds:.2f}; the aim is {TARGET})")
    print(json.dumps({"rows": rows, "ratio": round(ratio, 2), "target": TARGET, "cpus": os.cpu_count()}))
    if ratio < TARGET:
        sys.exit(1)


if __name__ == "__main__":
    main()
