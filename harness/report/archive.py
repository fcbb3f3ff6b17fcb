"""What is kept of a question: an id, and for an answer one JSON record with everything that its report needs.

The id of an answer names the question, the failure and what was found. So an answer to another failure, or at another
depth, never replaces it.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import cattrs
from attrs import evolve, frozen

from harness.bisect.answer import Answer
from harness.errors import UserMistake
from harness.model import Observation, Repro
from harness.model.culprit import Culprit, Level
from harness.model.signature import given_parts

if TYPE_CHECKING:
    from harness.planning.plan import Plan
    from harness.store import Store

SCHEMA = 1
_FOLDER = "answers"

_converter = cattrs.Converter(omit_if_default=True, forbid_extra_keys=False)


@frozen
class KeptRelease:
    """One release of the range; `uploaded` is an ISO date, "" if the index has none."""

    version: str
    uploaded: str = ""


@frozen
class KeptAnswer:
    """An answer with its question.

    `releases` are those that could be tried, in version order; `requirements` and `holds` were requested besides the
    subject; `kept` is the time of storing (ISO 8601, UTC); `pass_env` names the variables passed to the repro, whose
    values no report may show; `facts` are further facts for its report, as label and text.
    """

    id: str
    answer: Answer
    repro: Repro
    kept: str
    releases: tuple[KeptRelease, ...] = ()
    requirements: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()
    pass_env: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()


def kept_answer(
    plan: Plan, answer: Answer, kept: str, pass_env: tuple[str, ...] = (), commits: tuple[str, ...] = ()
) -> KeptAnswer:
    """Combine an answer and its plan; `kept` is the current time (ISO 8601, UTC).

    If commits were searched, `commits` replace the releases.
    """
    versions = list(commits) or [str(release.version) for release in plan.releases]
    depth = answer.culprit.finest.level if answer.culprit is not None else Level.RELEASE
    found = (depth.value, given_parts(answer.signature), answer.first_bad, answer.first_good)
    return KeptAnswer(
        id=question_id(plan, *versions[:1], *versions[-1:], plan.question.find_fix, *found),
        answer=_lean(answer),
        repro=plan.repro,
        kept=kept,
        releases=tuple(map(KeptRelease, commits))
        or tuple(
            KeptRelease(str(release.version), release.uploaded.date().isoformat() if release.uploaded else "")
            for release in plan.releases
        ),
        requirements=plan.requirements,
        holds=plan.holds,
        pass_env=pass_env,
    )


def question_id(plan: Plan, *more: Any) -> str:
    """Identify what was asked: ten hexadecimal digits. `more` is what else distinguishes two questions."""
    what = [
        plan.subject,
        plan.repro.digest,
        plan.repro.params,
        sorted(plan.requirements),
        sorted(plan.holds),
        plan.interpreter.version,
        plan.device.value,
        plan.as_of,
        *more,
    ]
    return hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()[:10]


@frozen
class Archive:
    """The answers of one results folder."""

    store: Store

    def put(self, kept: KeptAnswer) -> None:
        """Store an answer; it replaces an earlier answer to the same question. Raises `NoSpace`."""
        record = {"schema": SCHEMA, **_converter.unstructure(kept)}
        self.store.write(f"{_FOLDER}/{kept.id}.json", json.dumps(record, indent=1, sort_keys=True))

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
        found = []
        for path in (self.store.root / _FOLDER).glob("*.json"):
            try:
                record = json.loads(path.read_text(encoding="utf-8"))
                if record.get("schema") == SCHEMA:
                    found.append(_converter.structure(record, KeptAnswer))
            except (OSError, ValueError, KeyError, TypeError, AttributeError, cattrs.BaseValidationError):
                continue
        return sorted(found, key=lambda kept: (kept.kept, kept.id))


def _lean(answer: Answer) -> Answer:
    """The answer without data that only the search needed, and that the stored observations have."""
    answer = evolve(answer, sides=tuple(_lean_run(side) for side in answer.sides))
    if answer.culprit is None:
        return answer
    findings = [
        evolve(
            finding,
            proofs=tuple(
                evolve(proof, observation=_lean_run(proof.observation) if proof.observation else None)
                for proof in finding.proofs
            ),
        )
        for finding in answer.culprit.findings
    ]
    return evolve(answer, culprit=Culprit(tuple(findings)))


def _lean_run(observation: Observation) -> Observation:
    return evolve(observation, loaded={}, trace=None)
