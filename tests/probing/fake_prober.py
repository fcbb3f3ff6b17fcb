"""A prober that answers from a dict."""

from __future__ import annotations

import threading

from attrs import define, field

from harness.model import Device, Observation, Outcome, Verdict
from harness.probing import Prepared
from harness.run.process import Cancelled, pause

OUTCOMES = {"G": Outcome.COMPLETED, "B": Outcome.RAISED, "U": Outcome.UNRESOLVABLE}
VERDICTS = {Outcome.COMPLETED: Verdict.GOOD, Outcome.RAISED: Verdict.BAD, Outcome.UNRESOLVABLE: Verdict.SKIP}
WAIT_S = 300


def observation(trial, letter):
    return Observation(f"{trial.position}-{trial.attempt}", OUTCOMES[letter], "repro", "d", Device.CPU)


@define
class FakeProber:
    """Answers from a string with one letter per position. Positions in `known` are stored; those with the same entry in
    `keys` share a key."""

    letters: str
    keys: dict[int, str] = field(factory=dict)
    known: frozenset[int] = frozenset()
    broken: dict[int, Exception] = field(factory=dict)
    stuck: frozenset[int] = frozenset()
    wait_for: dict[int, threading.Event] = field(factory=dict)
    prepared: list[int] = field(factory=list)
    executed: list[int] = field(factory=list)
    called_off: list[int] = field(factory=list)
    saw: dict[int, threading.Event] = field(factory=dict)

    def prepare(self, probe):
        """Answer, or prepare."""
        self.prepared.append(probe.position)
        self.saw.setdefault(probe.position, threading.Event()).set()
        if probe.position in self.broken:
            raise self.broken[probe.position]
        letter = self.letters[probe.position]
        known = letter == "U" or probe.position in self.known
        answer = observation(probe, letter) if known else None
        return Prepared(
            probe, self.keys.get(probe.position, str(probe)), observation=answer, cached=probe.position in self.known
        )

    def execute(self, prepared):
        """Run, after waiting."""
        position = prepared.probe.position
        self.executed.append(position)
        if position in self.stuck:
            try:
                pause(WAIT_S)
            except Cancelled:
                self.called_off.append(position)
                raise
            raise TimeoutError("nobody cancelled the run")
        if position in self.wait_for:
            assert self.wait_for[position].wait(WAIT_S)
        return observation(prepared.probe, self.letters[position])
