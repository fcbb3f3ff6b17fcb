"""Known regressions of real packages, from the releases down to the lines: runs, seconds, and are the answers right?

Each case is bisected twice with all results forgotten. The first time every run is a fresh process (`--no-fork`), which
also warms the caches; the second time, with forks, is measured. A forked run must end as the fresh run of the same
mixture did: with the same outcome, exception and numbers. The same question again is measured, too.

    python benchmarks/real_culprits.py
    python benchmarks/real_culprits.py --cases checkpointing asfarray
    python benchmarks/real_culprits.py --list kept
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
from typing import Any

from attrs import asdict, define, field, frozen

ROOT = Path(__file__).parent.parent
_FORKED = "+fork"
_LIKE = 1e-4  # relative difference of numbers that counts as equal
_PACKAGE_PROOFS = 2
_MOST_AGAIN_S = 1.0  # for the same question again, with nothing to run

ASFARRAY = '''# /// script
# requires-python = ">=3.10"
# dependencies = ["numpy"]
#
# [tool.harness]
# device = "cpu"
# timeout = 60
#
# [tool.harness.signature]
# exception = "AttributeError"
# message = "asfarray"
# ///
"""Calls a function that numpy 2.0.0 removed."""

import numpy as np

print(np.asfarray([1, 2]).sum())
'''


@frozen
class Case:
    """One regression or fix: the arguments of `harness bisect`, what is known to be true, and the limits.

    `release` is the first release with the other verdict, `file` and `function` are the culprit. With `removed`, the
    culprit is a removed name, and `file` is the one that had it. `most_runs` limits the runs for the culprit, `most_s`
    the seconds of the whole command, and `most_fork_s` those of a forked run in the median (None: no limit).
    """

    name: str
    arguments: tuple[str, ...]
    release: str
    file: str
    function: str
    most_runs: float
    most_s: float | None = None
    most_fork_s: float | None = None
    removed: str = ""


def _cases(folder: Path) -> tuple[Case, ...]:
    (folder / "uses_asfarray.py").write_text(ASFARRAY, encoding="utf-8")
    whisper = "transformers/models/whisper/modeling_whisper.py"
    gemma = "transformers/models/gemma4/modeling_gemma4.py"
    trainer = "transformers/trainer.py"
    checkpointing = ("transformers", "--find-fix", "--bad", "4.57.6", "--good", "5.10.4")
    accumulation = ("transformers", "--repro", "gradient_accumulation", "--param")
    cache = ("transformers", "--repro", "shared_kv_cache")
    numpy = ("numpy", "--repro", str(folder / "uses_asfarray.py"), "--good", "1.26.4", "--bad", "2.1.0")
    step, batches = "Trainer.training_step", "Trainer.get_batch_samples"
    return (
        Case("checkpointing", ("transformers",), "4.53.0", whisper, "WhisperDecoder.forward", 12, 60, 0.6),
        Case("its fix", checkpointing, "5.0.0", whisper, "WhisperDecoder.forward", 40, 180),
        Case("tokenizer", ("transformers", "--repro", "trainer_tokenizer"), "5.0.0", trainer, "Trainer.__init__", 14.5),
        Case("full window", (*accumulation, "case=full-window"), "4.46.1", trainer, step, 12),
        Case("partial window", (*accumulation, "case=partial-window"), "4.55.0", trainer, step, 9),
        Case("window's fix", (*accumulation, "case=full-window-fix", "--find-fix"), "4.48.0", trainer, batches, 15),
        Case("shared cache", cache, "5.5.2", gemma, "Gemma4TextAttention.forward", 15.5),
        Case("asfarray", numpy, "2.0.0", "numpy/lib/type_check.py", "", 3 + _PACKAGE_PROOFS, removed="numpy.asfarray"),
    )


@define
class Measured:
    """What came of one case; times are in seconds."""

    name: str
    wall_s: float = math.nan
    release_runs: int = 0
    culprit_runs: int = 0
    forks: int = 0
    fork_s: float = math.nan
    fresh_s: float = math.nan
    compared: int = 0
    disagreements: list[str] = field(factory=list)
    proofs: int = 0
    failed_proofs: int = 0
    release: str = ""
    files: list[str] = field(factory=list)
    functions: list[str] = field(factory=list)
    removed: list[str] = field(factory=list)
    verdict: str = "no answer"
    again_s: float = math.nan


def measure(case: Case, folder: Path) -> Measured:
    """Run a case with fresh processes only, then with forks."""
    fresh, forked = folder / f"{case.name}-fresh", folder / f"{case.name}-forked"
    _bisect(case, fresh, folder, "--no-fork")
    wall_s = _bisect(case, forked, folder)
    found = Measured(case.name, wall_s, again_s=_bisect(case, forked, folder, is_again=True))
    _read_answer(case, forked, found)
    _compare(_observations(fresh), _observations(forked), found)
    return found


def _bisect(case: Case, results: Path, folder: Path, *more: str, is_again: bool = False) -> float:
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH")}
    env |= {"HARNESS_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(ROOT)}
    if not is_again:
        shutil.rmtree(results, ignore_errors=True)
    argv = [sys.executable, "-m", "harness", "bisect", *case.arguments, "--results", str(results), *more]
    begun = time.monotonic()
    with (folder / f"{results.name}.log").open("wb") as log:
        subprocess.run(argv, cwd=ROOT, env=env, stdout=log, stderr=subprocess.STDOUT, check=False)
    return time.monotonic() - begun


def _read_answer(case: Case, results: Path, found: Measured) -> None:
    for path in (results / "answers").glob("*.json"):
        answer = json.loads(path.read_text(encoding="utf-8"))["answer"]
        found.release_runs, found.culprit_runs = answer["probes"], answer["culprit_probes"]
        (guilty, *_) = [one for failure in answer["failures"] for one in failure.get("culprits") or ()] or [{}]
        found.release = next(iter(guilty.get("boundary", {}).get("suspects") or ()), "")
        findings = guilty["deeper"]["findings"] if guilty.get("deeper") else []
        proofs = [proof for finding in findings for proof in finding["proofs"]]
        found.proofs = sum(proof["verdict"] == proof["expected"] for proof in proofs)
        found.failed_proofs = len(proofs) - found.proofs
        found.files = sorted({file for finding in findings for file in finding.get("files") or ()})
        regions = [region for finding in findings for region in finding.get("regions") or ()]
        found.removed = sorted({f"{e['name']} {e['file']}" for e in guilty.get("evidence") or () if "name" in e})
        found.functions = sorted({region["function"] for region in regions})
    if found.release:
        is_release = found.release == case.release
        is_exact = is_release and found.files == [case.file] and case.function in found.functions
        if case.removed:
            is_exact = is_release and f"{case.removed} {case.file}" in found.removed
        is_wider = is_release and (not found.files or case.file in found.files)
        found.verdict = "exact" if is_exact else "wider" if is_wider else "wrong"


def _observations(results: Path) -> dict[str, dict[str, Any]]:
    """The observations below a folder of results, by the stem of their files."""
    paths = (results / "observations").rglob("*.json")
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}


def _compare(fresh: dict[str, dict[str, Any]], forked: dict[str, dict[str, Any]], found: Measured) -> None:
    """Compare each forked run with the fresh run of the same mixture, of either search."""
    forks = {key: seen for key, seen in forked.items() if key.endswith(_FORKED)}
    found.forks = len(forks)
    found.fork_s = statistics.median([seen["duration_s"] for seen in forks.values()] or [math.nan])
    others = (seen["duration_s"] for key, seen in forked.items() if key not in forks and not seen.get("trace"))
    found.fresh_s = statistics.median(list(others) or [math.nan])
    everything = {**forked, **fresh}
    for key, seen in forks.items():
        other = everything.get(key.removesuffix(_FORKED))
        if other is not None:
            found.compared += 1
            if not _is_same(seen, other):
                found.disagreements.append(key)


def _is_same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    raised = [(seen["outcome"], (seen.get("exception") or {}).get("type")) for seen in (one, other)]
    numbers = [{k: v for k, v in (seen.get("metrics") or {}).items() if "seconds" not in k} for seen in (one, other)]
    return raised[0] == raised[1] and numbers[0].keys() == numbers[1].keys() and all(
        math.isclose(value, numbers[1][name], rel_tol=_LIKE, abs_tol=1e-9) for name, value in numbers[0].items()
    )  # fmt: skip


def report(cases: list[Case], results: list[Measured]) -> bool:
    """Print a table and what misses its limit; returns whether nothing does."""
    heads = ("answer", "s", "releases", "culprit", "limit", "forks", "s a fork", "s a run", "proofs", "s again")
    print(f"{'case':16}" + "".join(f"{head:>10}" for head in heads))
    missed = []
    for case, found in zip(cases, results, strict=True):
        print(
            f"{case.name:16}{found.verdict:>10}{found.wall_s:>10.0f}{found.release_runs:>10}{found.culprit_runs:>10}"
            f"{case.most_runs:>10g}{found.forks:>10}{found.fork_s:>10.2f}{found.fresh_s:>10.1f}{found.proofs:>10}"
            f"{found.again_s:>10.2f}"
        )
        if found.verdict != "exact":
            where = f"{found.release} {', '.join(found.files)} {', '.join(found.functions)}"
            missed.append(f"{case.name}: {found.verdict}: {where}, not {case.release} {case.file} {case.function}")
        if found.failed_proofs:
            missed.append(f"{case.name}: {found.failed_proofs} proofs failed")
        if found.culprit_runs > case.most_runs:
            missed.append(f"{case.name}: {found.culprit_runs} runs for the culprit, limit {case.most_runs:g}")
        if found.again_s > _MOST_AGAIN_S:
            missed.append(f"{case.name}: {found.again_s:.2f} s for the same question again, limit {_MOST_AGAIN_S:g} s")
        if case.most_s is not None and found.wall_s > case.most_s:
            missed.append(f"{case.name}: {found.wall_s:.0f} s, limit {case.most_s:.0f} s")
        if case.most_fork_s is not None and found.fork_s > case.most_fork_s:
            missed.append(f"{case.name}: {found.fork_s:.2f} s for a forked run, limit {case.most_fork_s} s")
    compared = sum(found.compared for found in results)
    disagreements = [f"{found.name} {key}" for found in results for key in found.disagreements]
    print("The time of a run, in a fresh process, shows how fast and how quiet the machine was.")
    print(f"forked runs compared with fresh ones: {compared}, disagreements: {len(disagreements)}")
    for words in (*missed, *disagreements):
        print(f"MISSED {words}")
    return not missed and not disagreements


def main() -> int:
    """Parse the command line, run the cases, report."""
    parser = argparse.ArgumentParser(description="Known regressions, from the releases down to the lines.")
    parser.add_argument("--cases", nargs="*", metavar="NAME", help="the first words of the cases to run (default: all)")
    parser.add_argument(
        "--list", choices=("seen", "kept", "both"), help="run regressions.toml instead, a half of it or both"
    )
    parser.add_argument("--folder", type=Path, help="keep caches and results there (default: none kept)")
    parser.add_argument("--output", type=Path, default=ROOT / "results" / "reports" / "real_culprits.json")
    options = parser.parse_args()
    root = options.folder.absolute() if options.folder else Path(tempfile.mkdtemp(prefix="harness-bench-"))
    root.mkdir(parents=True, exist_ok=True)
    if options.list:
        words = [sys.executable, Path(__file__).with_name("regressions.py"), "--half", options.list, "--folder", root]
        return subprocess.run([*words, *(["--cases", *options.cases] if options.cases else [])], check=False).returncode
    try:
        cases = [one for one in _cases(root) if not options.cases or one.name.startswith(tuple(options.cases))]
        if not cases:
            parser.error(f"no such case; there are {', '.join(one.name for one in _cases(root))}")
        results = []
        for case in cases:
            print(f"{case.name} ...", file=sys.stderr, flush=True)
            results.append(measure(case, root))
        is_met = report(cases, results)
    finally:
        if options.folder is None:
            shutil.rmtree(root, ignore_errors=True)
    told = {"schema": 1, "cpus": os.cpu_count(), "cases": [asdict(found) for found in results]}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    print(f"written to {options.output}")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
