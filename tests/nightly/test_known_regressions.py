"""A break that looks like a known regression says so in its report."""

from __future__ import annotations

import pytest
from night_cells import known, lock

from harness.model import Device, Observation, Outcome, RaisedException
from harness.nightly.news import facts_of_break
from harness.nightly.night import _similar

ERROR = "module 'numpy' has no attribute 'int'"


def failed(version: str, message: str = ERROR) -> Observation:
    raised = RaisedException("builtins.AttributeError", message)
    return Observation("key", Outcome.RAISED, "step", "digest", Device.CPU, exception=raised, lock=lock(numpy=version))


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (failed("1.26.4"), "numpy_int_alias (numpy from 1.24.0 on)"),
        (failed("1.22.0"), ""),
        (failed("1.26.4", "module 'numpy' has no attribute 'quaternion'"), ""),
    ],
)
def test_a_failure_is_looked_up_with_its_versions(seen: Observation, said: str) -> None:
    assert _similar(seen).startswith(said)
    assert bool(_similar(seen)) == bool(said)


def test_the_report_of_a_break_says_it() -> None:
    facts = dict(facts_of_break(known(similar="numpy_int_alias (numpy from 1.24.0 on). Write int.")))
    assert facts["Looks like the known regression"].startswith("numpy_int_alias")
    assert "Looks like the known regression" not in dict(facts_of_break(known()))
