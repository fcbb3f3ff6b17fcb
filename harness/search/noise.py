"""What a user says of the noise in the runs of a bug, and how sure an answer has to be."""

from __future__ import annotations

from attrs import frozen

CONFIDENCE = 0.99


@frozen
class Noise:
    """What the user says of a bug that may be flaky.

    `flaky`: one run does not tell good from bad. `confidence`: how sure an answer has to be, between 0 and 1.
    `trusts_ends`: there is a change for certain, and before it the bug never shows (but for rare noise).
    """

    flaky: bool = False
    confidence: float = CONFIDENCE
    trusts_ends: bool = False
