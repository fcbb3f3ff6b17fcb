"""Runs probes whose results are needed later on a lane that a search leaves free."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING

from attrs import define, evolve, field, frozen

from harness.run.process import Cancelled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.model import Observation
    from harness.probe import Prepared, Probe
    from harness.scheduling.lanes import Lanes
    from harness.scheduling.loop import Prepares


@define
class SpareLane:
    """Probes to run one after another beside a search, if there is more than one lane; the store keeps the results.

    Each run of the search that waits for a lane comes before the next probe. `ran` has the keys of the observations
    that were made.
    """

    prober: Prepares
    lanes: Lanes
    probes: Sequence[Probe]
    ran: set[str] = field(factory=set, init=False)
    _is_used: bool = field(default=False, init=False)

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """Run the probes while the context lasts. At its end no further run starts; on an error the last one stops.

        A second context runs nothing. Raises what a probe raised: `NoNetwork`, `NoSpace`.
        """
        if self.lanes.count < 2 or self._is_used:
            yield
            return
        self._is_used = True
        enough, cancel = threading.Event(), threading.Event()
        ended: Future[None] = Future()
        self._submit(iter(self.probes), enough, cancel, ended)
        try:
            yield
            enough.set()
            wait([ended])
        except BaseException:
            enough.set()
            cancel.set()
            wait([ended])
            raise
        ended.result()

    def _submit(
        self, left: Iterator[Probe], enough: threading.Event, cancel: threading.Event, ended: Future[None]
    ) -> None:
        """Submit the next probe, which submits the one after it; `ended` is done after the last one."""

        def work() -> None:
            try:
                probe = None if enough.is_set() else next(left, None)
                if probe is None:
                    ended.set_result(None)
                    return
                with contextlib.suppress(Cancelled):
                    self._run(probe, cancel)
                self._submit(left, enough, cancel, ended)
            except BaseException as error:  # noqa: BLE001 - raised again by `used`
                ended.set_exception(error)

        self.lanes.submit(work)

    def _run(self, probe: Probe, cancel: threading.Event) -> None:
        prepared = self.prober.prepare(probe, cancel=cancel)
        if prepared.observation is None:
            self.ran.add(self.prober.execute(prepared, cancel=cancel).key)


@frozen
class RanBeside:
    """A prober that does not call a result stored if it was made in this session beside a search (`ran`: its key)."""

    prober: Prepares
    ran: frozenset[str]

    def prepare(self, probe: Probe, *, cancel: threading.Event | None = None) -> Prepared:
        """Prepare a probe with the wrapped prober."""
        prepared = self.prober.prepare(probe, cancel=cancel)
        return evolve(prepared, cached=False) if prepared.key in self.ran else prepared

    def execute(self, prepared: Prepared, *, cancel: threading.Event | None = None) -> Observation:
        """Run it with the wrapped prober."""
        return self.prober.execute(prepared, cancel=cancel)
