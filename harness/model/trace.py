"""A trace: what a run did in some installed files. Evidence of where two runs diverge, never a proof."""

from __future__ import annotations

from attrs import field, frozen


@frozen
class Returned:
    """One call that returned: its arguments and result as text, equal for equal values; "" if unknown."""

    file: str
    function: str
    given: str
    result: str


@frozen
class Trace:
    """Maps installed files: `called` to functions and the rank of their last call, `lines` to the lines that ran.

    `returned` has some calls of each function, in the order in which they returned.
    """

    called: dict[str, dict[str, int]] = field(factory=dict)
    lines: dict[str, tuple[int, ...]] = field(factory=dict)
    returned: tuple[Returned, ...] = ()
