"""What is kept of a question: an id, and for an answer one JSON record with everything that its report needs.

The id of an answer names the question, the failure and what was found. So an answer to another failure, or at another
depth, never replaces it.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from harness.bisection.answer import Answer, QuestionRecord
from harness.bisection.by_culprit import answer_about, answers_by_culprit
from harness.errors import UserMistake
from harness.model import Repro, normalized_name
from harness.model.culprit import Level
from harness.model.signature import given_parts
from harness.model.text import listed
from harness.records import as_record, read_record

if TYPE_CHECKING:
    from harness.store import Store

SCHEMA = 5
_FOLDER = "answers"


@frozen
class StoredAnswer:
    """An answer, as its report shows it.

    `kept` is the time of storing (ISO 8601, UTC).
    """

    id: str
    answer: Answer
    kept: str

    @property
    def about(self) -> set[str]:
        """The subject, and the packages of the culprit."""
        changes = (change for culprit in self.answer.culprits for change in culprit.packages)
        return {self.answer.subject, *(change.name for change in changes)}

    def about_package(self, name: str) -> StoredAnswer:
        """Return what it says about one culprit, the package `name`. Raises `UserMistake` if that is no culprit."""
        culprits = self.answer.culprits
        wanted = [
            culprit
            for culprit in culprits
            if normalized_name(name) in {culprit.package, *(change.name for change in culprit.packages)}
        ]
        if not wanted:
            known = listed(dict.fromkeys(culprit.package for culprit in culprits))
            hint = f"its culprits: {known}" if culprits else "it has no culprit"
            raise UserMistake(f"{name} is no culprit of this answer", hint=hint)
        return evolve(self, answer=answer_about(self.answer, wanted)) if len(culprits) > len(wanted) else self

    @property
    def repro(self) -> Repro:
        """What ran."""
        return self.answer.question.repro


def stored_answer(answer: Answer, time: str) -> StoredAnswer:
    """Return the record of an answer; `time` is when it is stored (ISO 8601, UTC)."""
    found: list[Any] = []
    for part in answers_by_culprit(answer):
        candidates = part.boundary.candidates
        depth = part.findings[-1].level if part.findings else Level.RELEASE
        found += [candidate.version for candidate in (*candidates[:1], *candidates[-1:])]
        found += [part.subject, depth.value, given_parts(part.signature), *part.boundary.ends]
    return StoredAnswer(question_id(answer.question, *found), answer.lean(), time)


def question_id(question: QuestionRecord, *parts: Any) -> str:
    """Return the id of a question: ten hexadecimal digits. `parts` are what else distinguishes two questions."""
    what = [as_record(question, SCHEMA), *parts]
    return hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()[:10]


@frozen
class Archive:
    """The answers of one results folder."""

    store: Store

    def put(self, stored: StoredAnswer) -> None:
        """Store an answer; it replaces an earlier answer to the same question. Raises `NoSpace`."""
        record = json.dumps(as_record(stored, SCHEMA), indent=1, sort_keys=True)
        self.store.write(f"{_FOLDER}/{stored.id}.json", record)

    def find(self, id_: str) -> StoredAnswer | None:
        """Return the answer with an id, None if there is none that can be read."""
        return read_record(self.store.root / f"{_FOLDER}/{id_}.json", StoredAnswer, SCHEMA)

    def get(self, prefix: str | None = None) -> StoredAnswer:
        """Return the answer whose id starts with `prefix` (default: the newest answer).

        Raises `UserMistake` if there is none, or more than one id starts with it.
        """
        answers = self.all()
        if not answers:
            raise UserMistake(f"no answers in {self.store.root}", hint="harness bisect makes them")
        if prefix is None:
            return answers[-1]
        matches = [stored for stored in answers if stored.id.startswith(prefix)]
        if len(matches) == 1:
            return matches[0]
        listed = "; ".join(f"{stored.id} {stored.answer.subject} with {stored.answer.repro}" for stored in answers)
        many = f"{len(matches)} answer ids start" if matches else "no answer id starts"
        raise UserMistake(f"{many} with {prefix!r} in {self.store.root}", hint=f"known answers: {listed}")

    def all(self) -> list[StoredAnswer]:
        """Return all answers, the newest last; skips records that can't be read."""
        return sorted(self.store.records(_FOLDER, StoredAnswer, SCHEMA), key=lambda stored: (stored.kept, stored.id))
