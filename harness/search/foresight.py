"""Predicts the next requests of a search: it assumes verdicts for the current ones, the most likely first."""

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
    """Up to n candidates that may follow the `asked` ones, the most likely first.

    `plan` returns the first candidate that the search requests if the given verdicts are added to the recorded ones,
    None if the search is then done. `chances` returns the probability of each verdict. Paths are followed best first,
    in a small multiple of n steps, so the result may be shorter than n.
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
