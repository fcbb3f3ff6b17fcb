"""A trace: what a run did in some installed files. Evidence of where two runs diverge, never a proof."""

from __future__ import annotations

from attrs import field, frozen


@frozen
class Returned:
    """One call that returned. Its arguments and result are texts, the same for equal values; "" if unknown."""

    file: str
    function: str
    given: str
    result: str


@frozen
class Trace:
    """What a traced run did: `called` maps each file and function to the rank of its last call.

    `lines` maps each file to the lines that ran; `returned` has a few calls of each function, in the order in which
    they returned.
    """

    called: dict[str, dict[str, int]] = field(factory=dict)
    lines: dict[str, tuple[int, ...]] = field(factory=dict)
    returned: tuple[Returned, ...] = ()
