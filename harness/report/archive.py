"""What is kept of a question: an id, and for an answer one JSON record with everything that its report needs.

The id of an answer names the question, the failure and what was found. So an answer to another failure, or at another
depth, never replaces it.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from attrs import frozen

from harness.bisection.answer import Answer, QuestionRecord
from harness.errors import UserMistake
from harness.model import Repro
from harness.model.culprit import Level
from harness.model.signature import given_parts
from harness.store import as_record, read_record

if TYPE_CHECKING:
    from harness.store import Store

SCHEMA = 5
_FOLDER = "answers"


@frozen
class KeptAnswer:
    """An answer about one culprit, as its report shows it.

    `kept` is the time of storing (ISO 8601, UTC).
    """

    id: str
    answer: Answer
    kept: str

    @property
    def about(self) -> set[str]:
        """The subject, and the packages of the culprit."""
        found = self.answer.findings[-1].packages if self.answer.findings else ()
        return {self.answer.subject, *(change.name for change in found)}

    @property
    def repro(self) -> Repro:
        """What ran."""
        return self.answer.asked.repro


def kept_answer(answer: Answer, kept: str) -> KeptAnswer:
    """Combine an answer about one culprit and the current time (ISO 8601, UTC)."""
    candidates = answer.boundary.candidates
    depth = answer.findings[-1].level if answer.findings else Level.RELEASE
    found = (answer.subject, depth.value, given_parts(answer.signature), *answer.boundary.ends)
    ends = tuple(candidate.version for candidate in (*candidates[:1], *candidates[-1:]))
    return KeptAnswer(question_id(answer.asked, *ends, *found), answer.lean(), kept)


def question_id(asked: QuestionRecord, *more: Any) -> str:
    """Identify what was asked: ten hexadecimal digits. `more` is what else distinguishes two questions."""
    what = [as_record(asked, SCHEMA), *more]
    return hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()[:10]


@frozen
class Archive:
    """The answers of one results folder."""

    store: Store

    def put(self, kept: KeptAnswer) -> None:
        """Store an answer; it replaces an earlier answer to the same question. Raises `NoSpace`."""
        record = json.dumps(as_record(kept, SCHEMA), indent=1, sort_keys=True)
        self.store.write(f"{_FOLDER}/{kept.id}.json", record)

    def known(self, id_: str) -> KeptAnswer | None:
        """Return the answer with an id, None if there is none that can be read."""
        return read_record(self.store.root / f"{_FOLDER}/{id_}.json", KeptAnswer, SCHEMA)

    def get(self, prefix: str | None = None) -> KeptAnswer:
        """Return the answer whose id starts with `prefix` (default: the newest answer).

        Raises `UserMistake` if there is none, or more than one id starts with it.
        """
        known = self.all()
        if not known:
            raise UserMistake(f"no answers in {self.store.root}", hint="harness bisect makes them")
        if prefix is None:
            return known[-1]
        found = [kept for kept in known if kept.id.startswith(prefix)]
        if len(found) == 1:
            return found[0]
        listed = "; ".join(f"{kept.id} {kept.answer.subject} with {kept.answer.repro}" for kept in known)
        many = f"{len(found)} answer ids start" if found else "no answer id starts"
        raise UserMistake(f"{many} with {prefix!r} in {self.store.root}", hint=f"known answers: {listed}")

    def all(self) -> list[KeptAnswer]:
        """Return all answers, the newest last; skips records that can't be read."""
        return sorted(self.store.records(_FOLDER, KeptAnswer, SCHEMA), key=lambda kept: (kept.kept, kept.id))
