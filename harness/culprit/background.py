"""Computes a value in a thread, during runs that don't need it."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Generic, TypeVar

from attrs import frozen

from harness.probing import Prober

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.probing.probe import Probing

T = TypeVar("T")


@frozen
class Background(Generic[T]):
    """A value that a thread computes.

    The thread starts with the next run, or when the result is requested. It does not start before the run, because the
    check of an environment takes many times as long while another thread is busy.
    """

    _found: Future[T]
    _is_wanted: threading.Event

    @classmethod
    def begun(cls, prober: Probing, compute: Callable[[], T]) -> Background[T]:
        """Start the thread, which waits for a run of `prober`; it does not keep the program from exiting."""
        found: Future[T] = Future()
        is_wanted = threading.Event()

        def work() -> None:
            if isinstance(prober, Prober):
                prober.memory.wait_for_run(is_wanted)
            try:
                found.set_result(compute())
            except BaseException as error:  # noqa: BLE001 - raised again by `result`
                found.set_exception(error)

        threading.Thread(target=work, name="background", daemon=True).start()
        return cls(found, is_wanted)

    def result(self) -> T:
        """Wait for the value and return it. Raises whatever computing it raised."""
        self._is_wanted.set()
        return self._found.result()
