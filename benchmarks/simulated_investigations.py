"""Simulates investigations of flaky bugs: random histories, failure rates, skips and faults, without processes.

Each investigation is a `LineSearch`, driven as `harness bisect` drives it. The table has how often the named release
is not one where the failure rate changes, and how often the stated confidences allow that. With `--pairs`, the rates of
both sides are random: the good side fails in 0 to 0.6 of the runs, the bad side more often, and there is one change.
`--pairs windows` is `harness history` over such a change: a `Scan`, where each change that is named without doubt has
to be that one. `--pairs packages` is a project's tests between two lists of packages, one of which brings the bug: the
ends, the search for the package with repeated runs, and that over its releases.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Collection
from concurrent.futures import ProcessPoolExecutor
from random import Random
from typing import NamedTuple

from harness.bisection.both_ends import RATE_FAILURES, RATE_RUNS
from harness.model.verdict import Verdict
from harness.search import MOST_PASSES, LineSearch, LineStatus, Narrowing, Noise, Scan, passes_needed
from harness.search.windows import stride_for

RATES = ((0.0, 0.5), (0.0, 0.9), (0.05, 0.95))
NAMED = (LineStatus.FOUND, LineStatus.FIXED)
PASSES = 7  # runs of a bad end before nothing fails
SCAN_DOUBT = 0.01  # of each change


class Ended(NamedTuple):
    """One investigation: its kind of history and rates, its result, 1 - its confidence (`doubt`), and its runs."""

    history: str
    rates: tuple[float, float]
    end: str
    doubt: float
    runs: int


def broken_releases(history: str, count: int, dice: Random) -> list[bool]:
    """Whether each release has the bug, the oldest first."""
    first = dice.randrange(1, count)
    if history == "no change":
        return [dice.random() < 0.5] * count
    broken = [position >= first for position in range(count)]
    if history == "two windows" and first < count - 2:
        again = dice.randrange(first + 1, count - 1)
        works = dice.randrange(again + 1, count)
        broken[again:works] = [False] * (works - again)
    return broken


def investigate(number: int, seed: int) -> Ended:
    """Simulate one investigation, which is the same for the same number and seed."""
    dice = Random(f"{seed} {number}")
    rates = RATES[number % len(RATES)]
    history = dice.choices(("one change", "no change", "two windows"), (0.75, 0.1, 0.15))[0]
    count, find_fix = dice.randrange(4, 50), dice.random() < 0.2
    broken = broken_releases(history, count, dice)
    if find_fix:
        broken.reverse()
    untestable = _untestable(count, dice)
    faults = dice.choice((0.0, 0.0, 0.05))
    ends = {"good": count - 1, "bad": 0} if find_fix else {"good": 0, "bad": count - 1}
    search = LineSearch(count, find_fix=find_fix, noise=Noise(flaky=dice.random() < 0.25), **ends)  # type: ignore[arg-type]
    lanes, runs = dice.choice((1, 1, 2)), 0
    while asked := search.ask(lanes):
        trial = dice.choice(asked)
        if trial.position in untestable or dice.random() < faults:
            verdict = Verdict.SKIP
        else:
            verdict = Verdict.BAD if dice.random() < rates[broken[trial.position]] else Verdict.GOOD
        search.tell(trial, verdict)
        runs += 1
    result = search.result
    if result.status not in NAMED or result.boundary is None:
        return Ended(history, rates, "none", 0.0, runs)
    older, newer = result.boundary
    right = newer == older + 1 and broken[older] == find_fix and broken[newer] != find_fix
    return Ended(history, rates, "right" if right else "wrong", 1 - (result.confidence or 0.0), runs)


def investigate_a_pair(number: int, seed: int) -> Ended:
    """Simulate one investigation of a pair of random rates; `rates` of the result are rounded down to tenths."""
    dice = Random(f"{seed} {number} pair")
    before, after = _pair(dice)
    count = dice.choice((8, 14, 30, 60))
    first = dice.randrange(1, count)
    search = LineSearch(count, good=0, bad=count - 1, noise=Noise(flaky=dice.random() < 0.5))
    runs = 0
    while asked := search.ask():
        fails = dice.random() < (after if asked[0].position >= first else before)
        search.tell(asked[0], Verdict.BAD if fails else Verdict.GOOD)
        runs += 1
    result = search.result
    end = (
        "none"
        if result.status is not LineStatus.FOUND
        else "right"
        if result.boundary == (first - 1, first)
        else "wrong"
    )
    doubt = 1 - (result.confidence or 0.0) if end != "none" else 0.0
    return Ended("a pair", (int(before * 10) / 10, 1.0), end, doubt, runs)


def investigate_windows(number: int, seed: int) -> Ended:
    """Simulate one `harness history`; "wrong" if a change is named without doubt where no rate changes."""
    dice = Random(f"{seed} {number} windows")
    before, after = _pair(dice)
    count = dice.choice((8, 14, 30, 60))
    first = dice.randrange(1, count)
    scan, runs = Scan(count, stride_for(count)), 0
    while asked := scan.ask():
        fails = dice.random() < (after if asked[0].position >= first else before)
        scan.tell(asked[0], Verdict.BAD if fails else Verdict.GOOD)
        runs += 1
    named = [(part.older, part.newer) for part, search in scan.changes if part.is_shown(search)]
    end = "none" if not named else "right" if named == [(first - 1, first)] else "wrong"
    return Ended("windows", (int(before * 10) / 10, 1.0), end, SCAN_DOUBT * len(named), runs)


def investigate_packages(number: int, seed: int) -> Ended:
    """Simulate a question between two lists of packages; "right" if the package and its release are named."""
    dice = Random(f"{seed} {number} packages")
    before, after = _pair(dice)
    packages = [str(one) for one in range(dice.choice((3, 8, 20)))]
    guilty, releases = dice.choice(packages), dice.choice((4, 14, 30))
    first, runs = dice.randrange(1, releases), 0

    def fails(*, is_bad: bool) -> bool:
        nonlocal runs
        runs += 1
        return dice.random() < (after if is_bad else before)

    def ended(end: str, doubt: float = 0.0) -> Ended:
        return Ended("packages", (int(before * 10) / 10, 1.0), end, doubt, runs)

    if not any(fails(is_bad=True) for _ in range(PASSES)) or fails(is_bad=False):
        return ended("none")
    steady = fails(is_bad=True) and not fails(is_bad=False)
    for is_flaky in (False, True):
        if not is_flaky and not steady:
            continue
        passes = _passes(fails) if is_flaky else 1
        if passes is None:
            return ended("none")
        named = _package(packages, guilty, passes, fails)
        if named is None:
            return ended("none")
        search = LineSearch(releases, good=0, bad=releases - 1, noise=Noise(flaky=is_flaky))
        while (asked := search.ask()) and (is_flaky or not search.is_noisy):
            is_bad = named != guilty or asked[0].position >= first
            search.tell(asked[0], Verdict.BAD if fails(is_bad=is_bad) else Verdict.GOOD)
        result = search.result
        if is_flaky or not search.is_noisy:
            if result.status is not LineStatus.FOUND:
                return ended("none")
            right = named == guilty and result.boundary == (first - 1, first)
            return ended("right" if right else "wrong", 1 - (result.confidence or 0.0))
    return ended("none")


def _passes(fails: Callable[..., bool]) -> int | None:
    """The passes that show that the bug is gone, from further runs of the ends; None if it is flaky at both."""
    bad: list[bool] = []
    while len(bad) < RATE_RUNS[1] and (len(bad) < RATE_RUNS[0] or sum(bad) < RATE_FAILURES):
        bad.append(fails(is_bad=True))
    passes = passes_needed(sum(bad), len(bad))
    return None if passes > MOST_PASSES or any(fails(is_bad=False) for _ in range(passes)) else passes


def _package(packages: list[str], guilty: str, passes: int, fails: Callable[..., bool]) -> str | None:
    """The one package that has to be held back; None if it is not one."""

    def passed(held: Collection[str]) -> bool:
        return not any(fails(is_bad=guilty not in held) for _ in range(passes))

    search = Narrowing(packages, leaves_out=False)
    while asked := search.ask():
        search.tell(asked[0], Verdict.BAD if passed(asked[0]) else Verdict.GOOD)  # a search calls what it looks for BAD
    needed = search.result.minimal
    if needed == set(packages) and not passed(needed):
        return None
    return next(iter(needed)) if len(needed) == 1 else None


def _pair(dice: Random) -> tuple[float, float]:
    """The failure rates before and after a change."""
    before = dice.uniform(0.0, 0.6)
    return before, dice.uniform(before, 1.0)


def _untestable(count: int, dice: Random) -> set[int]:
    """Positions that are always skipped: none, a few random ones, or up to five in a row."""
    match dice.randrange(3):
        case 0:
            return set()
        case 1:
            return {position for position in range(count) if dice.random() < 0.1}
        case _:
            first = dice.randrange(count)
            return set(range(first, min(count, first + dice.randrange(1, 6))))


PAIRS = {"releases": investigate_a_pair, "windows": investigate_windows, "packages": investigate_packages}


def main() -> None:
    """Print a table: a row for each history and pair of rates."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--investigations", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--pairs", nargs="?", const="releases", choices=tuple(PAIRS), help="random rates on both sides of one change"
    )
    chosen = parser.parse_args()
    simulate = PAIRS[chosen.pairs] if chosen.pairs else investigate
    with ProcessPoolExecutor() as pool:
        numbers = range(chosen.investigations)
        every = list(pool.map(simulate, numbers, [chosen.seed] * len(numbers), chunksize=20))
    print("| history     | failure rate | right | wrong | none | allowed | runs |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for history, rates in sorted({(one.history, one.rates) for one in every}):
        rows = [one for one in every if (one.history, one.rates) == (history, rates)]
        _print_row(history, f"{rates[0]:g} -> {rates[1]:g}", rows)
    _print_row("all", "", every)


def _print_row(history: str, rates: str, ended: list[Ended]) -> None:
    ends = Counter(one.end for one in ended)
    allowed, runs = sum(one.doubt for one in ended), sum(one.runs for one in ended) / len(ended)
    counts = " | ".join(f"{ends[end]:5}" for end in ("right", "wrong", "none"))
    print(f"| {history:11} | {rates:12} | {counts} | {allowed:7.2f} | {runs:5.1f} |")


if __name__ == "__main__":
    main()
