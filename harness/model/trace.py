"""A trace: what a run did in some installed files. Evidence of where two runs part, never a proof."""

from __future__ import annotations

from attrs import field, frozen


@frozen
class Returned:
    """One call that came back: what went in and out, in words that are equal where the values are; "" if not known."""

    file: str
    function: str
    given: str
    result: str


@frozen
class Trace:
    """`called` maps installed files to functions and the rank of their last call, `lines` files to the lines that ran.

    `returned` has some calls of each function, in the order in which they came back.
    """

    called: dict[str, dict[str, int]] = field(factory=dict)
    lines: dict[str, tuple[int, ...]] = field(factory=dict)
    returned: tuple[Returned, ...] = ()
