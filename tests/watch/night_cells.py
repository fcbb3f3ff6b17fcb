"""Cells, causes and nights made by hand, and strategies for them."""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

from harness.model import Change, Lock, Pin
from harness.report.archive import Archive
from harness.store import Store
from harness.watch.state import Cause, CellState, CellStatus, Night, Past

STEP = Change("helper", "1.1", "1.2")
FIRST, SECOND, THIRD = (f"2024-02-0{day}T00:00:00+00:00" for day in (1, 2, 3))


def state(name: str = "a", standing: CellStatus = CellStatus.GOOD, **more) -> CellState:
    """A cell; its choice is one version of `app` unless it is given."""
    return CellState(
        name, **{"choice": {"packages.app": "1.0"}, "standing": standing, "observation": f"run {name}", **more}
    )


def broken(name: str = "a", by: str = "ab", **more) -> CellState:
    """A cell that a cause broke."""
    return state(name, CellStatus.BROKEN, broken_by=by, **more)


def cause(id: str = "ab", **more) -> Cause:  # noqa: A002
    """A cause of the cell `nightly: a`, seen in the first night."""
    about = {
        "pattern": "p",
        "title": "helper 1.2 breaks step",
        "sentence": "helper 1.2 broke it.",
        "cells": ("nightly: a",),
        "first_seen": FIRST,
        "last_seen": FIRST,
        "culprit": (STEP,),
    }
    return Cause(id=id, **{**about, **more})


def night(*cells: CellState, start: str = FIRST, **more) -> Night:
    """A night that ended."""
    return Night("nightly", start, **{"ended": True, "cells": cells, **more})


def past(*nights: Night) -> Past:
    """What these nights found, without the answers."""
    return Past.of(nights, Archive(Store(Path("/nowhere"))))


def lock(**versions: str) -> Lock:
    """A lock of these versions."""
    return Lock("3.11.7", "linux", tuple(Pin(name, version) for name, version in versions.items()))


versions = st.builds(lambda major, minor: f"{major}.{minor}", st.integers(0, 3), st.integers(0, 3))
choices = st.fixed_dictionaries(
    {"repro": st.just("step"), "packages.app": versions, "parameters.case": st.integers(1, 2)}
)
states = st.builds(
    lambda choice, standing, pattern: state(
        str(sorted(choice.items(), key=str)), standing, choice=choice, pattern=pattern
    ),
    choices,
    st.sampled_from(list(CellStatus)),
    st.sampled_from(["p", "q"]),
)
