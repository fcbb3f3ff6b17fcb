"""Lanes: where work runs beside the loop that decides. A lane takes one probe at a time."""

from __future__ import annotations

from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar

from attrs import define, field

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")


class Lanes(Protocol):
    """What the engine knows of lanes."""

    @property
    def count(self) -> int:
        """How many probes run at the same time."""
        ...

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Start a call on a free lane, or as soon as one is free."""
        ...

    def close(self) -> None:
        """Wait for what runs, take nothing more."""
        ...


@define
class LocalLanes:
    """Lanes on this machine: each holds one process tree, so a thread that waits for it is enough."""

    count: int = 1
    _pool: Executor = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(self.count, thread_name_prefix="lane")

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Start a call on a free lane, or as soon as one is free."""
        return self._pool.submit(function, *args, **kwargs)

    def close(self) -> None:
        """Wait for what runs, take nothing more."""
        self._pool.shutdown(wait=True, cancel_futures=True)
