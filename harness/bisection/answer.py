"""The answer to a question: its failures, the culprits of each with the runs that prove them, and a workaround."""

from __future__ import annotations

import enum
import hashlib
import json
from pathlib import PurePath
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen

from harness.model import Change, Observation, Repro, Signature
from harness.model.boundary import Boundary
from harness.model.culprit import Culprit, Finding
from harness.model.lock import NONE
from harness.model.signature import capture_signature, pattern_of
from harness.model.verdict import Step
from harness.records import STORED_AS
from harness.redact import everywhere

if TYPE_CHECKING:
    from harness.question.question import Question


SCHEMA = 4


class Status(enum.StrEnum):
    """How an investigation ended; the exit code of `harness bisect` follows from it."""

    FOUND = "found"
    FIXED = "fixed"
    NOT_A_REGRESSION = "not-a-regression"
    NO_FAILURE = "no-failure"
    NOT_FIXED = "not-fixed"
    INCONCLUSIVE = "inconclusive"
    MACHINE = "machine"

    @property
    def exit_code(self) -> int:
        """0: an answer was found, 1: there is nothing to find, 3: not sure; see also `Answer.exit_code`."""
        return {Status.FOUND: 0, Status.FIXED: 0, Status.INCONCLUSIVE: 3, Status.MACHINE: 3}.get(self, 1)

    @property
    def is_change(self) -> bool:
        """Whether a change was found."""
        return self in (Status.FOUND, Status.FIXED)


@frozen
class Failure:
    """One way in which it fails: a script has one, a test suite one for each group of tests.

    `boundary` is the search over the named subject if that did not find a culprit; `note` says why none was found;
    `fault` says which internal error ended its search, "" if none did.
    """

    tests: tuple[str, ...]
    signature: Signature | None
    status: Status
    culprits: tuple[Culprit, ...] = ()
    boundary: Boundary | None = None
    note: str = ""
    fault: str = ""


@frozen
class QuestionRecord:
    """The question as an answer keeps it. `requirements` and `holds` were asked for besides the subject.

    `ends` has the good and the bad end with their kind and text, None for one that the search had to find. `typed` are
    the words that name the repro and the settings. `depth` is the level that the search was to reach. `copied` is the
    project whose copies it ran in, by the digest of its content, and the folder inside; a report never shows its path.
    `files` names the releases of the other step of a repro of two: "written_by" or "read_by".
    """

    subject: str
    repro: Repro
    device: str = "cpu"
    python: str = ""
    as_of: str = "none"
    requirements: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()
    ends: dict[str, dict[str, str] | None] = field(factory=dict)
    find_fix: bool = False
    depth: str = ""
    typed: tuple[str, ...] = ()
    copied: tuple[str, str] = ("", "")
    files: dict[str, str] = field(factory=dict)

    @classmethod
    def of(cls, question: Question) -> QuestionRecord:
        """Return a question as an answer keeps it."""
        repro, shared = question.repro, question.combination
        ends = {"good": question.good, "bad": question.bad}
        return cls(
            question.subject,
            repro.without_copies,
            shared.device.value,
            shared.python,
            question.as_of or NONE,
            requirements=shared.requirements,
            holds=shared.holds,
            ends={name: end.as_json() if end is not None else None for name, end in ends.items()},
            find_fix=question.policy.find_fix,
            depth=question.depth.value,
            typed=question.typed,
            copied=(PurePath(repro.project).parent.name, repro.inside) if repro.project else ("", ""),
        )


_NOWHERE = Boundary(Change("", None, None))


@frozen
class Comparison:
    """What came of comparing the two ends of a question.

    `runs` are those of the good end, of an older one for tests that fail there, too, and of the bad one, if they were
    run as such, and `changes` is the difference of their locks. `failing_at_both` are tests that fail at both ends,
    `not_run` those that passed at the good end and have no result at the bad one, and `flaky` those that passed and
    failed in one environment. `not_rebuilt` says what of the good end could not be had again, if that end fails.
    `back_to` is how far back older packages were tried in vain, and why no further. `lifted` are the project's own
    requirements that hold back newer releases and were ignored, `not_kept` its lower bounds and pins that were lifted
    for older packages. `machine` says why the machine is the cause and no package, "" if it is not.
    """

    runs: tuple[Observation, ...] = ()
    changes: tuple[Change, ...] = ()
    failing_at_both: tuple[str, ...] = ()
    not_run: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    not_rebuilt: str = ""
    back_to: str = ""
    lifted: tuple[str, ...] = ()
    not_kept: tuple[str, ...] = ()
    machine: str = ""


@frozen
class Effort:
    """What an answer took: `probes` counts the runs made now rather than answered by the store.

    `culprit_probes` counts those of the search below the release among them; `wall_s` is in seconds. With `is_known` it
    was found by an earlier search, and nothing was run.
    """

    probes: int = 0
    culprit_probes: int = 0
    wall_s: float = 0.0
    is_known: bool = False


@frozen
class Answer:
    """The answer to one question.

    `sentence` is the answer, `advice` the next command, `notes` are sentences about choices that were made.
    `constraints` exclude the culprits; `verified_by` is a run that passed with them, None if there is none.

    The properties after `culprits` are those of the first culprit, or of the search that found none.
    """

    question: QuestionRecord = field(metadata={STORED_AS: "asked"})
    status: Status
    sentence: str = ""
    failures: tuple[Failure, ...] = ()
    constraints: tuple[str, ...] = ()
    verified_by: Observation | None = None
    comparison: Comparison = Comparison()
    advice: str = ""
    notes: tuple[str, ...] = ()
    effort: Effort = Effort()

    @property
    def culprits(self) -> tuple[Culprit, ...]:
        """The culprits of all failures, each once."""
        culprits: dict[tuple[str, str | None], Culprit] = {}
        for failure in self.failures:
            for culprit in failure.culprits:
                culprits.setdefault(culprit.release, culprit)
        return tuple(culprits.values())

    @property
    def guilty_changes(self) -> tuple[Change, ...]:
        """The changed packages of all culprits."""
        return tuple(change for culprit in self.culprits for change in culprit.packages)

    @property
    def cause(self) -> str:
        """The id of the cause: ten hexadecimal digits made from the culprits, and of a script from how it fails.

        Tests fail in many ways by one cause. A script's failure is taken from its run if that shows one, because two
        signatures may name different parts of one message.
        """
        culprits = sorted((change.name, str(change.after)) for change in self.guilty_changes)
        is_captured = self.signature is not None and self.signature.captured
        failed = capture_signature(self.comparison.runs[-1]) if self.comparison.runs and not is_captured else None
        is_suite = any(failure.tests for failure in self.failures)
        pattern = "" if is_suite and culprits else pattern_of(failed or self.signature)
        return hashlib.sha256(json.dumps([pattern, culprits]).encode()).hexdigest()[:10]

    @property
    def exit_code(self) -> int:
        """That of the status.

        Of a change, 4 if an internal error ended the search below it, or that of another failure, and 3 if other
        releases between its two were not run.
        """
        faults = [*(culprit.fault for culprit in self.culprits), *(failure.fault for failure in self.failures)]
        if self.status.is_change and any(faults):
            return 4
        is_range = self.status.is_change and any(culprit.boundary.untried for culprit in self.culprits)
        return Status.INCONCLUSIVE.exit_code if is_range else self.status.exit_code

    def lean(self) -> Answer:
        """Return the answer without data that only the search needed, and that the stored observations have."""
        lean: Answer = everywhere(self, Observation, lambda run: evolve(run, loaded={}, outside={}, trace=None))
        return evolve(lean, effort=evolve(lean.effort, is_known=False))

    @property
    def boundary(self) -> Boundary:
        """The boundary of the first culprit, or of the search that found none; an empty one without either."""
        first = self.failures[0] if self.failures else None
        if self.culprits:
            return self.culprits[0].boundary
        return first.boundary if first is not None and first.boundary is not None else _NOWHERE

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found below the release of the first culprit, the finest last."""
        return self.culprits[0].findings if self.culprits else ()

    @property
    def subject(self) -> str:
        """What was searched: the named package, or the first culprit."""
        return self.boundary.subject or self.question.subject

    @property
    def repro(self) -> str:
        """The name of what ran."""
        return self.question.repro.name

    @property
    def signature(self) -> Signature | None:
        """How the first failure is recognised."""
        return self.failures[0].signature if self.failures else None

    @property
    def last_good(self) -> str | None:
        """The candidate just before a regression."""
        return self.boundary.change.before if not self.boundary.is_fix else None

    @property
    def first_bad(self) -> str | None:
        """The candidate that a regression came with."""
        return self.boundary.change.after if not self.boundary.is_fix else None

    @property
    def last_bad(self) -> str | None:
        """The candidate just before a fix."""
        return self.boundary.change.before if self.boundary.is_fix else None

    @property
    def first_good(self) -> str | None:
        """The candidate that a fix came with."""
        return self.boundary.change.after if self.boundary.is_fix else None

    @property
    def suspects(self) -> tuple[str, ...]:
        """The candidates in which the change may be."""
        return self.boundary.suspects

    @property
    def steps(self) -> tuple[Step, ...]:
        """The runs of the searches over releases, in order."""
        if len(self.culprits) > 1:
            return tuple(step for culprit in self.culprits for step in culprit.boundary.steps)
        return self.boundary.steps

    @property
    def sides(self) -> tuple[Observation, ...]:
        """The runs just before and just after the change."""
        return self.boundary.sides

    @property
    def left_out(self) -> dict[str, str]:
        """The candidates that were not tried, with the reasons."""
        return self.boundary.left_out

    @property
    def lock_changes(self) -> tuple[Change, ...]:
        """The difference of the locks on both sides of the change."""
        return self.boundary.moved or self.comparison.changes

    @property
    def constraint(self) -> str:
        """The constraints that exclude the culprits, in one line."""
        return " ".join(self.constraints)


@frozen
class Retry:
    """How to ask again where nothing was found: without the project's own `limits`, or with another Python.

    `limits` are requirements that hold back newer releases; `way_on` is a day, and a Python of this machine with which
    its packages can be installed.
    """

    limits: tuple[str, ...] = ()
    way_on: tuple[str, str] | None = None
