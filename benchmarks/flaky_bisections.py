"""Measures how often real bisections find the right release for a bug that shows in half of the runs.

Each bisection is a process of `harness bisect` with its default options, over tiny wheels of a local index: real uv,
real environments, real runs, and no network. The first bad release is a random one each time. There is one kind for
each way to ask: between releases of the package, between two lists of packages with a project's tests, and between two
commits of the package's repository. `--bug` says what its luck depends on: a random number, a checksum of the path of
the module, the order of hashes, or a random number that another package drew when it was imported.

    python benchmarks/flaky_bisections.py --kind project --releases 14 --bisections 30
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
import dicey

dicey.roll()
"""
DICEY = """\
import random
import zlib

RATE = {rate}
LUCK = {luck}

def roll():
    if LUCK < RATE:
        raise RuntimeError("unlucky")
"""
LUCKS = {
    "random": "random.SystemRandom().random()",
    "path": "zlib.crc32(__file__.encode()) / 2**32",
    "hashes": "hash('dicey') % 1000 / 1000",
    "import": "__import__('amber').LUCK",  # of a package that a fork may have imported
}
ENDS = {"no-failure": "no failure", "not-a-regression": "not a regression", "inconclusive": "not sure"}


class Ended(NamedTuple):
    """The result of one bisection: how it ended, the release that it named, its runs, and seconds."""

    end: str
    named: str
    runs: int
    seconds: float


INNOCENT = ("amber", "birch", "cedar", "delta", "ember")
TEST = """\
import unittest

import amber
import dicey

class Dicey(unittest.TestCase):
    def test_steady(self):
        self.assertTrue(amber.VERSION)

    def test_dicey(self):
        dicey.roll()
"""


class Bug(NamedTuple):
    """A bug from the release or commit `change` on, which shows at a `rate`; its luck is a key of `LUCKS`."""

    change: int
    rate: float
    luck: str

    def module(self, number: int) -> str:
        """The source of a release or commit."""
        return DICEY.format(rate=self.rate if number >= self.change else 0.0, luck=LUCKS[self.luck])


def bisect(folder: Path, kind: str, releases: int, bug: Bug, options: list[str]) -> Ended:
    """Bisect over `releases` releases or commits."""
    house = Wheelhouse(folder / "index")
    for number in range(1 if kind == "commits" else releases):
        requires = ("amber",) if bug.luck == "import" else ()
        files = {"dicey.py": bug.module(number)}
        house.add("dicey", f"1.{number}", files=files, requires=requires, uploaded=_month(number))
    for name in INNOCENT if kind == "project" or bug.luck == "import" else ():
        for number in range(5):
            text = f"import random\n\nVERSION = {number!r}\nLUCK = random.SystemRandom().random()\n"
            house.add(name, f"1.{number}", files={f"{name}.py": text}, uploaded=_month(3 * number))
    ask = {"releases": _releases, "project": _project, "commits": _commits}[kind]
    command, right = ask(folder, releases, bug)
    environ = {
        **os.environ,
        **house.environ,
        "PYTHONPATH": str(ROOT),
        "HARNESS_CACHE_DIR": str(folder.parent / "cache"),
        "UV_CACHE_DIR": str(folder.parent / "uv"),
    }
    argv = [sys.executable, "-m", "harness", "bisect", *command, "--json", *options]
    begun = time.monotonic()
    done = subprocess.run(argv, cwd=folder / "here", env=environ, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begun
    answer = json.loads(done.stdout)
    if "error" in answer:
        return Ended(f"no answer (exit {done.returncode})", answer["error"][:160], 0, seconds)
    named = [f"{one['package']} {one['first_bad']}" for group in answer["failures"] for one in group["culprits"]]
    runs = answer["probes"] + answer["culprit_probes"]
    if answer["status"] == "found":
        return Ended("right" if named == [right] else "wrong", ", ".join(named), runs, seconds)
    end = "flaky" if answer["flaky"] else ENDS.get(answer["status"], answer["status"])
    return Ended(end, ", ".join(named), runs, seconds)


def _month(number: int) -> str:
    return f"20{10 + number // 12}-{1 + number % 12:02}-01T12:00:00Z"


def _releases(folder: Path, releases: int, bug: Bug) -> tuple[list[str], str]:
    del releases
    (folder / "here" / "repros").mkdir(parents=True)
    (folder / "here" / "repros" / "dicey_step.py").write_text(REPRO, encoding="utf-8")
    return ["dicey", "--repro", "dicey_step"], f"dicey 1.{bug.change}"


def _project(folder: Path, releases: int, bug: Bug) -> tuple[list[str], str]:
    here = folder / "here"
    here.mkdir()
    (here / "setup.py").write_text("from setuptools import setup\nsetup(name='mine', version='1')\n", encoding="utf-8")
    (here / "test_dicey.py").write_text(TEST, encoding="utf-8")
    for end, number in (("old", 0), ("new", 4)):
        dicey = 0 if end == "old" else releases - 1
        lines = [f"dicey==1.{dicey}", *(f"{name}==1.{number}" for name in INNOCENT)]
        (here / f"{end}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    ends = ["--good", "old.txt", "--bad", "new.txt"]
    return ["--run", "python -m unittest -q test_dicey", *ends], f"dicey 1.{bug.change}"


def _commits(folder: Path, releases: int, bug: Bug) -> tuple[list[str], str]:
    _releases(folder, releases, bug)
    clone = folder / "clone"
    clone.mkdir()

    def git(*words: str) -> str:
        who = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
        done = subprocess.run(["git", *who, *words], cwd=clone, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init", "-q", "-b", "main")
    hashes = []
    for number in range(releases):
        (clone / "dicey.py").write_text(bug.module(number), encoding="utf-8")
        (clone / "notes.txt").write_text(f"{number}\n", encoding="utf-8")
        git("add", ".")
        git("commit", "-q", "-m", f"commit {number}")
        hashes.append(git("rev-parse", "HEAD"))
        if number == 0:
            git("tag", "v1.0")
    ends = ["--good", hashes[0], "--bad", hashes[-1], "--git", str(clone)]
    return ["dicey", "--repro", "dicey_step", *ends], f"dicey {hashes[bug.change][:10]}"


def main() -> None:
    """Print a row for each bisection, and how often each result occurred."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bisections", type=int, default=20)
    parser.add_argument("--kind", choices=("releases", "project", "commits"), default="releases")
    parser.add_argument("--releases", type=int, default=30)
    parser.add_argument("--rate", type=float, default=0.5, help="how often the bug shows [0.5]")
    parser.add_argument("--bug", choices=tuple(LUCKS), default="random", help="what its luck depends on [random]")
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
            one = bisect(folder, chosen.kind, chosen.releases, Bug(change, chosen.rate, chosen.bug), chosen.options)
            every.append(one)
            cells = (number + 1, f"1.{change}", one.end, one.named or "-", one.runs, f"{one.seconds:.0f}")
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
    counts = Counter(one.end for one in every)
    runs = sum(one.runs for one in every) / len(every)
    print(f"\n{', '.join(f'{count} {end}' for end, count in counts.most_common())}; {runs:.1f} runs on average")


if __name__ == "__main__":
    main()
