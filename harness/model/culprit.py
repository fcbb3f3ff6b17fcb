"""A culprit: the change that made the difference, at each level, with the runs that prove it.

Evidence is what the code of two releases suggests about a failure. Only a run is proof.
"""

from __future__ import annotations

import enum
from typing import Any

from attrs import asdict, frozen

from harness.model.boundary import Boundary, constraint_between
from harness.model.lock import Change
from harness.model.observation import Observation
from harness.model.verdict import Verdict


class Level(enum.StrEnum):
    """How precisely a culprit is known, from coarse to fine."""

    RELEASE = "release"
    PACKAGE = "package"
    FILE = "file"
    REGION = "region"
    COMMIT = "commit"

    @property
    def depth(self) -> int:
        """The level as a number; 0 for the coarsest."""
        return list(Level).index(self)


MOST_BESIDES = 10


@frozen
class Proof:
    """One run of a counterfactual. `sentence` says what was changed where; the proof needs the verdict `expected`.

    `observation` is None if it could not be run; `reason` then says why. `besides` is the number of changes that had to
    be made beside the named ones.
    """

    sentence: str
    expected: Verdict
    verdict: Verdict
    reason: str
    observation: Observation | None = None
    besides: int = 0

    @property
    def is_expected(self) -> bool:
        """Whether the run had the expected verdict."""
        return self.verdict is self.expected

    @property
    def holds(self) -> bool:
        """Whether it shows what it claims: with too many other changes it may be any of them."""
        return self.is_expected and self.besides <= MOST_BESIDES


@frozen
class Region:
    """A changed range of lines: `before` in the older and `after` in the newer text (first and last line, 1-based).

    A range is empty if its last line is before its first. `function` is the qualified name of the enclosing function or
    class, "" at module level; `diff` is its unified diff.
    """

    file: str
    before: tuple[int, int]
    after: tuple[int, int]
    function: str
    diff: str


@frozen
class Finding:
    """The result of one level.

    `packages` are the distributions that changed, `files` and `regions` the parts of them that made the difference.
    `proofs` are the counterfactuals: the culprit reverted on the newer side, and added alone on the older side.
    `candidates` is the number of possible culprits, `runs` the number of probes of this level, `unresolved` the number
    of mixtures that could not be judged. `is_minimal` means that nothing smaller was enough. `needs` and `needed_files`
    are the regions and files that had to be added too, `reverted_along` the regions that had to be reverted too.
    `causes` say in a sentence each, without its full stop, what was changed there; `compiled` are the compiled files
    that differ and were loaded, if the cause is in them. `commits` made the change; `notes` are the limits of the
    finding. `fault` says which internal error ended the search below it, "" if none did.
    """

    level: Level
    packages: tuple[Change, ...]
    files: tuple[str, ...] = ()
    regions: tuple[Region, ...] = ()
    proofs: tuple[Proof, ...] = ()
    candidates: int = 1
    runs: int = 0
    unresolved: int = 0
    is_minimal: bool = True
    needs: tuple[Region, ...] = ()
    needed_files: tuple[str, ...] = ()
    reverted_along: tuple[Region, ...] = ()
    causes: tuple[str, ...] = ()
    compiled: tuple[str, ...] = ()
    commits: tuple[Commit, ...] = ()
    notes: tuple[str, ...] = ()
    fault: str = ""

    @property
    def is_proved(self) -> bool:
        """Whether it was shown both ways and nothing smaller was enough; otherwise it is a suspect."""
        return bool(self.proofs) and self.is_minimal and all(proof.holds for proof in self.proofs)

    @property
    def is_tied(self) -> bool:
        """Whether it names packages of which one may only have come along: no run could tell which."""
        return len(self.packages) > 1 and not self.is_minimal

    @property
    def is_shown_one_way(self) -> bool:
        """Whether it was shown at least one way."""
        return any(proof.holds for proof in self.proofs)


@frozen
class Evidence:
    """One fact about a public name that a failure mentions, or about the commits of two builds.

    `kind` is "removed-name", "renamed-name", "moved-name", "changed-parameters", "removed-module", "new-message", or
    "commits", whose name is the package;
    `name` includes its module; `text` is a sentence, with the release's own advice if it has any. `file` (relative to
    site-packages) and `line` are where the older release has the name or, for a new message, where the newer release
    has it. `advice` is what the release itself says to use instead, "" if it says nothing. `parameter` is the one
    parameter that the failure names and the newer release lacks.
    """

    kind: str
    name: str
    text: str
    file: str = ""
    line: int = 0
    advice: str = ""
    parameter: str = ""

    @property
    def did(self) -> str:
        """What the release did to the name, as in "numpy 2.0.0 removed numpy.asfarray"; "" if that is not known."""
        if self.parameter:
            return f"removed the parameter {self.parameter} of {self.name}"
        return _DID.get(self.kind, "").format(self.name)


_DID = {
    "removed-name": "removed {}",
    "removed-module": "removed the module {}",
    "moved-name": "moved {}",
    "renamed-name": "removed {}, or renamed it",
    "changed-parameters": "changed the parameters of {}",
}


@frozen
class Commit:
    """One commit: its full hash, author, the author's date (ISO 8601), and the first line of its message.

    `pull_request` is the number that the message names; `link` the commit's page and `pull_request_link` that of the
    pull request, "" if they are not known.
    """

    sha: str
    author: str
    date: str
    subject: str
    parents: tuple[str, ...] = ()
    pull_request: int | None = None
    link: str = ""
    pull_request_link: str = ""

    @property
    def short(self) -> str:
        """The abbreviated hash."""
        return self.sha[:10]

    @property
    def day(self) -> str:
        """The author's day, as an ISO date."""
        return self.date[:10]

    @property
    def described(self) -> str:
        """The commit in words: hash, subject, day, and the pull request unless the subject names it."""
        request = f"#{self.pull_request}"
        suffix = f", pull request {request}" if self.pull_request and request not in self.subject else ""
        return f"{self.short} ({self.subject}; {self.day}{suffix})"

    def as_json(self) -> dict[str, Any]:
        """The commit in the JSON of answers."""
        return asdict(self, filter=lambda attribute, _: attribute.name != "parents")

    def __str__(self) -> str:
        return f"{self.short} ({self.subject})"


@frozen
class Introduction:
    """The commit of the user's repository with which a package came to be of the first bad release, or newer.

    `file` lists `version` then, and `lines` are those about the package that the commit changed. Without `commit`, no
    commit has done so yet, and `version` is that of the newest one.
    """

    file: str
    version: str
    commit: Commit | None = None
    lines: tuple[str, ...] = ()


@frozen
class Culprit:
    """One culprit of a failure: where users hit it (`boundary`), and what was found below, the finest last.

    There are no `findings` if the search did not go below the release. `companions` are packages that broke nothing,
    but have to be held back along with this one. `evidence` is what the APIs of the two releases say about the
    failure; it proves nothing. `introduction` is the commit of the user's repository that brought the release in, None
    if its history does not tell. Without `shows_bug` no run beside the change failed as the bad end does, but all with
    other errors.
    """

    boundary: Boundary
    findings: tuple[Finding, ...] = ()
    companions: tuple[Boundary, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    shows_bug: bool = True
    introduction: Introduction | None = None

    @property
    def package(self) -> str:
        """The name of what was searched: the package, or "python"."""
        return self.boundary.subject

    @property
    def release(self) -> tuple[str, str | None]:
        """The package and the release with which users meet it, by which it is the same in all failures."""
        return self.package, self.boundary.ends[1]

    @property
    def named(self) -> str:
        """The release as text: "numpy 2.0.0"; only the name of a package that is not installed any more."""
        return " ".join(filter(None, self.release))

    @property
    def finest(self) -> Finding | None:
        """The finest finding; None if the search did not go below the release."""
        return self.findings[-1] if self.findings else None

    @property
    def is_proved(self) -> bool:
        """Whether the finest level is proved, or else two neighbouring candidates were run, one good and one bad."""
        return self.shows_bug and (self.findings[-1].is_proved if self.findings else self.boundary.is_certain)

    @property
    def fault(self) -> str:
        """The internal error that ended the search below what is known; "" if none did."""
        return self.boundary.fault or next((finding.fault for finding in self.findings if finding.fault), "")

    @property
    def packages(self) -> tuple[Change, ...]:
        """The changed packages that made the difference."""
        return self.findings[-1].packages if self.findings else (Change(self.package, *self.boundary.ends),)

    @property
    def constraint(self) -> str:
        """The constraint that runs showed to be enough: on the culprit package if that alone was reverted."""
        finding = self.findings[0] if self.findings else None
        shown = finding.proofs[0] if finding is not None and finding.proofs else None
        if finding is None or self.boundary.is_fix or len(finding.packages) != 1 or shown is None or not shown.holds:
            return self.boundary.constraint
        change = finding.packages[0]
        if change.name == self.package or change.before is None or change.after is None:
            return self.boundary.constraint
        constraint = constraint_between(change.name, change.before, change.after)
        return constraint if "<" in constraint else f"{change.name}=={change.before}"
