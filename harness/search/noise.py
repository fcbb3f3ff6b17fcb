"""What the user says about the noise of a bug, and the required confidence."""

from __future__ import annotations

from attrs import frozen

CONFIDENCE = 0.99


@frozen
class Noise:
    """What the user knows about a bug that may be flaky.

    `flaky`: one run does not distinguish good from bad. `confidence`: how sure an answer has to be, between 0 and 1.
    `trusts_ends`: there certainly is a change, and before it the bug never shows (except for rare noise).
    """

    flaky: bool = False
    confidence: float = CONFIDENCE
    trusts_ends: bool = False
