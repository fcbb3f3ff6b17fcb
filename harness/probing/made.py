"""The folders that a run gets: its repro's inputs, and what the repro's first step wrote.

A first step is a probe like any other: it has a lock, an environment and an observation, which names what it wrote. By
default it runs once, before the search, and the releases that read are searched. With `--made` the releases that write
are searched (`ByWriter`), and one environment reads what each of them wrote.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.environment.dates import one_date
from harness.environment.trees import NotKept
from harness.errors import UserMistake
from harness.model import Combination, Lock, Made, Observation, Outcome, Repro, normalized_name
from harness.model.repro import ARTIFACTS, INPUTS, USE, Given
from harness.model.requirements import merged_requirements, pinned_prereleases, required_name
from harness.probing.probe import Around, Prepared, Probe, observation_without_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harness.probing.prober import Prober


def supplied(
    prober: Prober, repro: Repro, combination: Combination, as_of: str | None, made_with: tuple[str, ...] = ()
) -> Repro:
    """Return the repro with its inputs, and with what its first step makes for a combination of the run itself.

    `as_of` is the text of the question's day, `made_with` replaces requirements of the first step. Raises `UserMistake`
    if a folder is missing or the first step failed.
    """
    repro = supplied_if_made(prober, repro, combination, as_of, made_with)
    for folder in repro.given:
        if folder.flaw:
            log = prober.store.log_path(folder.run) if folder.run else None
            is_kept = log is not None and log.is_file()
            hint = f"zcat {log} shows its output" if is_kept else "--made-with names another"
            raise UserMistake(folder.flaw, hint=hint)
    return repro


def supplied_if_made(
    prober: Prober,
    repro: Repro,
    combination: Combination,
    as_of: str | None,
    made_with: tuple[str, ...] = (),
    *,
    run: bool = True,
) -> Repro:
    """Like `supplied`, but the repro says so if its first step failed, or, without `run`, if it did not run yet."""
    repro = with_inputs(prober, repro)
    made = made_of(repro, made_with)
    if made is None:
        return repro
    step = _first_step(prober, repro, made, combination, as_of)
    wrote = prober.execute(prober.prepare(step)) if run else prober.known(step)
    if wrote is None:
        folder = Given(ARTIFACTS, "", "", " and ".join(made.with_), flaw="its files are not made yet")
    else:
        folder = _written(wrote, prober, map(required_name, made.with_), made.with_)
    return repro.with_given(folder, step=USE)


def with_inputs(prober: Prober, repro: Repro) -> Repro:
    """Return the repro with a read-only copy of the folder of its inputs. Raises `UserMistake`."""
    if not repro.inputs:
        return repro
    folder = _folder_of_inputs(repro)
    if not folder.is_dir() or not any(folder.iterdir()):
        raise UserMistake(f"inputs: there is no folder {folder}, or it has no files")
    try:
        digest = prober.trees.keep(folder)
    except NotKept as why:
        raise UserMistake(f"inputs: {folder} can't be copied: {why}") from None
    return repro.with_given(Given(INPUTS, str(prober.workspace.trees / digest), digest))


def _folder_of_inputs(repro: Repro) -> Path:
    """Return the folder of a repro's inputs, without links. Raises `UserMistake` unless it is below the repro's own.

    The author of a repro may be a stranger, and what is in the folder is shown to its runs and packed into bundles.
    """
    own = Path(repro.path).absolute().parent.resolve()
    folder = (own / repro.inputs).resolve()
    below = folder.relative_to(own).parts if folder.is_relative_to(own) else ()
    if not below or any(part.startswith(".") for part in below):
        raise UserMistake(
            f"inputs: {repro.inputs} is not a folder below {own}, where the repro is",
            hint="move or copy what the repro needs into a folder beside it, whose name has no dot in front",
        )
    return folder


def made_of(repro: Repro, made_with: tuple[str, ...]) -> Made | None:
    """Return the first step of a repro, with these requirements in place of its own; None if it has none.

    Raises `UserMistake` if requirements are given for a repro without one.
    """
    if repro.made is None:
        if made_with:
            raise UserMistake(
                f"--made-with: {repro.name} has no first step", hint="[tool.harness.made] in its metadata declares one"
            )
        return None
    return evolve(repro.made, with_=merged_requirements(repro.made.with_, made_with))


def _first_step(prober: Prober, repro: Repro, made: Made, combination: Combination, as_of: str | None) -> Probe:
    """Return the probe of a first step: as the run itself, but for what the step names."""
    named = set(map(required_name, made.with_))
    own = evolve(
        combination,
        requirements=merged_requirements(combination.requirements, made.with_),
        holds=tuple(text for text in combination.holds if required_name(text) not in named),
        as_of=one_date(as_of, made.with_, prober.resolutions.resolver.index),
        near=None,
        prereleases=(*combination.prereleases, *pinned_prereleases(made.with_)),
    )
    return Probe(repro.first_step, own)


def released(lock: Lock | None, names: Iterable[str]) -> str:
    """Return the releases that a lock has of these projects: "peft 0.17.1 and torch 2.8.0"; "" without a lock."""
    releases = [f"{name} {version}" for name in names if lock is not None and (version := lock.version_of(name))]
    return " and ".join(releases)


def _written(observation: Observation, prober: Prober, names: Iterable[str], requirements: Iterable[str]) -> Given:
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
        read = self._read(probe, prepared.observation, lambda reader: self.prober.prepare(reader).observation)
        return evolve(prepared, observation=read, cached=prepared.cached and read is not None)

    def execute(self, prepared: Prepared) -> Observation:
        """Run a first step unless that was done, then the reader."""
        if prepared.observation is not None:
            return prepared.observation
        probe = prepared.probe
        first = prepared if prepared.environment is not None else self.prober.prepare(probe)
        wrote = self.prober.execute(first)

        return self._read(probe, wrote, lambda reader: self.prober.execute(self.prober.prepare(reader))) or wrote

    def _read(
        self, probe: Probe, wrote: Observation, reading: Callable[[Probe], Observation | None]
    ) -> Observation | None:
        """Return what the reader made of what a first step wrote, as `reading` observes it."""
        if not wrote.wrote:
            return self._unmade(probe, wrote)
        folder = _written(wrote, self.prober, self.names, probe.combination.requirements)
        reader = evolve(self.reader, repro=self.reader.repro.with_given(folder, step=USE), attempt=probe.attempt)
        read = reading(reader)
        return _of_both(read, wrote) if read is not None else None

    def _unmade(self, probe: Probe, wrote: Observation) -> Observation:
        """Return the observation that there is nothing to read; the run itself is kept with its own outcome."""
        if not wrote.outcome.ran and wrote.outcome is not Outcome.NOT_MADE:
            return wrote
        key = hashlib.sha256(f"{wrote.key} not made".encode()).hexdigest()[:20]
        words = _written(wrote, self.prober, self.names, probe.combination.requirements).flaw
        unmade = observation_without_run(probe, key, Outcome.NOT_MADE, words, wrote.lock, setup_s=wrote.setup_s)
        return self.store.without_secrets(unmade)


def _of_both(read: Observation, wrote: Observation) -> Observation:
    """Return the reader's observation with the environment of the first step, which is what was searched."""
    return evolve(
        read,
        lock=wrote.lock,
        loaded=wrote.loaded,
        trace=wrote.trace,
        mixture=wrote.mixture,
        requirements=wrote.requirements,
        as_of=wrote.as_of,
        drift=wrote.drift,
        duration_s=round(read.duration_s + wrote.duration_s, 3),
        setup_s=round(read.setup_s + wrote.setup_s, 3),
        altered=(*wrote.altered, *read.altered),
    )
