"""Measures how often real bisections find the right release for a bug that shows in half of the runs.

Each bisection is a process of `harness bisect` with its default options, over tiny wheels of a local index: real uv,
real environments, real runs, and no network. The first bad release is a random one each time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # import the harness of this checkout, and the Wheelhouse of its tests

from wheelhouse import Wheelhouse

REPRO = """\
# /// script
# dependencies = ["dicey"]
#
# [tool.harness.subjects.dicey]
#
# [tool.harness.signature]
# exception = "RuntimeError"
# message = "unlucky"
# ///
import random

import dicey

if random.SystemRandom().random() < dicey.RATE:
    raise RuntimeError("unlucky")
"""
ENDS = {"no-failure": "no failure", "not-a-regression": "not a regression", "inconclusive": "not sure"}


class Ended(NamedTuple):
    """The result of one bisection: how it ended, the release that it named, its runs, and seconds."""

    end: str
    named: str
    runs: int
    seconds: float


def bisect(folder: Path, releases: int, change: int, rate: float, options: list[str]) -> Ended:
    """Bisect over `releases` releases, of which those from `change` on fail with the probability `rate`."""
    house = Wheelhouse(folder / "index")
    for number in range(releases):
        files = {"dicey.py": f"RATE = {rate if number >= change else 0.0}\n"}
        day = f"20{10 + number // 12}-{1 + number % 12:02}-01T12:00:00Z"
        house.add("dicey", f"1.{number}", files=files, uploaded=day)
    (folder / "repros").mkdir()
    (folder / "repros" / "dicey_step.py").write_text(REPRO, encoding="utf-8")
    command = [sys.executable, "-m", "harness", "bisect", "dicey", "--repro", "dicey_step", "--json", *options]
    environ = {
        **os.environ,
        **house.environ,
        "PYTHONPATH": str(ROOT),
        "HARNESS_CACHE_DIR": str(folder.parent / "cache"),
        "UV_CACHE_DIR": str(folder.parent / "uv"),
    }
    begun = time.monotonic()
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begun
    if not done.stdout.startswith("{"):
        return Ended(f"no answer (exit {done.returncode})", done.stderr.strip().splitlines()[-1][:160], 0, seconds)
    answer = json.loads(done.stdout)
    named = answer["first_bad"] or ""
    if answer["status"] == "found":
        end = "right" if named == f"1.{change}" else "wrong"
    else:
        end = ENDS.get(answer["status"], answer["status"])
    return Ended(end, named, answer["probes"], seconds)


def main() -> None:
    """Print a row for each bisection, and how often each result occurred."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bisections", type=int, default=20)
    parser.add_argument("--releases", type=int, default=30)
    parser.add_argument("--rate", type=float, default=0.5, help="how often the bug shows [0.5]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("options", nargs="*", help="options for `harness bisect`, after --")
    chosen = parser.parse_args()
    print("| bisection | change | end | named | runs | seconds |\n|---:|---|---|---|---:|---:|", flush=True)
    every: list[Ended] = []
    with tempfile.TemporaryDirectory() as temporary:
        for number in range(chosen.bisections):
            change = Random(f"{chosen.seed} {number}").randrange(1, chosen.releases)
            folder = Path(temporary) / str(number)
            folder.mkdir()
            one = bisect(folder, chosen.releases, change, chosen.rate, chosen.options)
            every.append(one)
            cells = (number + 1, f"1.{change}", one.end, one.named or "-", one.runs, f"{one.seconds:.0f}")
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
    counts = Counter(one.end for one in every)
    runs = sum(one.runs for one in every) / len(every)
    print(f"\n{', '.join(f'{count} {end}' for end, count in counts.most_common())}; {runs:.1f} runs on average")


if __name__ == "__main__":
    main()
