"""What happens while a question is answered, as one stream of frozen events that any number of views can follow.

Whatever works gets one `Reporter` and reports to it; a terminal, a night's budget and the tests are reporters. After a
`SearchBegan` or a `LevelBegan` the candidates that follow belong to it, until the next one begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from attrs import frozen

if TYPE_CHECKING:
    from harness.model import Judgement, Observation, Signature
    from harness.model.culprit import Level
    from harness.search.states import PositionState


@frozen
class Progress:
    """How far a search is. `states` are the positions of its range, the oldest first, empty where it has none.

    `left` is the most runs that are left, of `unit`s ("probe", "cell"); 0 where that is not known. A search over sets
    instead says among how many `candidates` it chooses, and how many sets it has `tried`.
    """

    states: tuple[PositionState, ...] = ()
    left: int = 0
    unit: str = "probe"
    candidates: int = 0
    tried: int = 0


@frozen
class Note:
    """Something worth knowing while it lasts: a wait for a GPU, the size of a download, what a night does next."""

    sentence: str


@frozen
class Warned:
    """Something that changes what a user can expect, such as a worker that is left out; shown with `--json` too."""

    sentence: str


@frozen
class SearchBegan:
    """A search begins; nothing has run yet. `details` say what was chosen for the user, a line each."""

    headline: str
    details: tuple[str, ...] = ()
    progress: Progress = Progress()


@frozen
class LookedUp:
    """So many of the releases that were seen before with other packages around them are resolved again."""

    done: int
    count: int


@frozen
class SignatureCaptured:
    """No signature was given; this one was taken from a failure. `source` says from which."""

    signature: Signature
    source: str


@frozen
class LevelBegan:
    """The search for a culprit goes down to a level; the sentence says what is searched."""

    level: Level
    sentence: str


@frozen
class Asked:
    """A candidate is wanted: it is being resolved and installed."""

    label: str


@frozen
class Started:
    """A candidate runs now."""

    label: str


@frozen
class Judged:
    """A candidate has its verdict; `cached` where the store, or a candidate with the same lock, had the answer.

    `is_proof` tells a run that shows what was found from one that searches for it.
    """

    label: str
    judgement: Judgement
    observation: Observation
    cached: bool
    progress: Progress = Progress()
    is_proof: bool = False


Event = Note | Warned | SearchBegan | LookedUp | SignatureCaptured | LevelBegan | Asked | Started | Judged


class Reporter(Protocol):
    """Who is told what happens."""

    def report(self, event: Event) -> None:
        """One thing that happened. Notes and warnings come from any thread, all else from the thread that searches."""
        ...


@frozen
class Silent:
    """A reporter for whoever wants to hear nothing."""

    def report(self, event: Event) -> None:
        """Do nothing."""


SILENT = Silent()
