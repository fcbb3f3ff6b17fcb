"""Lanes run probes concurrently, each one probe at a time."""

from __future__ import annotations

from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar

from attrs import define, field

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")


class Lanes(Protocol):
    """The interface of lanes."""

    @property
    def count(self) -> int:
        """The number of probes that run at the same time."""
        ...

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Start a call on a lane as soon as one is free."""
        ...

    def close(self) -> None:
        """Wait for running calls, and accept no more."""
        ...


@define
class LocalLanes:
    """Lanes on this machine. Each lane is a thread that waits for one process tree."""

    count: int = 1
    _pool: Executor = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(self.count, thread_name_prefix="lane")

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Start a call on a lane as soon as one is free."""
        return self._pool.submit(function, *args, **kwargs)

    def close(self) -> None:
        """Wait for running calls, and accept no more."""
        self._pool.shutdown(wait=True, cancel_futures=True)
