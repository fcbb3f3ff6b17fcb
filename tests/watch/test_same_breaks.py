"""Two failures are one break if they fail in the same way and the same culprit lies between their locks."""

from __future__ import annotations

import pytest
from hypothesis import given
from night_cells import STEP, lock, versions
from packaging.version import Version

from harness.model import Change, Device, Observation, Outcome, RaisedException, Signature, capture_signature
from harness.watch.record import break_id, came_between, pattern_of


def failed(message: str, kind: str = "builtins.RuntimeError") -> Observation:
    raised = RaisedException(kind, message)
    return Observation("k", Outcome.RAISED, "step", "d", Device.CPU, exception=raised)


def pattern(run: Observation, matched: Signature | None) -> str:
    return pattern_of(capture_signature(run), matched)


def test_paths_addresses_and_numbers_do_not_matter():
    one = pattern(failed("no 3 at 0x7f00 in /home/a/b.py"), None)
    assert one == pattern(failed("no 14 at 0x8a11 in /srv/c/d.py"), None)
    assert one != pattern(failed("no 3 at 0x7f00 in /home/a/b.py", "builtins.ValueError"), None)


def test_the_signature_of_a_repro_does_not_matter():
    """Two repros can use different parts of one message as their signature."""
    run = failed("Trying to backward through the graph a second time")
    given = [Signature(exception="RuntimeError", message="backward"), Signature(message="a second time")]
    assert len({pattern(run, signature) for signature in given}) == 1


def test_a_metric_out_of_bounds_is_identified_by_the_signature():
    run = Observation("k", Outcome.COMPLETED, "step", "d", Device.CPU, metrics={"loss": 4.0})
    assert "loss" in pattern(run, Signature(metric="loss", above=2.0))
    assert pattern(run, None) == ""


def test_the_id_of_a_break_comes_from_its_pattern_and_culprit():
    other = Change("app", "1.0", "2.0")
    assert break_id("p", [STEP, other]) == break_id("p", [other, STEP])
    assert break_id("p", [STEP]) == break_id("p", [Change("helper", "1.0", "1.2")])
    assert len({break_id("p", [STEP]), break_id("q", [STEP]), break_id("p", [other])}) == 3


@given(versions, versions)
def test_a_culprit_lies_between_two_locks_if_its_release_does(older, newer):
    came = came_between([STEP], lock(helper=older), lock(helper=newer))
    assert came == (Version(older) < Version("1.2") <= Version(newer))


@pytest.mark.parametrize(
    ("change", "older", "newer", "came"),
    [
        (Change("x", None, "1.0"), {}, {"x": "1.0"}, True),
        (Change("x", None, "1.0"), {}, {"x": "1.1"}, False),
        (Change("x", "1.0", None), {"x": "1.0"}, {}, True),
        (Change("x", "2.0", "1.0"), {"x": "2.1"}, {"x": "0.9"}, True),
        (Change("x", "2.0", "1.0"), {"x": "1.0"}, {"x": "2.0"}, False),
        (Change("x", "1.0", "2.0"), {"x": "1.5"}, {"x": "2.5"}, True),
    ],
)
def test_added_removed_or_downgraded_packages_lie_between_two_locks(change, older, newer, came):
    assert came_between([change], lock(**older), lock(**newer)) is came


def test_no_culprit_lies_between_two_locks():
    assert not came_between([], lock(x="1.0"), lock(x="2.0"))
    assert not came_between([STEP, Change("x", "1", "2")], lock(helper="1.0", x="1"), lock(helper="1.2", x="1"))
