"""Foresight: suppose verdicts for the requested candidates, the most likely first, and note the next requests."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from harness.model.verdict import Verdict
    from harness.search.protocol import C


def foresee(
    n: int,
    *,
    plan: Callable[[Mapping[C, Verdict]], C | None],
    chances: Callable[[C], Mapping[Verdict, float]],
    asked: Collection[C],
) -> tuple[C, ...]:
    """Up to n candidates that may come after the `asked` ones, the most likely first.

    `plan` gives the first candidate asked when the given verdicts are supposed besides those told, None
    if the search would be done; `chances` gives the chance of each verdict. The paths are followed
    best first, and no further than a small multiple of n, so the answer may be shorter than n.
    """
    found: dict[C, None] = {}
    order = 0
    paths: list[tuple[float, int, dict[C, Verdict]]] = [(-1.0, order, {})]
    for _ in range(8 * n + 4 * len(asked) + 16):
        if not paths or len(found) >= n:
            break
        chance, _, supposed = heapq.heappop(paths)
        candidate = plan(supposed)
        if candidate is None:
            continue
        if candidate not in asked:
            found.setdefault(candidate)
        for verdict, share in chances(candidate).items():
            order += 1
            heapq.heappush(paths, (chance * share, order, {**supposed, candidate: verdict}))
    return tuple(found)
