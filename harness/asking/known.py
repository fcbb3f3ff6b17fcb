"""Answers that are known already: the same question again is answered at once, and nothing runs."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import cattrs
from attrs import asdict, evolve, frozen

from harness import __version__
from harness.asking.answer import SCHEMA, Answer
from harness.asking.boundary import Boundary
from harness.asking.kinds import Kind
from harness.errors import HarnessError
from harness.model import normalized_name
from harness.request.ends import End, EndKind

if TYPE_CHECKING:
    from harness.planning.inquiry import Inquiry
    from harness.session import Session

_FOLDER = "answers/known"
_converter = cattrs.Converter(omit_if_default=True, forbid_extra_keys=False)


@frozen
class Known:
    """The answer to one question in the results folder, if there is one; `key` is "" if it can't be kept."""

    session: Session
    key: str

    @classmethod
    def of(cls, session: Session, inquiry: Inquiry, kind: Kind) -> Known:
        """Return the place of the answer to a question."""
        told = _identity(session, inquiry, kind)
        text = json.dumps(told, sort_keys=True, default=str) if told is not None else ""
        return cls(session, hashlib.sha256(text.encode()).hexdigest()[:20] if text else "")

    def answer(self) -> Answer | None:
        """Return the answer, None if there is none or one of its runs is gone."""
        store = self.session.store
        try:
            record = json.loads((store.root / f"{_FOLDER}/{self.key}.json").read_text(encoding="utf-8"))
            answer = _converter.structure(record, Answer) if self.key and record.pop("schema") == SCHEMA else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, cattrs.BaseValidationError):
            return None
        if answer is None or any(store.get(run.key) is None for one in answer.culprits for run in one.boundary.sides):
            return None
        told = (*answer.told, "answered from the results of an earlier search; nothing was run")
        failures = tuple(
            evolve(
                failure,
                culprits=tuple(evolve(one, boundary=_known(one.boundary)) for one in failure.culprits),
                boundary=_known(failure.boundary) if failure.boundary is not None else None,
            )
            for failure in answer.failures
        )
        return evolve(answer, failures=failures, probes=0, culprit_probes=0, wall_s=0.0, told=told, is_known=True)

    def keep(self, answer: Answer) -> None:
        """Keep an answer that found a change; others are searched again, which may find more. Raises `NoSpace`."""
        if self.key and answer.status.is_change:
            record = {"schema": SCHEMA, **_converter.unstructure(answer.lean())}
            store = self.session.store
            store.write(f"{_FOLDER}/{self.key}.json", store.without_secrets(json.dumps(record)))


def _known(boundary: Boundary) -> Boundary:
    """Return a boundary none of whose runs were made now."""
    return evolve(boundary, steps=tuple(evolve(step, cached=True, seconds=0.0) for step in boundary.steps))


def _identity(session: Session, inquiry: Inquiry, kind: Kind) -> dict[str, Any] | None:
    """Return all that the answer depends on; None if that can't be told at once, as for an environment's folder."""
    ends = [_end(end) for end in (inquiry.good, inquiry.bad)]
    if None in ends or kind is Kind.PYTHONS or session.remote is not None:
        return None
    repro, interpreter = inquiry.repro, session.interpreter
    told: dict[str, Any] = {
        "harness": __version__,
        "kind": kind.value,
        "subject": inquiry.subject,
        "ends": ends,
        "repro": (repro.digest, repro.params, repro.dependencies, str(repro.signature), str(repro.subjects)),
        "asked": (inquiry.with_, inquiry.hold, inquiry.as_of, inquiry.depth, inquiry.from_source),
        "policy": asdict(inquiry.policy),
        "python": (interpreter.version, str(interpreter.path)),
        "settings": session.settings.typed,
        "reader": (session.reader.lock.id, session.reader.repro.digest)
        if session.reader and session.reader.lock
        else "",
        "gpus": [str(gpu) for gpu in session.gpus],
    }
    if inquiry.subject:
        try:
            releases = session.index.releases(normalized_name(inquiry.subject))
        except HarnessError:
            return None  # the search says what is wrong
        told["releases"] = [(str(release.version), release.yanked) for release in releases]
    return told


def _end(end: End | None) -> tuple[str, ...] | None:
    """Return what an end is; None for one that may change without its name changing."""
    if end is None:
        return ("",)
    if end.kind in (EndKind.PYTHON, EndKind.COMMIT):
        return None
    content = hashlib.sha256(end.path.read_bytes()).hexdigest() if end.path is not None else ""
    return (end.kind.value, end.text, end.moment.isoformat() if end.moment is not None else "", content)
