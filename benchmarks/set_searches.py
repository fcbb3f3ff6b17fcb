"""Compares the searches over a set: which needs the fewest runs, and which ends in the smallest set.

Three kinds of sets, each with random members: packages that change the verdict only all together, likeliest first;
changed regions, of which one or two are the cause and some can't run without others; statements of a script that need
statements before them. Each search is driven one run at a time.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from random import Random
from statistics import fmean
from typing import NamedTuple

from ddmin import DeltaDebugging

from harness.model.verdict import Verdict
from harness.search import Narrowing

Sets = frozenset[str]
MOST_RUNS = 1000
_LESS_LIKELY = 0.7  # weight of a unit relative to the one before it


class Puzzle(NamedTuple):
    """A set of `units`, the likeliest first, the verdict of each subset, and the smallest one that is bad."""

    units: tuple[str, ...]
    verdict: Callable[[Sets], Verdict]
    smallest: Sets


def packages(count: int, together: int, dice: Random) -> Puzzle:
    """Packages of which some must all be there; one at rank r has probability 0.7 ** r."""
    units = tuple(f"package {number}" for number in range(count))
    ranks = [_LESS_LIKELY**rank for rank in range(count)]
    culprits: set[str] = set()
    while len(culprits) < together:
        culprits.update(dice.choices(units, ranks))
    return Puzzle(units, lambda held: Verdict.BAD if culprits <= held else Verdict.GOOD, frozenset(culprits))


def regions(count: int, together: int, dice: Random) -> Puzzle:
    """Regions of which one in ten can't run at all unless all of them are there."""
    units = tuple(f"region {number}" for number in range(count))
    culprits = frozenset(dice.sample(units, together))
    broken = {unit for unit in units if unit not in culprits and dice.random() < 0.1}

    def verdict(held: Sets) -> Verdict:
        if held & broken and len(held) < count:
            return Verdict.SKIP
        return Verdict.BAD if culprits <= held else Verdict.GOOD

    return Puzzle(units, verdict, culprits)


def statements(count: int, needed: int, dice: Random) -> Puzzle:
    """Statements, the last of which fails if those that it needs are there; others need earlier ones, too."""
    chain = sorted(dice.sample(range(count), needed))
    needs = dict(zip(chain[1:], chain, strict=False))
    for number in range(1, count):
        if number not in chain and dice.random() < 0.5:
            needs[number] = dice.randrange(number)

    def verdict(held: Sets) -> Verdict:
        kept = {int(unit) for unit in held}
        for number in sorted(kept):
            if number in needs and needs[number] not in kept:
                return Verdict.SKIP  # a NameError, not the bug
            if number == chain[-1]:
                return Verdict.BAD
        return Verdict.GOOD

    return Puzzle(tuple(map(str, range(count))), verdict, frozenset(map(str, chain)))


def galloping(puzzle: Puzzle) -> tuple[int, Sets]:
    """Runs and result of `Narrowing` without parts, as packages are searched that must be held back."""
    search = Narrowing(puzzle.units, leaves_out=False)
    runs = _drive(search, puzzle)
    return runs, search.result.minimal


def alone_first(puzzle: Puzzle) -> tuple[int, Sets]:
    """Runs and result of `Narrowing` with each unit as a part, as lines are searched."""
    weights = {one: _LESS_LIKELY**rank for rank, one in enumerate(puzzle.units)}
    search = Narrowing(puzzle.units, weights=weights, parts=[frozenset({one}) for one in puzzle.units])
    runs = _drive(search, puzzle)
    return runs, search.result.minimal


def ddmin(puzzle: Puzzle) -> tuple[int, Sets]:
    """Runs and result of `DeltaDebugging`."""
    search = DeltaDebugging(puzzle.units)
    runs = _drive(search, puzzle)
    return runs, search.result.minimal


SEARCHES: Mapping[str, Callable[[Puzzle], tuple[int, Sets]]] = {
    "galloping": galloping,
    "alone first": alone_first,
    "delta debugging": ddmin,
}
KINDS: Mapping[str, tuple[Callable[[int, int, Random], Puzzle], tuple[tuple[int, int], ...]]] = {
    "packages that change it only together": (packages, ((20, 1), (20, 2), (60, 1), (60, 3))),
    "regions, some of which can't run": (regions, ((20, 1), (20, 2), (40, 1))),
    "statements that need others": (statements, ((10, 3), (20, 6), (40, 10))),
}


def _drive(search: Narrowing[str] | DeltaDebugging[str], puzzle: Puzzle) -> int:
    runs = 0
    while not search.done and runs < MOST_RUNS:
        (candidate,) = search.ask(1)
        search.tell(candidate, puzzle.verdict(candidate))
        runs += 1
    return runs


def main() -> None:
    """Print one row for each kind and size: runs on average, and the size of the result."""
    parser = argparse.ArgumentParser(description="Compare the searches over a set on random puzzles.")
    parser.add_argument("--puzzles", type=int, default=30, help="random puzzles for each row (default: 30)")
    parser.add_argument("--seed", type=int, default=1)
    told = parser.parse_args()
    print("| set | units | cause |", " | ".join(SEARCHES), "|")
    print("|---|---|---|", "---|" * len(SEARCHES), sep="")
    for kind, (make, sizes) in KINDS.items():
        for count, size in sizes:
            cells = []
            for search in SEARCHES.values():
                dice = Random(f"{told.seed} {kind} {count} {size}")
                ended = [search(make(count, size, dice)) for _ in range(told.puzzles)]
                cells.append(f"{fmean(runs for runs, _ in ended):.1f} runs, {fmean(len(s) for _, s in ended):.1f} left")
            print(f"| {kind} | {count} | {size} |", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
