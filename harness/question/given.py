"""What a repro is given before it runs: its inputs, and what its first step makes.

By default the first step runs once, before the search, and the releases that read are searched. With `--made` the
releases that write are searched, and one environment reads what each of them wrote.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.environment.dates import one_date
from harness.environment.trees import Fetcher
from harness.errors import UserMistake
from harness.model import Combination, Made, Repro
from harness.model.repro import ARTIFACTS, USE, Given
from harness.model.requirements import merged_requirements, pinned_prereleases, required_name
from harness.model.text import listed
from harness.probing import Probe
from harness.probing.making import artifacts_of, released
from harness.question.releases import holds_of

if TYPE_CHECKING:
    from datetime import datetime

    from harness.environment import Index
    from harness.probing.prober import Prober
    from harness.question.inquiry import Inquiry
    from harness.session import Session


@frozen
class Giver:
    """Gives repros what they declare, with a prober and an index of this machine."""

    prober: Prober
    index: Index

    def given(self, repro: Repro, asked: Combination, as_of: str | None, made_with: tuple[str, ...] = ()) -> Repro:
        """Return the repro with its inputs, and with what its first step makes for the combination `asked`.

        `as_of` is the text of the question's day. Raises `UserMistake`.
        """
        repro = self.given_if_made(repro, asked, as_of, made_with)
        for found in repro.given:
            if found.flaw:
                log = self.prober.store.log_path(found.run) if found.run else None
                shown = log is not None and log.is_file()
                raise UserMistake(
                    found.flaw, hint=f"zcat {log} shows its output" if shown else "--made-with names another"
                )
        return repro

    def given_if_made(
        self, repro: Repro, asked: Combination, as_of: str | None, made_with: tuple[str, ...] = (), *, run: bool = True
    ) -> Repro:
        """Like `given`, but the repro says so if its first step failed, or, without `run`, if it was not made yet."""
        repro = self.with_inputs(repro)
        if (made := made_of(repro, made_with)) is None:
            return repro
        return repro.with_given(self.made(repro, made, asked, as_of, run=run), step=USE)

    def with_inputs(self, repro: Repro) -> Repro:
        """Return the repro with the folder of its inputs, fetched unless they are kept. Raises `UserMistake`."""
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


def with_files(session: Session, inquiry: Inquiry) -> tuple[Session, Inquiry]:
    """Return a session and a question whose runs find the files of the repro's first step, and its inputs.

    With `--made` the question is about the first step itself, and the session's prober lets one reader judge it.
    Raises `UserMistake`.
    """
    repro, settings = inquiry.repro, session.settings
    giver = Giver(session.local, session.index)
    if not inquiry.policy.made:
        given = giver.given(repro, _run_itself(session, inquiry), inquiry.as_of, settings.made_with)
        return session, evolve(inquiry, repro=given, told=(*inquiry.told, *_told(given)))
    made = made_of(repro, settings.made_with)
    if made is None:
        raise UserMistake(
            f"--made needs a repro with a first step, and {repro.name} has none",
            hint="[tool.harness.made] in its metadata declares one",
        )
    if session.remote is not None:
        raise UserMistake("--scheduler does not apply with --made: what is written is read on this machine")
    repro = giver.with_inputs(repro)
    run_itself = _run_itself(session, inquiry)
    reader = Probe(repro, run_itself)
    resolution = session.local.resolve(reader)
    if resolution.lock is None:
        raise UserMistake(f"what reads the files can't be installed: {resolution.words}")
    names = tuple(dict.fromkeys((inquiry.subject, *map(required_name, made.with_))))
    writer = evolve(
        repro.first_step, dependencies=merged_requirements(run_itself.requirements, made.with_), subjects=made.subjects
    )
    by = released(resolution.lock, names)
    told = f"the files that each release writes are read by {by} (--with changes it)"
    typed = (*inquiry.typed, "--made")
    inquiry = evolve(inquiry, repro=writer, with_=(), typed=typed, told=(*inquiry.told, told))
    return evolve(session, reader=evolve(reader, lock=resolution.lock), writers=names[:1]), inquiry


def other_step(session: Session, inquiry: Inquiry) -> dict[str, str]:
    """Return what wrote or what reads the files while the releases of the other step are searched; empty without."""
    if session.reader is not None:
        return {"read_by": released(session.reader.lock, session.writers)}
    made = next((one for one in inquiry.repro.given if one.variable == ARTIFACTS), None)
    return {"written_by": made.by, "run": made.run} if made is not None else {}


def sentence_about(files: dict[str, str]) -> str:
    """Return the sentence of an answer that names the releases of the other step."""
    if by := files.get("written_by"):
        return f"Each release read what {by} wrote."
    return f"Each release wrote what {files['read_by']} read."


def combination_of(
    session: Session, repro: Repro, with_: tuple[str, ...], holds: tuple[str, ...], day: datetime | None
) -> Combination:
    """Return the combination of a repro as it is, without a release that a search tries."""
    device, _ = session.device_for(repro)
    return Combination(
        python=session.interpreter.version,
        requirements=merged_requirements(repro.dependencies, with_),
        holds=merged_requirements((), holds),
        as_of=day,
        device=device,
        prereleases=pinned_prereleases(with_),
        from_source=session.settings.buildable,
    )


def _run_itself(session: Session, inquiry: Inquiry) -> Combination:
    named = {required_name(text) for text in inquiry.with_}
    holds = holds_of(inquiry.repro, inquiry.subject, named, inquiry.hold)
    day = one_date(inquiry.as_of if inquiry.as_of != "era" else None, (), session.index)
    return combination_of(session, inquiry.repro, inquiry.with_, holds, day)


def _told(repro: Repro) -> tuple[str, ...]:
    """Return sentences about the folders that the runs are given."""
    made = [f"{one.by} wrote the files that each run reads (--made-with changes it)" for one in repro.given if one.by]
    inputs = [one.words for one in repro.inputs]
    return (*made, *([f"inputs: {listed(inputs)}, read-only"] if inputs else []))
