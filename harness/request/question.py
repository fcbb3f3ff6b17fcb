"""A question about one subject, as the user asked it. The plan fills in what is None."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import frozen

if TYPE_CHECKING:
    from harness.model import Repro
    from harness.settings import Settings


@frozen
class Question:
    """Which release of `subject` broke (or, with `find_fix`, fixed) `repro`?

    `good` and `bad` are versions; `with_` and `hold` requirements; `as_of` is "era", "none" or an ISO date;
    `python` a version or a path; `confirm` is how often both sides of the change are run again (None: until the answer
    is certain enough). `flaky` says that one run does not tell good from bad. `confidence` is the probability that a
    release needs to be named. `trust_ends` says that there is a change and that the bug never shows before it.
    `device` is "auto", "cpu", "cuda" or "emulated". `from_source` names projects that may be built from source. `git`
    names the subject's repository, for the commit level. `fork` allows forked runs in the search for lines. `time_s`
    is the time limit of the search below the release, in seconds.
    `typed` are the words that name the repro and the settings, quoted for a shell.
    """

    subject: str
    repro: Repro
    good: str | None = None
    bad: str | None = None
    find_fix: bool = False
    with_: tuple[str, ...] = ()
    hold: tuple[str, ...] = ()
    as_of: str | None = None
    prereleases: bool = False
    python: str | None = None
    device: str = "auto"
    confirm: int | None = None
    flaky: bool = False
    confidence: float = 0.99
    trust_ends: bool = False
    from_source: tuple[str, ...] = ()
    typed: tuple[str, ...] = ()
    git: str = ""
    fork: bool = True
    time_s: float = 600.0

    @classmethod
    def under(cls, settings: Settings, subject: str, repro: Repro, **more: Any) -> Question:
        """Return a question with these settings; `more` are further fields."""
        return cls(
            subject,
            repro,
            with_=settings.with_,
            hold=settings.hold,
            as_of=settings.as_of,
            python=settings.python,
            device=settings.device,
            from_source=settings.from_source,
            **more,
        )
