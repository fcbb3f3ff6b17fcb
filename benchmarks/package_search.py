"""Benchmarks the search for the packages that broke something, on planted upgrades and through the real command.

Twelve tiny packages move from 1.0 to 2.1, and what breaks is planted: one package; two of which either breaks it; two
that break it only together; one that works with nothing but its own release of another; one whose older releases don't
work beside the newer ones of another. Each is asked in three ways: between two neighbouring releases of a package that
pins the others, between two lists of packages, and between two Pythons for which other releases are installed.

Prints how many answers were right, and how many runs and seconds they took.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # import the harness of this checkout, and the Wheelhouse of its tests

from wheelhouse import Wheelhouse

COUNT = 12
RELEASES = ("1.0", "1.1", "2.0", "2.1")
CHANGE = ("1.1", "2.0")
KINDS = ("single", "either", "together", "tied", "companion")
WAYS = ("neighbours", "lists", "pythons")
REPRO = """\
# /// script
# dependencies = [{dependencies}]
# [tool.harness.signature]
# exception = "RuntimeError"
# ///
"""


class Case(NamedTuple):
    """Planted packages: the culprits, what has to move with them, and whether the failure names them."""

    kind: str
    culprits: tuple[str, ...]
    along: tuple[str, ...]
    is_named: bool

    def module(self, name: str, number: int) -> str:
        """The source of a package at one of its releases."""
        is_new = number >= RELEASES.index(CHANGE[1])
        text = f"VERSION = {RELEASES[number]!r}\nNEW = {is_new}\n\n\ndef work(broken):\n"
        text += "    if broken:\n        raise RuntimeError('planted')\n"
        if name in self.culprits and self.kind == "tied":
            text += (
                f"\n\nimport {self.along[0]}\nif {self.along[0]}.VERSION != VERSION:\n    raise ImportError('differ')\n"
            )
        if name in self.culprits and self.kind == "companion" and not is_new:
            text += f"\n\nimport {self.along[0]}\nif {self.along[0]}.NEW:\n    raise ImportError('another size')\n"
        return text

    def requires(self, name: str, version: str) -> tuple[str, ...]:
        """What a release of a package requires."""
        return (f"{self.along[0]}=={version}",) if name in self.culprits and self.kind == "tied" else ()

    @property
    def check(self) -> str:
        """The script that fails if the planted packages are new."""
        how = " and " if self.kind == "together" else " or "
        broken = how.join(f"{name}.NEW" for name in self.culprits)
        imports = f"import {', '.join(sorted((*self.culprits, *self.along)))}\n"
        if not self.is_named:
            return f"{imports}if {broken}:\n    raise RuntimeError('planted')\n"
        if self.kind != "together":
            return imports + "".join(f"{name}.work({name}.NEW)\n" for name in self.culprits)
        return f"{imports}{self.culprits[0]}.work({broken})\n"


class Result(NamedTuple):
    """How an answer came out."""

    is_right: bool
    runs: int
    seconds: float
    named: str


def planted(kind: str, number: int) -> tuple[Case, tuple[str, ...]]:
    """A case, and the names of all packages."""
    dice = Random(f"{kind} {number}")
    names = tuple(f"part{number:02}" for number in range(COUNT))
    chosen = dice.sample(names, 2)
    several = kind in ("either", "together")
    culprits = tuple(chosen) if several else (chosen[0],)
    along = (chosen[1],) if kind in ("tied", "companion") else ()
    return Case(kind, culprits, along, dice.random() < 0.5), names


def ask(folder: Path, way: str, case: Case, names: tuple[str, ...], cache: Path) -> Result:
    """Ask about a case in one of the ways."""
    house, here = Wheelhouse(folder / "house"), folder / "here"
    here.mkdir()
    for name in names:
        for number, version in enumerate(RELEASES):
            is_newer = way == "pythons" and number >= RELEASES.index(CHANGE[1])
            house.add(
                name,
                version,
                files={f"{name}.py": case.module(name, number)},
                requires=case.requires(name, version),
                requires_python=">=3.12" if is_newer else None,
                uploaded=f"2024-{number + 1:02}-01T12:00:00Z",
            )
    for version, pinned in (("1.0", RELEASES[0]), ("1.1", RELEASES[-1])):
        needs = tuple(f"{name}=={pinned}" for name in names)
        house.add("shop", version, files={"shop.py": ""}, requires=needs, uploaded="2024-06-01T12:00:00Z")
    (here / "check.py").write_text(case.check, encoding="utf-8")
    match way:
        case "neighbours":
            words = ["shop", "--run", "python check.py", "--good", "1.0", "--bad", "1.1", "--depth", "package"]
        case "lists":
            for end, version in (("old", RELEASES[0]), ("new", RELEASES[-1])):
                text = "".join(f"{name}=={version}\n" for name in names)
                (here / f"{end}.txt").write_text(text, encoding="utf-8")
            words = ["--run", "python check.py", "--good", "old.txt", "--bad", "new.txt", "--depth", "release"]
        case _:
            dependencies = ", ".join(f'"{name}"' for name in names)
            text = REPRO.format(dependencies=dependencies) + case.check
            (here / "check.py").write_text(text, encoding="utf-8")
            words = ["python", "--repro", "check.py", "--good", "3.11", "--bad", "3.12", "--depth", "package"]
    environ = {**os.environ, **house.environ, "HARNESS_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "harness", "bisect", *words, "--confirm", "1", "--json"]
    began = time.monotonic()
    done = subprocess.run(command, cwd=here, env=environ, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - began
    runs = len(list(here.glob("*/observations/*/*.json")))
    answer = json.loads(done.stdout)
    if "error" in answer:
        print(done.stderr, file=sys.stderr)
    named = names_of(answer, way)
    return Result(is_right(case, way, named, answer), runs, seconds, " ".join(sorted(named)))


def names_of(answer: dict[str, Any], way: str) -> set[str]:
    """The packages that an answer names."""
    if way == "neighbours":
        findings = [one for one in answer.get("culprit") or () if one["level"] == "package" and one["proved"]]
        return {text.split()[0] for one in findings for text in one["packages"]}
    culprits = [one for failure in answer.get("failures", ()) for one in failure["culprits"]]
    return {one["package"] for one in culprits} | {more["package"] for one in culprits for more in one["companions"]}


def is_right(case: Case, way: str, named: set[str], answer: dict[str, Any]) -> bool:
    """Whether the culprits are named, and nothing else but what has to move with them.

    Of two that break it only together, holding back either one is enough between two lists.
    """
    culprits = set(case.culprits)
    if way == "lists":
        guilty = [one for failure in answer.get("failures", ()) for one in failure["culprits"]]
        changes = {one["package"]: (one["last_good"], one["first_bad"]) for one in guilty}
        if not answer.get("constraints_verified") or any(changes.get(name, CHANGE) != CHANGE for name in culprits):
            return False
        if case.kind == "together":
            return bool(named) and named <= culprits
    return culprits <= named <= culprits.union(case.along)


def main() -> None:
    """Print a row for each case, and a table of the sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=4, help="of each kind, in each way [4]")
    parser.add_argument("--way", choices=WAYS, action="append", help="only this way")
    parser.add_argument("--kind", choices=KINDS, action="append", help="only this kind")
    chosen = parser.parse_args()
    every: dict[tuple[str, str], list[Result]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as temporary:
        for way in chosen.way or WAYS:
            for kind in chosen.kind or KINDS:
                for number in range(chosen.cases):
                    case, names = planted(kind, number)
                    folder = Path(temporary) / f"{way}-{kind}-{number}"
                    folder.mkdir()
                    result = ask(folder, way, case, names, Path(temporary) / "cache")
                    every[way, kind].append(result)
                    right = "right" if result.is_right else "WRONG"
                    planted_names = " ".join((*case.culprits, *(f"({name})" for name in case.along)))
                    hint = "named" if case.is_named else "silent"
                    print(
                        f"{way} {kind} {number} {hint}: {right}, {result.runs} runs, {result.seconds:.1f} s;"
                        f" planted {planted_names}; found {result.named or '-'}",
                        flush=True,
                    )
    print("\n| asked between | planted | right | runs | seconds |\n|---|---|---:|---:|---:|")
    for (way, kind), results in every.items():
        print(_row(way, kind, results))
    print(_row("all", "", [result for results in every.values() for result in results]))


def _row(way: str, kind: str, results: list[Result]) -> str:
    right, runs = sum(result.is_right for result in results), sum(result.runs for result in results)
    return f"| {way} | {kind} | {right} of {len(results)} | {runs} | {sum(result.seconds for result in results):.0f} |"


if __name__ == "__main__":
    main()
