"""What is assumed about failure rates before any run: how often a bug shows before a change, and how often after it.

A prior is a weighted sum over kinds of bugs. Each kind has two densities on a grid of rates, one for each side of the
change, restricted to pairs in which the bad side fails more often. One more density is for a range without a change.
"""

from __future__ import annotations

import math
from itertools import accumulate

from attrs import frozen

_STEPS = 40
RATES = (0.0, *((i + 0.5) / _STEPS for i in range(_STEPS)), 1.0)

Density = tuple[float, ...]  # a weight for each of RATES


@frozen
class Kind:
    """One kind of bug: its weight and the densities of its rate on both sides of the change."""

    weight: float
    good: Density
    bad: Density


@frozen(eq=False)  # compared by identity, so that it is a cheap cache key
class Prior:
    """Kinds of bugs, and the probability that there is no change (`no_change`).

    The weight of each kind is spread over the pairs of rates with good below bad. `same` is the density of the rate if
    there is no change.
    """

    kinds: tuple[Kind, ...]
    same: Density
    no_change: float


def _mixed(*parts: tuple[float, float | tuple[float, float]]) -> Density:
    """Weights on the grid. Each part is a weight, and one end of the grid or the two parameters of a Beta density."""
    grid = [0.0] * len(RATES)
    for weight, shape in parts:
        if isinstance(shape, tuple):
            a, b = shape
            density = [rate ** (a - 1) * (1 - rate) ** (b - 1) for rate in RATES[1:-1]]
            for i, value in enumerate(density, start=1):
                grid[i] += weight * value / math.fsum(density)
        else:
            grid[0 if shape == 0.0 else -1] += weight
    return tuple(grid)


def _beta(a: float, b: float) -> Density:
    return _mixed((1.0, (a, b)))


def _kinds(*kinds: Kind) -> tuple[Kind, ...]:
    """The kinds with weights that sum to 1, each spread over the pairs of rates with good below bad."""
    every = math.fsum(kind.weight for kind in kinds)
    return tuple(Kind(kind.weight / every / _in_order(kind), kind.good, kind.bad) for kind in kinds)


def _in_order(kind: Kind) -> float:
    """The probability that the rate of the good side is the lower one."""
    return math.fsum(w * below for w, below in zip(kind.bad, (0.0, *accumulate(kind.good)), strict=False))


_NEVER = _mixed((1.0, 0.0))
_ANY = _beta(1.0, 1.0)
_NOISE = Kind(0.0, _beta(2.0, 40.0), _beta(40.0, 2.0))  # deterministic, with noise
_SAME = _mixed((0.1, 0.0), (0.8, (1.0, 1.0)), (0.1, 1.0))  # flaky everywhere, or else it never fails or always fails

# Nothing is known about the bug. Many bugs show in every run or in none.
UNKNOWN = Prior(
    _kinds(
        Kind(0.35, _NEVER, _mixed((1.0, 1.0))),
        Kind(0.20, _NEVER, _mixed((0.9, (10.0, 10.0)), (0.1, (1.0, 1.0)))),
        Kind(0.10, _NOISE.good, _NOISE.bad),
        Kind(0.35, _beta(1.0, 4.0), _beta(1.5, 1.5)),
    ),
    _SAME,
    no_change=0.5,
)

# The bug is flaky. Much of the weight is on rates that are close. With less of it, most of the
# few releases that are named at a change from 0.1 to 0.3 are wrong: by luck, the rates look far apart.
FLAKY = Prior(
    _kinds(
        Kind(0.15, _NEVER, _ANY),
        Kind(0.50, _NEVER, _beta(5.0, 5.0)),
        Kind(0.60, _NOISE.good, _NOISE.bad),
        Kind(0.05, _beta(1.0, 4.0), _beta(1.5, 1.5)),
        Kind(1.00, _beta(2.0, 14.0), _beta(4.0, 9.0)),
    ),
    _SAME,
    no_change=0.5,
)

# The bug is flaky, and the user is sure of the ends: there is a change, and before it the bug never shows, or as
# rarely as it fails to show after it. Most of the weight is on bugs that show about half the time.
TRUSTED_ENDS = Prior(
    _kinds(
        Kind(0.040, _NEVER, _ANY),
        Kind(0.480, _NEVER, _beta(12.0, 12.0)),
        Kind(0.480, _NOISE.good, _NOISE.bad),
        Kind(0.005, _beta(1.0, 20.0), _beta(12.0, 12.0)),
    ),
    _SAME,
    no_change=0.0,
)
