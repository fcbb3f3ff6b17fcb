"""The answer of a bisection: what the search found, each step that led there, and one sentence that sums it up."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any

import cattrs
from attrs import asdict, field, frozen

from harness.model import Change, Observation, Signature
from harness.model.culprit import Culprit, Evidence
from harness.model.signature import given_parts
from harness.model.text import sentence_and_table
from harness.model.verdict import Step
from harness.search import Counts, Effect


class Status(enum.StrEnum):
    """How an investigation ended; the exit code of `harness bisect` follows from it."""

    FOUND = "found"
    FIXED = "fixed"
    NOT_A_REGRESSION = "not-a-regression"
    NO_FAILURE = "no-failure"
    NOT_FIXED = "not-fixed"
    INCONCLUSIVE = "inconclusive"

    @property
    def exit_code(self) -> int:
        """0: an answer was found, 1: there is nothing to find, 3: not sure."""
        return {Status.FOUND: 0, Status.FIXED: 0, Status.INCONCLUSIVE: 3}.get(self, 1)


@frozen
class Answer:
    """The result of one bisection.

    `last_good` and `first_bad` are set for a regression, `last_bad` and `first_good` for a fix. `suspects` are the
    releases in which the change may be, a single one if it is certain. `confidence` is the probability that the answer
    is right, estimated from the runs; `good_side` and `bad_side` count the runs on both sides of the change; `effect`
    is the difference of a metric between them. `sentence` is the answer, `advice` the next command. `left_out` maps
    untested releases of the range to their reasons; `lock_changes` is the difference of the locks at the two sides;
    `drift` lists by release what could not be held, `altered` the files of its environment that a run changed. `sides`
    are the observations just before and just after the change. `culprit` is what made the difference, None if the
    search did not go below the release or found nothing. `probes` counts the releases that were run now rather than
    answered by the store, `culprit_probes` the runs of the search for the culprit. `wall_s` is in seconds.
    """

    subject: str
    repro: str
    status: Status
    sentence: str
    signature: Signature | None
    steps: tuple[Step, ...]
    last_good: str | None = None
    first_bad: str | None = None
    last_bad: str | None = None
    first_good: str | None = None
    suspects: tuple[str, ...] = ()
    advice: str = ""
    device: str = "cpu"
    python: str = ""
    as_of: str = "none"
    left_out: dict[str, str] = field(factory=dict)
    lock_changes: tuple[Change, ...] = ()
    drift: dict[str, tuple[str, ...]] = field(factory=dict)
    altered: dict[str, tuple[str, ...]] = field(factory=dict)
    sides: tuple[Observation, ...] = ()
    culprit: Culprit | None = None
    probes: int = 0
    culprit_probes: int = 0
    confidence: float | None = None
    good_side: Counts | None = None
    bad_side: Counts | None = None
    effect: Effect | None = None
    wall_s: float = 0.0
    ends: dict[str, dict[str, str] | None] = field(factory=dict)
    constraint: str = ""
    evidence: tuple[Evidence, ...] = ()

    def _repr_html_(self) -> str:
        rows = [(step.release, step.verdict.value, step.reason, f"{step.seconds:.1f}") for step in self.steps]
        return sentence_and_table(self.sentence, ("release", "verdict", "reason", "seconds"), rows)

    def as_json(self) -> dict[str, Any]:
        """Return the answer as `harness bisect --json` prints it (schema 2); a repro is one group without tests."""
        ends = (
            {"last_bad": self.last_bad, "first_good": self.first_good}
            if self.status is Status.FIXED or self.status is Status.NOT_FIXED or self.last_bad is not None
            else {"last_good": self.last_good, "first_bad": self.first_bad}
        )
        return {
            "schema": 2,
            "subject": self.subject,
            "status": self.status.value,
            **ends,
            "suspects": list(self.suspects),
            "confidence": None if self.confidence is None else round(self.confidence, 4),
            "rates": {
                side: {"failed": counts.bad, "runs": counts.runs}
                for side, counts in (("good", self.good_side), ("bad", self.bad_side))
                if counts is not None
            },
            "effect": None if self.effect is None else asdict(self.effect),
            "signature": given_parts(self.signature),
            "steps": [step.as_json() for step in self.steps],
            "probes": self.probes,
            "culprit_probes": self.culprit_probes,
            "wall_s": round(self.wall_s, 2),
            "sentence": self.sentence,
            "advice": self.advice,
            "repro": self.repro,
            "device": self.device,
            "python": self.python,
            "as_of": self.as_of,
            "left_out": self.left_out,
            "lock_changes": [cattrs.unstructure(change) for change in self.lock_changes],
            "culprit": _culprit(self.culprit),
            "drift": {release: list(told) for release, told in self.drift.items()},
            "altered": {release: list(files) for release, files in self.altered.items()},
            "ends": {end: self.ends.get(end) for end in ("good", "bad")},
            "groups": [self._group()],
            "flaky": [],
            "failing_at_both": [],
            "constraints": [self.constraint] if self.constraint else [],
            "constraints_verified": bool(self.constraint),
        }

    def _group(self) -> dict[str, Any]:
        """Return the one group of a repro, with its culprits."""
        return {
            "tests": [],
            "signature": given_parts(self.signature),
            "status": self.status.value,
            "culprits": list(self._culprits()),
            "note": "",
        }

    def _culprits(self) -> Iterator[dict[str, Any]]:
        """Yield the packages of the finest finding, or the subject if the search did not go below the release."""
        older, newer = (self.last_good, self.first_bad) if self.first_bad else (self.last_bad, self.first_good)
        if self.status not in (Status.FOUND, Status.FIXED) or newer is None:
            return
        finest = self.culprit.finest if self.culprit is not None else None
        changes = finest.packages if finest is not None else (Change(self.subject, older, newer),)
        proofs = [p.observation.key for p in finest.proofs if p.observation is not None] if finest is not None else []
        for change in changes:
            yield {
                "package": change.name,
                "last_good": change.before,
                "first_bad": change.after,
                "suspects": list(self.suspects) if change.name == self.subject else [change.after],
                "message_since": None,
                "together_with": [other.name for other in changes if other.name != change.name],
                "companion": False,
                "files": list(finest.files) if finest is not None else [],
                "regions": [cattrs.unstructure(region) for region in finest.regions] if finest is not None else [],
                "commit": next((commit.as_json() for commit in finest.commits), None) if finest is not None else None,
                "evidence": [{"kind": one.kind, "name": one.name, "text": one.text} for one in self.evidence],
                "proved": finest.is_proved if finest is not None else len(self.suspects) == 1,
                "observations": proofs or [side.key for side in self.sides],
            }


def _culprit(culprit: Culprit | None) -> list[dict[str, Any]] | None:
    """Return the finding of each level, the coarsest first."""
    if culprit is None:
        return None
    return [
        {
            "level": finding.level.value,
            "proved": finding.is_proved,
            "minimal": finding.is_minimal,
            "packages": [str(change) for change in finding.packages],
            "files": list(finding.files),
            "regions": [cattrs.unstructure(region) for region in finding.regions],
            "needs": [cattrs.unstructure(region) for region in finding.needs],
            "needed_files": list(finding.needed_files),
            "reverted_along": [cattrs.unstructure(region) for region in finding.reverted_along],
            "proofs": [
                {
                    "sentence": proof.sentence,
                    "expected": proof.expected.value,
                    "verdict": proof.verdict.value,
                    "reason": proof.reason,
                    "observation": proof.observation.key if proof.observation else None,
                }
                for proof in finding.proofs
            ],
            "candidates": finding.candidates,
            "runs": finding.runs,
            "unresolved": finding.unresolved,
            "notes": list(finding.notes),
            "commits": [commit.as_json() for commit in finding.commits],
            "replay": finding.replay,
        }
        for finding in culprit.findings
    ]
