"""A cell whose verdict differs from that of an earlier night, with the data to find the cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from harness.model import Observation, Signature
    from harness.nightly.commit_cause import CellCommits
    from harness.nightly.record import Break, CellRecord
    from harness.probe import Probe


@frozen
class Suspicion:
    """A cell whose verdict differs from its baseline's; `signature` is None if it is good now.

    `commits` is the cell with its commits, None if it has none.
    """

    record: CellRecord
    probe: Probe
    observation: Observation
    signature: Signature | None
    baseline: CellRecord
    subject: str
    commits: CellCommits | None = None

    @property
    def before(self) -> dict[str, str]:
        """The hash of each project's commit in the earlier run that this one is compared with."""
        return self.baseline.commits if self.signature is None else self.record.good_commits

    @property
    def has_new_commits(self) -> bool:
        """Whether a commit of the cell changed since the earlier run."""
        return self.commits is not None and bool(self.commits.moved(self.before))

    def has_come_with(self, known: Break) -> bool:
        """Whether the commits that caused a break came between the two runs."""
        return self.commits is not None and self.commits.have_passed(self.before, known)

    @property
    def earlier_probe(self) -> Probe:
        """The cell's probe with the commits of the earlier run."""
        if self.commits is None or not self.has_new_commits:
            return self.probe
        return self.commits.bench.probe(self.commits.at(self.before))
