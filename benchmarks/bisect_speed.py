"""Compares the speed of one bisection by a loop with pip, a loop with uv, and the harness.

All three install the same locks, made once by the harness, and run the same repro with the same Python. The loops run
one probe after another. The harness is measured with its default number of lanes, and again with one lane. Unlike the
loops, it repeats the good side until a lucky run is ruled out. The loops visit the releases of an ordinary bisection
(both ends, then the middle, until the ends are neighbours), and judge by the exit status and the signature's message.

Warm are pip's download cache, uv's cache of wheels and index pages, and the harness's index pages and bytecode. Cold
are every environment and all results. The harness is also measured without the bytecode of the releases that are
bisected over, as if it had never run them. The same question is then asked again, when there is nothing left to run.
PYTHONDONTWRITEBYTECODE is removed from all environments, because it would make every run slower.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil  # type: ignore[import-untyped,unused-ignore]
from attrs import asdict, evolve

sys.path.insert(0, str(Path(__file__).parent.parent))  # import the harness of this checkout

from speed.task import ROOT, SUBJECT, Place, Task, prepare
from speed.ways import Measured, each_once, on_one_lane, to_lines, with_harness, with_pip, with_uv

if TYPE_CHECKING:
    from collections.abc import Sequence

TARGETS = {"pip": 8.0, "uv": 3.0}
TARGET_OWN_SHARE = 0.15
TARGET_AGAIN_S = 1.0
_AGAIN = "harness, asked again"
_EACH_ONCE = "harness, --confirm 0"  # as the loops, which the targets are about
_TO_LINES = "harness, to its lines"
_TARGET_REPEATED, _TARGET_TO_LINES = 2.0, 0.55  # of the loop with uv: how often as fast, and which share of its time
_ONE_LANE = "harness, one lane"  # with more lanes, the times of runs overlap and don't add up to the wall time


def measure(task: Task, place: Place, ways: Sequence[str], runs: int) -> dict[str, list[Measured]]:
    """Measure all ways in turn, `runs` times, so that a busy machine affects all of them equally."""
    functions = {
        "pip": with_pip,
        "uv": with_uv,
        "harness": with_harness,
        _AGAIN: with_harness,
        _ONE_LANE: on_one_lane,
        _EACH_ONCE: each_once,
        _TO_LINES: to_lines,
        "harness, new releases": with_harness,
    }
    measured: dict[str, list[Measured]] = {way: [] for way in ways}
    for number in range(1, runs + 1):
        for way in ways:
            if way != _AGAIN:
                place.forget(bytecode_of=SUBJECT if way.endswith("new releases") else "")
            before = psutil.cpu_times()
            result = functions[way](task, place)
            result = evolve(result, idle=_idle_since(before))
            measured[way].append(result)
            print(f"run {number}: {way}: {result.wall_s:.1f} s, {result.probes} probes", file=sys.stderr, flush=True)
    return measured


def _idle_since(before: Any) -> float:
    """The share of the time of all CPUs since then in which they had nothing to do; other processes are not told."""
    names = [name for name in before._fields if not name.startswith("guest")]
    now = psutil.cpu_times()
    spent: dict[str, float] = {name: getattr(now, name) - getattr(before, name) for name in names}
    return (spent["idle"] + spent.get("iowait", 0.0)) / sum(spent.values())


def report(task: Task, measured: dict[str, list[Measured]]) -> dict[str, Any]:
    """Print a table of medians, ratios to the harness, and the harness's own share; return them for JSON."""
    medians = {way: statistics.median(m.wall_s for m in results) for way, results in measured.items()}
    print(f"\n{SUBJECT} {task.releases[0]} .. {task.releases[-1]}, {len(task.releases)} releases; seconds, median")
    print(f"{'':24}{'wall':>8}{'probes':>8}{'x harness':>11}{'CPUs idle':>11}{'own share':>11}")
    ratios, shares = {}, {}
    for way, results in measured.items():
        ratios[way] = medians[way] / medians["harness"]
        told = [1 - m.repro_s / m.wall_s for m in results if m.repro_s is not None and way == _ONE_LANE]
        shares[way] = statistics.median(told) if told else math.nan
        share = f"{shares[way]:>11.0%}" if told else ""
        idle = statistics.median(m.idle for m in results)
        print(f"{way:24}{medians[way]:>8.1f}{results[0].probes:>8}{ratios[way]:>11.2f}{idle:>11.0%}{share}")
    for way, target in TARGETS.items():
        if way in ratios:
            ratio = medians[way] / medians[_EACH_ONCE]
            print(f"{way} / {_EACH_ONCE} {ratio:.2f}, target {target}: {'met' if ratio >= target else 'MISSED'}")
    if "uv" in medians:
        ratio, share_of_uv = medians["uv"] / medians["harness"], medians[_TO_LINES] / medians["uv"]
        verdict = "met" if ratio >= _TARGET_REPEATED else "MISSED"
        print(f"uv / harness {ratio:.2f}, target {_TARGET_REPEATED}: {verdict}")
        verdict = "met" if share_of_uv <= _TARGET_TO_LINES else "MISSED"
        print(f"{_TO_LINES} / uv {share_of_uv:.2f}, target at most {_TARGET_TO_LINES}: {verdict}")
    met = shares[_ONE_LANE] < TARGET_OWN_SHARE
    print(f"own share {shares[_ONE_LANE]:.0%}, target below {TARGET_OWN_SHARE:.0%}: {'met' if met else 'MISSED'}")
    again = medians[_AGAIN]
    verdict = "met" if again < TARGET_AGAIN_S else "MISSED"
    print(f"asked again {again:.2f} s, target below {TARGET_AGAIN_S} s: {verdict}")
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
    ways = ("pip", "uv", "harness", _AGAIN, _EACH_ONCE, _TO_LINES, _ONE_LANE, "harness, new releases")
    parser = argparse.ArgumentParser(description="One bisection by pip, by uv and by the harness, side by side.")
    parser.add_argument("--repro", type=Path, default=ROOT / "repros" / "whisper_lora_checkpointing.py")
    parser.add_argument("--good", default="4.50.3", help=f"release of {SUBJECT} (default: %(default)s)")
    parser.add_argument("--bad", default="4.57.6", help=f"release of {SUBJECT} (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=1, help="how often each way is measured (default: %(default)s)")
    parser.add_argument("--without", choices=("pip", "uv"), action="append", default=[], help="leave a loop out")
    parser.add_argument("--folder", type=Path, help="keep caches there for the next benchmark (default: none kept)")
    parser.add_argument("--output", type=Path, default=ROOT / "results" / "reports" / "bisect_speed.json")
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
