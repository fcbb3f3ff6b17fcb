"""Events: frozen values that report the progress of a search to any view.

Code that searches reports to one `Reporter`, which the terminal, a night's budget and the tests implement. Candidates
after a `SearchBegan` or `LevelBegan` belong to it until the next one begins.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

from attrs import frozen

if TYPE_CHECKING:
    from harness.model import Judgement, Observation, Signature
    from harness.model.culprit import Level
    from harness.search.protocol import PositionState


def run_label(name: str, attempt: int) -> str:
    """The label of a run of a candidate; `attempt` is 0 for the first one."""
    return name if attempt == 0 else f"{name} (run {attempt + 1})"


def repetition_of(label: str) -> str | None:
    """The name of the candidate that a label says is run again, None for a first run."""
    match = _REPETITION.fullmatch(label)
    return match[1] if match is not None else None


_REPETITION = re.compile(r"(.+) \(run \d+\)")


@frozen
class Progress:
    """How far a search is. `states` are those of its range, the oldest release first; empty for a search over sets.

    `left` is the largest possible number of runs left, counted in `unit`s ("run", "cell"), 0 if unknown. A search
    over sets instead has the number of `candidates` and the number of sets `tried`.
    """

    states: tuple[PositionState, ...] = ()
    left: int = 0
    unit: str = "run"
    candidates: int = 0
    tried: int = 0


@frozen
class Note:
    """A message about progress: a wait for a GPU, the size of a download, the next step of a night."""

    sentence: str


@frozen
class Warned:
    """A warning, for example that a worker can't be used; shown with `--json`, too.

    One about the state of this machine is shown to its user once a day (`is_daily`).
    """

    sentence: str
    is_daily: bool = False


@frozen
class SearchBegan:
    """A search begins; nothing has run yet. `details` are the defaults chosen for the user, one line each."""

    headline: str
    details: tuple[str, ...] = ()
    progress: Progress = Progress()


@frozen
class SignatureCaptured:
    """No signature was given; this one was captured from a failure. `source` says which."""

    signature: Signature
    source: str


@frozen
class LevelBegan:
    """The search for a culprit begins a level; the sentence says what it searches."""

    level: Level
    sentence: str


@frozen
class Preparing:
    """The search wants a verdict on a candidate; it is being resolved and installed."""

    label: str


@frozen
class Started:
    """A candidate starts to run."""

    label: str


@frozen
class Dropped:
    """A candidate that was asked for or started is no longer needed; it gets no verdict."""

    label: str


@frozen
class Judged:
    """A candidate has a verdict; `cached` if the store, or a candidate with the same lock, had the answer.

    `is_proof` marks a run that proves a finding.
    """

    label: str
    judgement: Judgement
    observation: Observation
    cached: bool
    progress: Progress = Progress()
    is_proof: bool = False


Event = Note | Warned | SearchBegan | SignatureCaptured | LevelBegan | Preparing | Started | Dropped | Judged


class Reporter(Protocol):
    """A subscriber to events."""

    def report(self, event: Event) -> None:
        """Handle one event. Notes and warnings can come from any thread, other events from the searching thread."""


@frozen
class Silent:
    """A reporter that ignores all events."""

    def report(self, event: Event) -> None:
        """Do nothing."""


SILENT = Silent()
