"""Which sets a search for lines leaves out because they can't run."""

from __future__ import annotations

from types import SimpleNamespace

from harness.culprit.pursuit import Pursuit
from harness.model import Device, Observation, Outcome, Verdict
from harness.probing import Prepared

UNITS = {"a": 9.0, "b": 8.0, "c": 1.0, "d": 1.0, "e": 1.0}


class Prober:
    """Says of the sets in `outcomes` how they ended, as far as that is known before a run."""

    def __init__(self, outcomes):
        self.outcomes = outcomes
        self.prepared = []

    def prepare(self, probe, *, cancel=None):
        """The probe is the set itself."""
        self.prepared.append(probe)
        outcome = self.outcomes(probe)
        seen = Observation("key", outcome, "repro", "d", Device.CPU) if outcome is not None else None
        return Prepared(probe, "key", observation=seen)


def pursuit(prober, **more):
    return Pursuit(
        trials=SimpleNamespace(prober=prober),
        flipped=Verdict.BAD,
        weights=UNITS,
        closed=lambda units: units,
        probe_of=lambda units: units,
        label_of=str,
        learn=lambda moved, seen: False,
        most=10,
        **more,
    )


def test_sets_that_cannot_run_are_skipped_beforehand():
    prober = Prober(lambda units: Outcome.UNINSTALLABLE if "a" in units else None)
    plain = pursuit(prober)
    assert "a" in plain.next_sets(1)[0]
    ready = plain.without_broken()
    assert all("a" not in units for units in ready.next_sets(2))
    assert ready.told
    assert all("a" in units and verdict is Verdict.SKIP for units, (verdict, _) in ready.told.items())
    assert plain.told == {}


def test_known_results_of_runs_are_not_taken_for_broken_sets():
    prober = Prober(lambda units: Outcome.RAISED)
    assert pursuit(prober).without_broken().told == {}


def test_looking_for_a_set_that_runs_ends():
    prober = Prober(lambda units: Outcome.UNINSTALLABLE)
    ready = pursuit(prober).without_broken()
    assert 0 < len(ready.told) <= 13
    assert len(prober.prepared) < 50
