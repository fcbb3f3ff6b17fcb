"""A skip teaches the tie that its last frame points to."""

from __future__ import annotations

from edited import edits_of, unit

from harness.culprit.ties import Consistency, ties_of
from harness.model import Device, Observation, Outcome, RaisedException, StackFrame

BEFORE = "A = 1\n\n\ndef f():\n    raise KeyError(1)\n\n\nB = 1\n\n\nC = 1\n"
AFTER = BEFORE.replace("KeyError(1)", "ValueError(2)").replace("A = 1", "A = 2").replace("B = 1", "B = 2")


def failed_at(line):
    raised = RaisedException("builtins.KeyError", "nothing is named", (), (StackFrame("a.py", line, "g", "shop"),))
    return Observation("k", Outcome.RAISED, "r", "d", Device.CPU, exception=raised)


def test_older_lines_that_raised_are_needed_by_what_was_added_to_the_older_release(tmp_path):
    edits = edits_of(tmp_path, {"a.py": BEFORE}, {"a.py": AFTER})
    raising, moved = unit(edits, "KeyError"), frozenset({unit(edits, "A = 1"), unit(edits, "B = 1")})
    consistency = Consistency(edits, ties_of(edits))
    pairs = consistency.taught(moved, failed_at(5), reverting=False)
    assert sorted(pairs) == sorted((raising, one) for one in moved)
    assert consistency.learn(pairs)
    assert raising in consistency.advanced(moved)
