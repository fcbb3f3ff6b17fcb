"""Makes a run again that the machine failed, on another GPU if there is one, because it says nothing about packages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.events import Note
from harness.model import Observation, Outcome
from harness.probing.prober import Prober
from harness.run.process import pause

if TYPE_CHECKING:
    from harness.probing.probe import Prepared

_TIMES = 2
_PAUSE_S = 1.0


@frozen
class RetryingProber(Prober):
    """A prober that repeats runs that the machine failed, twice; such an observation never answers for a later run."""

    def execute(self, prepared: Prepared) -> Observation:
        """Run a prepared probe until the machine does not fail it, or has failed it three times. Raises `Cancelled`."""
        run, used = Prober.execute(self, prepared), set[int]()
        for _ in range(_TIMES if prepared.observation is None else 0):
            if run.outcome is not Outcome.MACHINE_FAILED:
                break
            used.add(run.machine.get("gpu", -1))
            others = tuple(gpu for gpu in self.gpus if gpu.index not in used)
            self.reporter.report(Note(f"a run is made again, because the machine failed: {run.detail}"))
            pause(_PAUSE_S)
            run = Prober.execute(evolve(self, gpus=others or self.gpus), prepared)
        return run

    def current(self, key: str) -> Observation | None:
        """Return the stored observation of a key, None if there is none that still holds, or the machine failed it."""
        stored = Prober.current(self, key)
        return None if stored is not None and stored.outcome is Outcome.MACHINE_FAILED else stored
