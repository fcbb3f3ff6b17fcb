"""An answer as JSON."""

from __future__ import annotations

from support import make_answer

from harness.bisection.showing import json_of
from harness.model import Change, Verdict
from harness.model.culprit import Finding, Level, Proof, Region


def test_what_the_culprit_needs_on_both_sides_is_in_the_json():
    def region(line):
        return Region("shop.py", (line, line), (line, line), "run", "")

    finding = Finding(
        Level.REGION,
        (Change("shop", "1.0", "1.1"),),
        ("shop.py",),
        (region(3),),
        (Proof("reverted", Verdict.GOOD, Verdict.GOOD, ""), Proof("advanced", Verdict.BAD, Verdict.BAD, "")),
        needs=(region(5),),
        reverted_along=(region(7), region(9)),
    )
    answer = make_answer("shop", findings=(finding,))
    (told,) = json_of(answer)["culprit"]
    lines = {key: [row["after"][0] for row in told[key]] for key in ("regions", "needs", "reverted_along")}
    assert lines == {"regions": [3], "needs": [5], "reverted_along": [7, 9]}
    assert told["proved"]
