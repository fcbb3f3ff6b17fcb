"""Questions about a repro of two steps: which releases write the files, and which read them.

By default the first step runs once, before the search, and the releases that read are searched. With `--made` the
releases that write are searched, and one environment reads what each of them wrote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve

from harness.errors import UserMistake
from harness.model import Combination
from harness.model.given import ARTIFACTS
from harness.model.text import listed
from harness.planning.given import Giver, made_of
from harness.planning.releases import holds_of, merged_requirements, one_date, pinned_prereleases
from harness.probing import Probe
from harness.probing.making import released
from harness.request.parsing import required_name

if TYPE_CHECKING:
    from harness.model import Repro
    from harness.planning.inquiry import Inquiry
    from harness.session import Session


def with_files(session: Session, inquiry: Inquiry) -> tuple[Session, Inquiry]:
    """Return a session and a question whose runs find the files of the repro's first step, and its inputs.

    With `--made` the question is about the first step itself, and the session's prober lets one reader judge it.
    Raises `NotMade`, `NoInput` and `UserMistake`.
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
        repro.first_step,
        dependencies=merged_requirements(run_itself.requirements, made.with_),
        subjects=made.subjects,
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


def _run_itself(session: Session, inquiry: Inquiry) -> Combination:
    """Return the combination of the repro as it is, without a release that a search tries."""
    repro, named = inquiry.repro, {required_name(text) for text in inquiry.with_}
    device, _ = session.device_for(repro)
    fixed_day = inquiry.as_of if inquiry.as_of != "era" else None
    return Combination(
        python=session.interpreter.version,
        requirements=merged_requirements(repro.dependencies, inquiry.with_),
        holds=merged_requirements((), holds_of(repro, inquiry.subject, named, inquiry.hold)),
        as_of=one_date(fixed_day, (), session.index),
        device=device,
        prereleases=pinned_prereleases(inquiry.with_),
        from_source=inquiry.from_source,
    )


def _told(repro: Repro) -> tuple[str, ...]:
    """Return sentences about the folders that the runs are given."""
    made = [f"{one.by} wrote the files that each run reads (--made-with changes it)" for one in repro.given if one.by]
    inputs = [one.words for one in repro.inputs]
    return (*made, *([f"inputs: {listed(inputs)}, read-only"] if inputs else []))
