"""Cells, records, breaks and nights made by hand, and strategies for them."""

from __future__ import annotations

from hypothesis import strategies as st

from harness.model import Change, Lock, Pin
from harness.watch.record import Break, CellRecord, CellStatus, Night

STEP = Change("helper", "1.1", "1.2")
FIRST, SECOND, THIRD = (f"2024-02-0{day}T00:00:00+00:00" for day in (1, 2, 3))


def record(name: str = "a", standing: CellStatus = CellStatus.GOOD, **more) -> CellRecord:
    """A cell's record; its choice is one version of `app` unless it is given."""
    return CellRecord(
        name, **{"choice": {"packages.app": "1.0"}, "standing": standing, "observation": f"run {name}", **more}
    )


def known(id: str = "ab", **more) -> Break:  # noqa: A002
    """A break of the cell `nightly: a`, seen in the first night."""
    told = {
        "pattern": "p",
        "title": "helper 1.2 breaks step",
        "sentence": "helper 1.2 broke it.",
        "repro": "step",
        "cells": ("nightly: a",),
        "first_seen": FIRST,
        "last_seen": FIRST,
        "culprit": (STEP,),
    }
    return Break(id=id, **{**told, **more})


def night(*cells: CellRecord, start: str = FIRST, **more) -> Night:
    """A night that ended."""
    return Night("nightly", start, **{"ended": True, "cells": cells, **more})


def lock(**versions: str) -> Lock:
    """A lock of these versions."""
    return Lock("3.11.7", "linux", tuple(Pin(name, version) for name, version in versions.items()))


versions = st.builds(lambda major, minor: f"{major}.{minor}", st.integers(0, 3), st.integers(0, 3))
choices = st.fixed_dictionaries(
    {"repro": st.just("step"), "packages.app": versions, "parameters.case": st.integers(1, 2)}
)
standings = st.sampled_from(list(CellStatus))
records = st.builds(
    lambda choice, standing, pattern: record(
        str(sorted(choice.items(), key=str)), standing, choice=choice, pattern=pattern
    ),
    choices,
    standings,
    st.sampled_from(["p", "q"]),
)
