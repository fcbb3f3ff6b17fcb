"""Compares searches for a flaky bug on simulated histories: the harness, git-bayesect, plain bisection.

In each history the bug shows at a higher rate from one release on, or at the same rate everywhere. The same attempt at
the same release has the same random result in all searches. git-bayesect stops at a confidence of 0.95, its default,
or after 400 runs without an answer. A second table has only the default search, on more histories and other numbers of
releases.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from harness.model.verdict import Verdict
from harness.search import LineSearch, LineStatus, Noise, Trial

Fails = Callable[[int, int], bool]  # release, attempt
ONE_RUN = Noise(confirm=0)  # a plain bisection
CHANGES = ((0.0, 1.0), (0.0, 0.9), (0.0, 0.5), (0.05, 0.95), (0.0, 0.3), (0.1, 0.3))
SAME = (0.0, 0.05, 0.3, 1.0)  # rates of histories without a change


class Said(NamedTuple):
    """The release that a search named (None: no release), and the number of runs."""

    named: int | None
    runs: int


class End(NamedTuple):
    """Whether a search named the "right" release, a "wrong" one or "none", and the number of runs."""

    end: str
    runs: int


def driven(search: LineSearch, fails: Callable[[Trial], bool]) -> Said:
    """Run one of the harness's searches to its end."""
    runs = 0
    while asked := search.ask():
        search.tell(asked[0], Verdict.BAD if fails(asked[0]) else Verdict.GOOD)
        runs += 1
    result = search.result
    return Said(result.boundary[1] if result.status is LineStatus.FOUND and result.boundary else None, runs)


def noisy(noise: Noise) -> Callable[[int, Fails], Said]:
    """The search of `harness bisect --flaky --depth release`, with the confidence and trust in `noise`."""
    return lambda count, fails: driven(
        LineSearch(count, good=0, bad=count - 1, noise=noise), lambda trial: fails(trial.position, trial.attempt)
    )


def by_default(count: int, fails: Fails) -> Said:
    """The search of `harness bisect --depth release`."""
    return driven(LineSearch(count, good=0, bad=count - 1), lambda trial: fails(trial.position, trial.attempt))


def plain(repetitions: int) -> Callable[[int, Fails], Said]:
    """A plain bisection: a release is bad if one of `repetitions` runs fails; the first failure ends its runs."""

    def search(count: int, fails: Fails) -> Said:
        runs = 0

        def bad(trial: Trial) -> bool:
            nonlocal runs
            for attempt in range(repetitions):
                runs += 1
                if fails(trial.position, attempt):
                    return True
            return False

        return Said(driven(LineSearch(count, good=0, bad=count - 1, noise=ONE_RUN), bad).named, runs)

    return search


def bayesect(count: int, fails: Fails) -> Said:
    """The search of git-bayesect. Its index 0 is the newest release, and its B the oldest one with the new rate."""
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


SEARCHES: dict[str, Callable[[int, Fails], Said]] = {
    "by default": by_default,
    "--flaky": noisy(Noise(flaky=True)),
    "--flaky --trust-ends, at 0.96": noisy(Noise(flaky=True, confidence=0.96, trusts_ends=True)),
    "git-bayesect": bayesect,
    "plain bisection": plain(1),
    "plain, 8 runs each": plain(8),
}


def ended(
    search: Callable[[int, Fails], Said], rates: tuple[float, float], releases: int, number: int, seed: int
) -> End:
    """Run a search on one history; the same history, release and attempt have the same random result."""
    before, after = rates
    change = Random(f"{seed} {number}").randrange(1, releases) if before != after else releases

    def fails(release: int, attempt: int) -> bool:
        dice = Random(f"{seed} {number} {release} {attempt}")
        return dice.random() < (after if release >= change else before)

    said = search(releases, fails)
    return End("none" if said.named is None else "right" if said.named == change else "wrong", said.runs)


def row(name: str, rates: tuple[float, float], releases: int, histories: int, seed: int) -> str:
    """Return a row of Markdown with the shares of right, wrong and no answers, and the mean number of runs."""
    every = [ended(SEARCHES[name], rates, releases, number, seed) for number in range(histories)]
    ends = Counter(one.end for one in every)
    shares = " | ".join(f"{100 * ends[end] / histories:.2f} %" for end in ("right", "wrong", "none"))
    before, after = rates
    what = f"{before:g} -> {after:g}" if before != after else f"{before:g} everywhere"
    runs = sum(one.runs for one in every) / histories
    return f"| {what} | {releases} | {name} | {histories} | {shares} | {runs:.1f} |"


def main() -> None:
    """Print both tables: all searches with one number of releases, the default search with three."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--histories", type=int, default=600, help="histories for each row of the comparison [600]")
    parser.add_argument("--by-default", type=int, default=3000, help="histories for each row of the default [3000]")
    parser.add_argument("--releases", type=int, default=32, help="releases in the comparison [32]")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    head = "| failure rate | releases | search | histories | right | wrong | none | runs |\n"
    head += "|---|---:|---|---:|---:|---:|---:|---:|"
    print(head, flush=True)
    for rates in (*CHANGES, *((rate, rate) for rate in SAME)):
        for name in SEARCHES:
            print(row(name, rates, chosen.releases, chosen.histories, chosen.seed), flush=True)
    print(f"\n{head}", flush=True)
    for rates in ((0.0, 0.5), (0.0, 0.9)):
        for releases in (8, 30, 100):
            print(row("by default", rates, releases, chosen.by_default, chosen.seed), flush=True)


if __name__ == "__main__":
    main()
