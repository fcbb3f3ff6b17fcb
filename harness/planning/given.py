"""What a repro is given before it runs: its inputs, and what its first step makes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.environment.inputs import Fetcher
from harness.errors import NotMade, UserMistake
from harness.model.given import ARTIFACTS, USE, Given
from harness.planning.releases import merged_requirements, one_date, pinned_prereleases
from harness.probing import Probe
from harness.probing.making import artifacts_of
from harness.request.parsing import required_name

if TYPE_CHECKING:
    from harness.environment import Index
    from harness.model import Combination, Made, Repro
    from harness.probing.prober import Prober


@frozen
class Giver:
    """Gives repros what they declare, with a prober and an index of this machine."""

    prober: Prober
    index: Index

    def given(self, repro: Repro, asked: Combination, as_of: str | None, made_with: tuple[str, ...] = ()) -> Repro:
        """Return the repro with its inputs, and with what its first step makes for the combination `asked`.

        `as_of` is the text of the question's day. Raises `NotMade`, `NoInput` and `UserMistake`.
        """
        repro = self.with_inputs(repro)
        if (made := made_of(repro, made_with)) is None:
            return repro
        found = self.made(repro, made, asked, as_of)
        if found.flaw:
            log = self.prober.store.log_path(found.run) if found.run else None
            shown = log is not None and log.is_file()
            raise NotMade(found.flaw, hint=f"zcat {log} shows its output" if shown else "--made-with names another")
        return repro.with_given(found, step=USE)

    def given_if_made(
        self, repro: Repro, asked: Combination, as_of: str | None, made_with: tuple[str, ...], *, run: bool = True
    ) -> Repro:
        """Like `given`, but the repro says so if its first step failed, or, without `run`, if it was not made yet."""
        repro = self.with_inputs(repro)
        if (made := made_of(repro, made_with)) is None:
            return repro
        return repro.with_given(self.made(repro, made, asked, as_of, run=run), step=USE)

    def with_inputs(self, repro: Repro) -> Repro:
        """Return the repro with the folder of its inputs, fetched unless they are kept. Raises `NoInput`."""
        if not repro.inputs:
            return repro
        fetcher = Fetcher(self.prober.trees, self.prober.builder.uv, Path(repro.path).absolute().parent)
        return repro.with_given(fetcher.fetch(repro.inputs))

    def made(self, repro: Repro, made: Made, asked: Combination, as_of: str | None, *, run: bool = True) -> Given:
        """Return what a first step writes; it is run unless that was done before."""
        probe = self.first_step(repro, made, asked, as_of)
        names = tuple(map(required_name, made.with_))
        if not run:
            seen = self.prober.known(probe)
            if seen is None:
                return Given(ARTIFACTS, "", "", " and ".join(made.with_), flaw="its files are not made yet")
        else:
            seen = self.prober.execute(self.prober.prepare(probe))
        return artifacts_of(seen, self.prober, names, made.with_)

    def first_step(self, repro: Repro, made: Made, asked: Combination, as_of: str | None) -> Probe:
        """Return the probe of a first step: as a run, but for what the step names."""
        named = set(map(required_name, made.with_))
        combination = evolve(
            asked,
            requirements=merged_requirements(asked.requirements, made.with_),
            holds=tuple(text for text in asked.holds if required_name(text) not in named),
            as_of=one_date(as_of, made.with_, self.index),
            near=None,
            prereleases=(*asked.prereleases, *pinned_prereleases(made.with_)),
        )
        return Probe(repro.first_step, combination)


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
    if not made_with:
        return repro.made
    return evolve(repro.made, with_=merged_requirements(repro.made.with_, made_with))
