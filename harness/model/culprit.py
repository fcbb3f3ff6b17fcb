"""A culprit: the change that made the difference, at each level, with the runs that prove it."""

from __future__ import annotations

import enum

from attrs import frozen

from harness.model import Change, Observation, Verdict
from harness.model.commit import Commit


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


@frozen
class Proof:
    """One run of a counterfactual. `sentence` says what was changed where; the proof needs the verdict `expected`.

    `observation` is None if it could not be run; `reason` then says why.
    """

    sentence: str
    expected: Verdict
    verdict: Verdict
    reason: str
    observation: Observation | None = None

    @property
    def holds(self) -> bool:
        """Whether the run had the expected verdict."""
        return self.verdict is self.expected


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
    `commits` made the change; `replay` is the log of the commits that were run, for `git bisect replay`. `notes` are
    the limits of the finding.
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
    commits: tuple[Commit, ...] = ()
    replay: str = ""
    notes: tuple[str, ...] = ()

    @property
    def is_proved(self) -> bool:
        """Whether it was shown both ways and nothing smaller was enough; otherwise it is a suspect."""
        return bool(self.proofs) and self.is_minimal and all(proof.holds for proof in self.proofs)

    @property
    def is_shown_one_way(self) -> bool:
        """Whether it was shown at least one way."""
        return any(proof.holds for proof in self.proofs)


@frozen
class Culprit:
    """The findings of all levels that were reached, the finest last."""

    findings: tuple[Finding, ...]

    @property
    def finest(self) -> Finding:
        """The finest finding."""
        return self.findings[-1]

    @property
    def packages(self) -> tuple[Change, ...]:
        """The distributions that made the difference."""
        return self.finest.packages

    @property
    def runs(self) -> int:
        """The number of probes of all levels."""
        return sum(finding.runs for finding in self.findings)
