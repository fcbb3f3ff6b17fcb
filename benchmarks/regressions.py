"""Regressions of well-known packages, half of them kept aside from development: release, file or name, lines, runs.

The list is `regressions.toml`, with the truth of each case. Caches stay warm between the cases of one `--folder`, and
results are forgotten.

    python benchmarks/regressions.py --half kept
    python benchmarks/regressions.py --cases nx-info string-dtype
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
import tomllib
from pathlib import Path
from typing import Any

from attrs import asdict, define, frozen

HERE = Path(__file__).parent
_MOST_BESIDES = 10  # as in harness.model.culprit


@frozen
class Case:
    """One regression and its truth: `file` and `function`, or the `removed` name, or none for a compiled cause."""

    name: str
    package: str
    good: str
    bad: str
    release: str
    code: str
    exception: str
    message: str
    file: str = ""
    function: str = ""
    removed: str = ""
    along: tuple[str, ...] = ()
    seen: bool = False

    @property
    def script(self) -> str:
        """The repro, as a catalogue would have it."""
        along = "".join(f', "{one}"' for one in self.along)
        return (
            '# /// script\n# requires-python = ">=3.10"\n'
            f'# dependencies = ["{self.package}"{along}]\n#\n'
            '# [tool.harness]\n# device = "cpu"\n# timeout = 60\n#\n'
            f'# [tool.harness.subjects.{self.package}]\n# good = "{self.good}"\n# bad = "{self.bad}"\n#\n'
            f'# [tool.harness.signature]\n# exception = "{self.exception}"\n# message = "{self.message}"\n'
            f"# ///\n{self.code}"
        )


@define
class Measured:
    """What came of one case: `place` and `lines` say how well the cause was named; runs are those below the release.

    `proved`: shown both ways, and nothing smaller was enough.
    """

    name: str
    release: str = ""
    place: str = "none"
    lines: str = ""
    forked: int = 0
    fresh: int = 0
    seconds: float = math.nan
    proved: bool = False
    said: str = ""


def cases() -> tuple[Case, ...]:
    """All cases of the list."""
    read = tomllib.loads((HERE / "regressions.toml").read_text(encoding="utf-8"))
    return tuple(
        Case(name, along=tuple(told.pop("with", ())), **{**told, "code": told["code"].lstrip()})
        for name, told in read.items()
    )


def measure(case: Case, folder: Path) -> Measured:
    """Bisect a case from its releases down to the lines, with all results forgotten."""
    script, results = folder / f"{case.name.replace('-', '_')}.py", folder / f"{case.name}-results"
    script.write_text(case.script, encoding="utf-8")
    shutil.rmtree(results, ignore_errors=True)
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH")}
    env |= {"PYTHONPATH": str(HERE.parent)}
    env.setdefault("HARNESS_CACHE_DIR", str(folder / "cache"))
    argv = [sys.executable, "-m", "harness", "bisect", case.package, "--repro", str(script), "--results", str(results)]
    begun = time.monotonic()
    with (folder / f"{case.name}.log").open("wb") as log:
        subprocess.run(argv, cwd=folder, env=env, stdout=log, stderr=subprocess.STDOUT, check=False)
    found = Measured(case.name, seconds=time.monotonic() - begun)
    for path in (results / "answers").glob("*.json"):
        _judge(case, json.loads(path.read_text(encoding="utf-8"))["answer"], found)
    keys = [path.stem for path in (results / "observations").rglob("*.json")]
    found.forked = sum(key.endswith("+fork") for key in keys)
    found.fresh = max(found.fresh - found.forked, 0)
    return found


def _judge(case: Case, answer: dict[str, Any], found: Measured) -> None:
    """Compare an answer with the truth."""
    guilty: dict[str, Any] = next(
        (one for failure in answer.get("failures") or () for one in failure.get("culprits") or ()), {}
    )
    told = next(iter(guilty.get("boundary", {}).get("suspects") or ()), "")
    found.release = "right" if told == case.release else f"{told}, not {case.release}" if told else ""
    found.fresh = answer.get("culprit_probes", 0)
    findings = guilty["findings"]
    finest = findings[-1] if findings else {}
    files, regions = finest.get("files") or [], finest.get("regions") or []
    evidence = {one.get("name", "") for one in guilty.get("evidence") or ()}
    causes = " · ".join(finest.get("causes") or ())
    compiled = bool(finest.get("compiled"))
    proofs = finest.get("proofs") or []
    held = all(proof["verdict"] == proof["expected"] and proof.get("besides", 0) <= _MOST_BESIDES for proof in proofs)
    found.proved = bool(proofs) and held and finest.get("is_minimal", True)
    if case.removed:
        found.place = "name" if case.removed in evidence else "none"
    elif case.file:
        found.place = "file" if case.file in files and len(files) <= 3 else "wider" if case.file in files else "none"
    else:
        found.place = "compiled" if compiled else "none"
    functions = {region["function"] for region in regions}
    if regions and case.function:
        ends = {name.rpartition(".")[2] for name in functions} | functions
        alone = functions <= {case.function} or (case.function in ends and len(functions) == 1)
        found.lines = "exact" if alone else "wider" if case.function in ends else "other"
    elif regions:
        found.lines = f"{len(regions)} regions"
    where = ", ".join(f"{one['file']}:{one['after'][0]}-{one['after'][1]} {one['function']}" for one in regions[:4])
    found.said = " | ".join(
        one for one in (causes, where or ", ".join(files[:4]), " · ".join(finest.get("notes") or ())) if one
    )


def report(found: list[Measured]) -> None:
    """Print a table and the figures of all cases."""
    print(f"{'case':22}{'release':10}{'place':10}{'lines':10}{'forked':>7}{'fresh':>6}{'s':>6} proved")
    for one in found:
        print(
            f"{one.name:22}{one.release:10}{one.place:10}{one.lines:10}{one.forked:>7}{one.fresh:>6}{one.seconds:>6.0f}"
            f" {'yes' if one.proved else 'no'}"
        )
    if found:
        print(
            f"releases {sum(one.release == 'right' for one in found)} of {len(found)}, "
            f"file, name or compiled part {sum(one.place in ('name', 'file', 'compiled') for one in found)}, "
            f"median {statistics.median(one.forked for one in found):g} forked and "
            f"{statistics.median(one.fresh for one in found):g} fresh runs, "
            f"{statistics.median(one.seconds for one in found):.0f} s"
        )


def main() -> int:
    """Parse the command line, run the cases, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("seen", "kept", "both"), default="both", help="development used `seen`")
    parser.add_argument("--cases", nargs="*", metavar="NAME", help="the cases to run")
    parser.add_argument("--folder", type=Path, help="keep caches and results there (default: none kept)")
    parser.add_argument("--out", type=Path, help="a file for the results as JSON")
    options = parser.parse_args()
    root = options.folder.absolute() if options.folder else Path(tempfile.mkdtemp(prefix="harness-bench-"))
    root.mkdir(parents=True, exist_ok=True)
    found = []
    for case in cases():
        if options.half == "both" or case.seen is (options.half == "seen"):
            if options.cases and case.name not in options.cases:
                continue
            one = measure(case, root)
            found.append(one)
            print(f"{one.name}: {one.release}, {one.place}, {one.lines}: {one.said}", file=sys.stderr, flush=True)
    report(found)
    if options.out:
        options.out.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n", encoding="utf-8")
    if options.folder is None:
        shutil.rmtree(root, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
