"""Searches for a flaky bug on the same simulated histories: this, git-bayesect, plain bisection.

Each history has one release from which on the bug shows at a higher rate, or none. All searches see the same dice for
the same attempt at the same release. git-bayesect stops at 0.95, its default; it always has an answer.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from harness.model.verdict import Verdict
from harness.search import Bisection, BisectionStatus, Noise, SureBisection, Trial

Fails = Callable[[int, int], bool]  # release, attempt


class Said(NamedTuple):
    """The release that was named, None where there was none, and the runs that it took."""

    named: int | None
    runs: int


def driven(search: Bisection | SureBisection, fails: Callable[[Trial], bool]) -> Said:
    """Drive a search of the harness to its end."""
    runs = 0
    while asked := search.ask():
        search.tell(asked[0], Verdict.BAD if fails(asked[0]) else Verdict.GOOD)
        runs += 1
    result = search.result
    return Said(result.first_bad if result.status is BisectionStatus.FOUND else None, runs)


def noisy(noise: Noise) -> Callable[[int, Fails], Said]:
    """`harness bisect --flaky --depth release`, with this confidence and trust."""
    return lambda count, fails: driven(
        SureBisection(count, good=0, bad=count - 1, noise=noise), lambda trial: fails(trial.position, trial.attempt)
    )


def by_default(count: int, fails: Fails) -> Said:
    """`harness bisect --depth release`."""
    return driven(SureBisection(count, good=0, bad=count - 1), lambda trial: fails(trial.position, trial.attempt))


def plain(repetitions: int) -> Callable[[int, Fails], Said]:
    """A plain bisection: a release is bad if one of so many runs fails; it stops repeating at the first failure."""

    def search(count: int, fails: Fails) -> Said:
        runs = 0

        def bad(trial: Trial) -> bool:
            nonlocal runs
            for attempt in range(repetitions):
                runs += 1
                if fails(trial.position, attempt):
                    return True
            return False

        return Said(driven(Bisection(count, good=0, bad=count - 1), bad).named, runs)

    return search


def bayesect(count: int, fails: Fails) -> Said:
    """git-bayesect's own search: its index 0 is the newest release, and B the oldest that has the new rate."""
    from git_bayesect import Bisector

    search = Bisector([1.0] * count)
    attempts = [0] * count
    for runs in range(1, 400):
        release = count - 1 - search.select()
        search.record(count - 1 - release, fails(release, attempts[release]))
        attempts[release] += 1
        if search.distribution.max() >= 0.95:
            return Said(count - 1 - int(search.distribution.argmax()), runs)
    return Said(None, 400)


def compare(before: float, after: float, releases: int, repetitions: int, seed: int) -> None:
    """Print a row for each search: named rightly, wrongly, not at all; mean runs."""
    searches: dict[str, Callable[[int, Fails], Said]] = {
        "--flaky (0.99)": noisy(Noise(flaky=True)),
        "--flaky, at 0.95": noisy(Noise(flaky=True, confidence=0.95)),
        "--trust-ends, at 0.96": noisy(Noise(flaky=True, confidence=0.96, trusts_ends=True)),
        "by default": by_default,
        "git-bayesect": bayesect,
        "plain bisection": plain(1),
        "plain, 8 runs each": plain(8),
    }
    what = f"{before:g} -> {after:g}" if before != after else f"{before:g} everywhere"
    for name, search in searches.items():
        right = wrong = runs = 0
        for number in range(repetitions):
            change = Random(f"{seed} {number}").randrange(1, releases) if before != after else releases

            def fails(release: int, attempt: int, number: int = number, change: int = change) -> bool:
                dice = Random(f"{seed} {number} {release} {attempt}")
                return dice.random() < (after if release >= change else before)

            said = search(releases, fails)
            right += said.named == change
            wrong += said.named not in (None, change)
            runs += said.runs
        none = repetitions - right - wrong
        shares = " | ".join(f"{100 * n / repetitions:5.1f} %" for n in (right, wrong, none))
        print(f"| {what:15} | {name:22} | {shares} | {runs / repetitions:6.1f} |", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", type=int, default=32)
    parser.add_argument("--histories", type=int, default=300, help="simulated histories for each row [300]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--same", type=float, nargs="*", default=[0.0, 0.05, 0.3, 1.0], help="rates without a change")
    chosen = parser.parse_args()
    print("| failure rate    | search                 | right   | wrong   | none    | runs   |")
    print("|---|---|---:|---:|---:|---:|")
    for before, after in ((0.0, 1.0), (0.0, 0.5), (0.05, 0.95), (0.1, 0.3), *((rate, rate) for rate in chosen.same)):
        compare(before, after, chosen.releases, chosen.histories, chosen.seed)


if __name__ == "__main__":
    main()
