"""An answer for others than people at a terminal: as JSON for programs, as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cattrs
from attrs import fields, frozen
from cattrs.gen import make_dict_unstructure_fn, override

from harness.bisection.answer import SCHEMA, Answer, Failure, Status
from harness.bisection.sections import html_of
from harness.bisection.wording import head_of, state_of
from harness.model import Change, Observation, Signature
from harness.model.culprit import Commit, Culprit, Finding
from harness.model.signature import given_parts
from harness.model.text import picked
from harness.model.verdict import Step


@frozen
class ShownAnswer(Answer):
    """The answer that the Python API returns; a notebook shows it as tables."""

    @classmethod
    def of(cls, answer: Answer) -> ShownAnswer:
        """Return the same answer as one that shows itself."""
        return cls(**{part.name: getattr(answer, part.name) for part in fields(Answer)})

    def __str__(self) -> str:
        return self.sentence

    def _repr_html_(self) -> str:
        return html_of(self)

    def as_json(self) -> dict[str, Any]:
        """Return the answer as `harness bisect --json` prints it (schema 4)."""
        return json_of(self)


def json_of(answer: Answer) -> dict[str, Any]:
    """Return an answer as `harness bisect --json` prints it (schema 4, described in `answer.schema.json`)."""
    boundary = answer.boundary
    is_fix = boundary.is_fix or answer.status in (Status.FIXED, Status.NOT_FIXED)
    document = {
        "schema": SCHEMA,
        "subject": answer.subject or None,
        **picked(answer, "status sentence advice"),
        "head": head_of(answer),
        **picked(answer, "last_bad first_good suspects" if is_fix else "last_good first_bad suspects"),
        "confidence": boundary.certainty.confidence,
        "rates": {
            side: {"failed": counts.bad, "runs": counts.runs}
            for side, counts in (("good", boundary.certainty.good_side), ("bad", boundary.certainty.bad_side))
            if counts is not None
        },
        **picked(boundary.certainty, "effect"),
        **picked(answer, "signature failures constraints verified_by"),
        "constraints_verified": answer.verified_by is not None,
        **picked(answer.comparison, "flaky failing_at_both not_run back_to lifted not_kept not_rebuilt"),
        "ends": {end: answer.question.ends.get(end) for end in ("good", "bad")},
        **picked(answer, "steps lock_changes"),
        **picked(boundary, "left_out drift altered"),
        "culprit": answer.findings or None,
        **picked(answer.effort, "wall_s probes culprit_probes"),
        "repro": answer.repro,
        **picked(answer.question, "device python as_of files"),
        "notes": answer.notes,
    }
    return _JSON.unstructure(document)  # type: ignore[no-any-return]


def _guilty(culprit: Culprit) -> Iterator[dict[str, Any]]:
    """Yield each package of a culprit."""
    boundary = culprit.boundary
    for change in culprit.packages:
        is_own = change.name == culprit.package
        yield {
            "package": change.name,
            "last_good": change.before,
            "first_bad": change.after,
            "suspects": boundary.suspects if is_own else (change.after,),
            "together_with": [other.name for other in culprit.packages if other.name != change.name],
            "companions": [
                {"package": companion.subject, "constraint": companion.constraint} for companion in culprit.companions
            ],
            "evidence": culprit.evidence,
            "proved": culprit.is_proved,
            "observations": boundary.sides,
            "confidence": boundary.certainty.confidence,
            "flaky": boundary.certainty.is_flaky,
            "introduction": _JSON.unstructure(culprit.introduction) if is_own else None,
            "constraint": culprit.constraint if is_own or len(culprit.packages) == 1 else "",
        }


def _failure(failure: Failure) -> dict[str, Any]:
    guilty = (change for culprit in failure.culprits for change in _guilty(culprit))
    return {**_FAILURE(failure), "culprits": _JSON.unstructure(list(guilty))}


def _level(finding: Finding) -> dict[str, Any]:
    return {
        **_LEVEL(finding),
        "proved": finding.is_proved,
        "shown": state_of(finding),
        "packages": list(map(str, finding.packages)),
    }


# How the values of an answer are in its JSON: runs by their keys, and what is worked out besides what is stored.
_JSON = cattrs.Converter()
_JSON.register_unstructure_hook(Observation, lambda run: run.key)
_JSON.register_unstructure_hook(Signature, given_parts)
_JSON.register_unstructure_hook(Step, Step.as_json)
_JSON.register_unstructure_hook(Commit, Commit.as_json)
_JSON.register_unstructure_hook(Change, lambda change: picked(change, "name before after"))
_LEVEL = make_dict_unstructure_fn(Finding, _JSON, is_minimal=override(rename="minimal"))
_JSON.register_unstructure_hook(Finding, _level)
_FAILURE = make_dict_unstructure_fn(Failure, _JSON, culprits=override(omit=True), boundary=override(omit=True))
_JSON.register_unstructure_hook(Failure, _failure)
