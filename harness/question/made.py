"""A question about files that one step of a repro writes and another reads: which of the two is searched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve

from harness.environment.dates import one_date
from harness.errors import UserMistake
from harness.model import Combination, Repro
from harness.model.repro import ARTIFACTS
from harness.model.requirements import merged_requirements, pinned_prereleases, required_name
from harness.probing import Probe
from harness.probing.made import ByWriter, made_of, released, supplied, with_inputs
from harness.question.single import shared_combination

if TYPE_CHECKING:
    from harness.question.question import Question
    from harness.session import Session


def with_files(session: Session, question: Question) -> tuple[Session, Question]:
    """Return a session and a question whose runs find the files of the repro's first step, and its inputs.

    With `--made` the question is about the first step itself, and the session's prober lets one reader judge it.
    Raises `UserMistake`.
    """
    repro, settings = question.repro, session.settings
    run_itself = _run_itself(session, question)
    if not question.policy.made:
        given = supplied(session.local, repro, run_itself, question.as_of, settings.made_with)
        return session, evolve(question, repro=given, notes=(*question.notes, *_notes_on(given)))
    made = made_of(repro, settings.made_with)
    if made is None:
        raise UserMistake(
            f"--made needs a repro with a first step, and {repro.name} has none",
            hint="[tool.harness.made] in its metadata declares one",
        )
    if session.remote is not None:
        raise UserMistake("--on and --scheduler do not apply with --made: what is written is read on this machine")
    repro = with_inputs(session.local, repro)
    reader = Probe(repro, run_itself)
    resolution = session.local.resolve(reader)
    if resolution.lock is None:
        raise UserMistake(f"what reads the files can't be installed: {resolution.words}")
    names = tuple(dict.fromkeys((question.subject, *map(required_name, made.with_))))
    writer = evolve(
        repro.first_step, dependencies=merged_requirements(run_itself.requirements, made.with_), subjects=made.subjects
    )
    by = released(resolution.lock, names)
    note = f"the files that each release writes are read by {by} (--with changes it)"
    question = evolve(
        question,
        repro=writer,
        combination=shared_combination(session, writer, (), question.subject),
        typed=(*question.typed, "--made"),
        notes=(*question.notes, note),
    )
    by_writer = ByWriter(session.local, evolve(reader, lock=resolution.lock), names[:1])
    return evolve(session, by_writer=by_writer), question


def other_step(session: Session, question: Question) -> dict[str, str]:
    """Return what wrote or what reads the files while the releases of the other step are searched; empty without."""
    if session.by_writer is not None:
        return {"read_by": released(session.by_writer.reader.lock, session.by_writer.names)}
    made = next((folder for folder in question.repro.given if folder.variable == ARTIFACTS), None)
    return {"written_by": made.by, "run": made.run} if made is not None else {}


def sentence_about(files: dict[str, str]) -> str:
    """Return the sentence of an answer that names the releases of the other step."""
    if by := files.get("written_by"):
        return f"Each release read what {by} wrote."
    return f"Each release wrote what {files['read_by']} read."


def _run_itself(session: Session, question: Question) -> Combination:
    own, shared = question.repro.dependencies, question.combination
    day = one_date(question.as_of if question.as_of != "era" else None, (), session.index)
    return evolve(
        shared,
        requirements=merged_requirements(own, shared.requirements),
        prereleases=pinned_prereleases([text for text in shared.requirements if text not in own]),
        as_of=day,
    )


def _notes_on(repro: Repro) -> tuple[str, ...]:
    """Return sentences about the folders that the runs are given."""
    writers = (folder.by for folder in repro.given if folder.by)
    made = [f"{by} wrote the files that each run reads (--made-with changes it)" for by in writers]
    return (*made, *([f"inputs: {repro.inputs}, read-only"] if repro.inputs else []))
