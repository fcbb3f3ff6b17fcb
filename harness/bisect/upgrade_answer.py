"""The answer to a question between two worlds: groups of failing tests, the culprits of each, constraints that pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import asdict, frozen

from harness.bisect.answer import Answer, Status
from harness.bisect.boundary import Boundary
from harness.model import Change, Observation, Signature
from harness.model.culprit import Culprit, Evidence
from harness.model.signature import given_parts
from harness.planning.plan import Plan

if TYPE_CHECKING:
    from harness.request.ends import End


@frozen
class PackageCulprit:
    """One package that broke a group: its boundary, its partners, and the levels below.

    `moved` are the changes between the locks of the boundary's two runs. `is_companion` means that it must be held back
    only because another culprit's older release does not run with its newer one. `forward` is the run of the good end
    with this package upgraded alone, if there was one.
    """

    boundary: Boundary
    together_with: tuple[str, ...] = ()
    is_companion: bool = False
    moved: tuple[Change, ...] = ()
    deeper: Culprit | None = None
    evidence: tuple[Evidence, ...] = ()
    forward: Observation | None = None

    @property
    def package(self) -> str:
        """The name of the package."""
        return self.boundary.package

    @property
    def is_proved(self) -> bool:
        """Whether two neighbouring releases were run, one good and one bad."""
        return self.boundary.is_certain

    def as_json(self) -> dict[str, Any]:
        """Return the culprit as part of an answer's JSON."""
        finest = self.deeper.finest if self.deeper is not None else None
        return {
            "package": self.package,
            "last_good": self.boundary.last_good,
            "first_bad": self.boundary.first_bad,
            "suspects": list(self.boundary.suspects),
            "message_since": self.boundary.since,
            "together_with": list(self.together_with),
            "companion": self.is_companion,
            "files": list(finest.files) if finest is not None else [],
            "regions": [_region(region) for region in finest.regions] if finest is not None else [],
            "commit": next((commit.as_json() for commit in finest.commits), None) if finest is not None else None,
            "evidence": [asdict(evidence) for evidence in self.evidence],
            "proved": self.is_proved,
            "observations": [side.key for side in self.boundary.sides],
        }


@frozen
class GroupAnswer:
    """One group: its tests, its signature, and its culprits."""

    tests: tuple[str, ...]
    signature: Signature
    status: Status
    culprits: tuple[PackageCulprit, ...] = ()
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the group as part of an answer's JSON."""
        return {
            "tests": list(self.tests),
            "signature": given_parts(self.signature),
            "status": self.status.value,
            "culprits": [culprit.as_json() for culprit in self.culprits],
            "note": self.note,
        }


@frozen
class UpgradeAnswer:
    """The answer to a question between two worlds.

    `sides` are the runs of the two ends; `changes` is the difference of their locks. `constraints` exclude the
    culprits; `constraints_verified` says that the tests passed with them, in the run `verified_by`. `not_run` are tests
    that passed at the good end and have no result at the bad one. `answers` are the plan and answer of each culprit for
    its report. `subject` is the only package to look at, "" for all.
    """

    command: str
    status: Status
    sentence: str
    good: End | None
    bad: End
    groups: tuple[GroupAnswer, ...] = ()
    flaky: tuple[str, ...] = ()
    failing_at_both: tuple[str, ...] = ()
    not_run: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    constraints_verified: bool = False
    verified_by: Observation | None = None
    sides: tuple[Observation, ...] = ()
    changes: tuple[Change, ...] = ()
    advice: str = ""
    told: tuple[str, ...] = ()
    device: str = "cpu"
    python: str = ""
    probes: int = 0
    wall_s: float = 0.0
    answers: tuple[tuple[Plan, Answer], ...] = ()
    subject: str = ""

    @property
    def culprits(self) -> tuple[PackageCulprit, ...]:
        """The culprits of all groups, each once."""
        found: dict[tuple[str, str | None], PackageCulprit] = {}
        for group in self.groups:
            for culprit in group.culprits:
                found.setdefault((culprit.package, culprit.boundary.first_bad), culprit)
        return tuple(found.values())

    def as_json(self) -> dict[str, Any]:
        """Return the answer as `harness bisect --json` prints it (schema 2)."""
        first = next((culprit for culprit in self.culprits if not culprit.is_companion), None)
        return {
            "schema": 2,
            "subject": first.package if first is not None else None,
            "status": self.status.value,
            "last_good": first.boundary.last_good if first is not None else None,
            "first_bad": first.boundary.first_bad if first is not None else None,
            "ends": {
                "good": self.good.as_json() if self.good is not None else None,
                "bad": self.bad.as_json(),
            },
            "groups": [group.as_json() for group in self.groups],
            "flaky": list(self.flaky),
            "failing_at_both": list(self.failing_at_both),
            "not_run": list(self.not_run),
            "constraints": list(self.constraints),
            "constraints_verified": self.constraints_verified,
            "suspects": list(first.boundary.suspects) if first is not None else [],
            "signature": given_parts(self.groups[0].signature) if self.groups else None,
            "steps": [step.as_json() for culprit in self.culprits for step in culprit.boundary.steps],
            "probes": self.probes,
            "culprit_probes": 0,
            "wall_s": round(self.wall_s, 2),
            "sentence": self.sentence,
            "advice": self.advice,
            "repro": self.command,
            "device": self.device,
            "python": self.python,
            "as_of": self.bad.text,
            "left_out": {},
            "lock_changes": [
                {"name": change.name, "before": change.before, "after": change.after} for change in self.changes
            ],
            "culprit": None,
            "drift": {},
            "notes": list(self.told),
        }


def _region(region: Any) -> dict[str, Any]:
    return {
        "file": region.file,
        "before": list(region.before),
        "after": list(region.after),
        "function": region.function,
        "diff": region.diff,
    }
