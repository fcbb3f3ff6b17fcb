"""Probes of two steps: what one environment wrote, another reads.

A first step is a probe like any other: it has a lock, an environment and an observation, which names what it wrote.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.model import Lock, Observation, Outcome, normalized_name
from harness.model.repro import ARTIFACTS, USE, Given
from harness.probing.probe import Around, Prepared, Probe, observation_without_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harness.probing.prober import Prober


def released(lock: Lock | None, names: Iterable[str]) -> str:
    """Return the releases that a lock has of these projects: "peft 0.17.1 and torch 2.8.0"; "" without a lock."""
    found = [f"{name} {version}" for name in names if lock is not None and (version := lock.version_of(name))]
    return " and ".join(found)


def artifacts_of(observation: Observation, prober: Prober, names: Iterable[str], requirements: Iterable[str]) -> Given:
    """Return the folder that a first step wrote; `names` are the projects that it is about."""
    by = released(observation.lock, map(normalized_name, names)) or " and ".join(requirements)
    folder = prober.trees.folder(observation.wrote)
    if folder is None or observation.outcome is not Outcome.COMPLETED:
        return Given(ARTIFACTS, "", "", by, observation.key, f"{by} did not write the files: {_why(observation)}")
    return Given(ARTIFACTS, str(folder), observation.wrote, by, observation.key)


def _why(observation: Observation) -> str:
    detail = (observation.detail or observation.outcome.value).removeprefix(f"{Outcome.NOT_MADE.value}: ")
    return detail if observation.outcome is not Outcome.COMPLETED else "what it wrote is no longer in the cache"


@frozen
class ByWriter(Around):
    """A prober whose probes are first steps; what they wrote is read by the same `reader` each time.

    What it observes is the reader's run, with the lock and the trace of the first step, whose packages are what is
    searched. A first step that fails is an observation of its own (NOT_MADE). `names` are the projects that write.
    """

    prober: Prober
    reader: Probe
    names: tuple[str, ...]

    def known(self, probe: Probe) -> Observation | None:
        """Return what the reader made of an earlier first step, or None."""
        wrote = self.prober.known(probe)
        return None if wrote is None else self._read(probe, wrote, self.prober.known)

    def prepare(self, probe: Probe) -> Prepared:
        """Prepare a first step, or return what the reader made of an earlier one."""
        prepared = self.prober.prepare(probe)
        if prepared.observation is None:
            return prepared
        read = self._read(probe, prepared.observation, lambda one: self.prober.prepare(one).observation)
        return evolve(prepared, observation=read, cached=prepared.cached and read is not None)

    def execute(self, prepared: Prepared) -> Observation:
        """Run a first step unless that was done, then the reader."""
        if prepared.observation is not None:
            return prepared.observation
        probe = prepared.probe
        first = prepared if prepared.environment is not None else self.prober.prepare(probe)
        wrote = self.prober.execute(first)

        def run(one: Probe) -> Observation:
            return self.prober.execute(self.prober.prepare(one))

        return self._read(probe, wrote, run) or wrote

    def _read(
        self, probe: Probe, wrote: Observation, reading: Callable[[Probe], Observation | None]
    ) -> Observation | None:
        """Return what the reader made of what a first step wrote, as `reading` observes it."""
        if not wrote.wrote:
            return self._unmade(probe, wrote)
        seen = reading(self._reading(probe, wrote))
        return _of_both(seen, wrote) if seen is not None else None

    def _reading(self, probe: Probe, wrote: Observation) -> Probe:
        given = artifacts_of(wrote, self.prober, self.names, probe.combination.requirements)
        return evolve(self.reader, repro=self.reader.repro.with_given(given, step=USE), attempt=probe.attempt)

    def _unmade(self, probe: Probe, wrote: Observation) -> Observation:
        """Return the observation that there is nothing to read; the run itself is kept with its own outcome."""
        if not wrote.outcome.ran and wrote.outcome is not Outcome.NOT_MADE:
            return wrote
        key = hashlib.sha256(f"{wrote.key} not made".encode()).hexdigest()[:20]
        words = artifacts_of(wrote, self.prober, self.names, probe.combination.requirements).flaw
        unmade = observation_without_run(probe, key, Outcome.NOT_MADE, words, wrote.lock, setup_s=wrote.setup_s)
        return self.store.without_secrets(unmade)


def _of_both(seen: Observation, wrote: Observation) -> Observation:
    """Return the reader's observation with the environment of the first step, which is what was searched."""
    return evolve(
        seen,
        lock=wrote.lock,
        loaded=wrote.loaded,
        trace=wrote.trace,
        mixture=wrote.mixture,
        requirements=wrote.requirements,
        as_of=wrote.as_of,
        drift=wrote.drift,
        duration_s=round(seen.duration_s + wrote.duration_s, 3),
        setup_s=round(seen.setup_s + wrote.setup_s, 3),
        altered=(*wrote.altered, *seen.altered),
    )
