"""Gaps: stretches of consecutive untried positions, and the points that divide them evenly.

Untestable releases are often consecutive, so a skipped position ends a gap. The next point is the middle of the widest
gap, not the neighbour of a skip.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence


def gaps_of(positions: Iterable[int]) -> list[range]:
    """The stretches of consecutive positions, lowest first."""
    gaps: list[range] = []
    for position in sorted(positions):
        if gaps and gaps[-1].stop == position:
            gaps[-1] = range(gaps[-1].start, position + 1)
        else:
            gaps.append(range(position, position + 1))
    return gaps


def cut_gap(gap: range, points: int) -> list[int]:
    """Up to `points` positions that divide a gap into parts of equal length, as far as possible."""
    points = min(points, len(gap))
    return [gap.start + (i + 1) * (len(gap) + 1) // (points + 1) - 1 for i in range(points)]


def cut(gaps: Sequence[range], n: int) -> list[int]:
    """Up to n positions that divide the gaps evenly: n=1 the middle of the widest, n=2 its thirds, and so on.

    Of equally wide gaps, the one nearest to the centre of all untried positions comes first. The result is sorted by
    the distance from that centre.
    """
    if not gaps or n <= 0:
        return []
    centre = _centre(gaps)
    points = [0] * len(gaps)
    for _ in range(n):
        free = [i for i, gap in enumerate(gaps) if points[i] < len(gap)]
        if not free:
            break
        best = max(free, key=lambda i: (len(gaps[i]) / (points[i] + 1), -_distance(gaps[i], centre)))
        points[best] += 1
    chosen = [p for gap, k in zip(gaps, points, strict=True) for p in cut_gap(gap, k)]
    return sorted(chosen, key=lambda p: (abs(2 * p - centre), p))


def cut_around(positions: Collection[int], kept: Iterable[int], n: int) -> list[int]:
    """The `kept` ones among the positions, then points that divide the gaps between them; up to n in total."""
    staying = [p for p in kept if p in positions][:n]
    return staying + cut(gaps_of(set(positions).difference(staying)), n - len(staying))


def runs_to_close(gaps: Iterable[range]) -> int:
    """Upper bound of the runs, one at a time, until no untried position is left in the gaps.

    A run in the middle of a gap leaves at most half of it, whatever the verdict. For one gap of n positions this is
    ceil(log2(n + 1)), the lower bound for any search with n + 1 possible answers.
    """
    return sum(len(gap).bit_length() for gap in gaps)


def _centre(gaps: Sequence[range]) -> int:
    """Twice the median untried position: an integer, so that comparisons are exact."""
    positions = [p for gap in gaps for p in gap]
    return positions[(len(positions) - 1) // 2] + positions[len(positions) // 2]


def _distance(gap: range, centre: int) -> int:
    return abs(gap.start + gap.stop - 1 - centre)
