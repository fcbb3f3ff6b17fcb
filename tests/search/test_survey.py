"""The stages of a bisection, derived from the verdicts between the bad end and the good one."""

import pytest

from harness.model.verdict import Verdict
from harness.search.bisection import Stage, survey

LETTERS = {"G": Verdict.GOOD, "B": Verdict.BAD, "S": Verdict.SKIP, "?": None}


@pytest.mark.parametrize(
    ("line", "steps", "stage", "wanted"),
    [
        ("????", False, Stage.BAD_END, (0, 3)),
        ("????", True, Stage.BAD_END, (0,)),
        ("S??S", False, Stage.BAD_END, (1, 2)),
        ("?G??", False, Stage.BAD_END, (0,)),
        ("G???", False, Stage.NO_BAD, ()),
        ("SS", False, Stage.UNTESTABLE, ()),
        ("B???", False, Stage.GOOD_END, (3,)),
        ("B??S", False, Stage.GOOD_END, (2,)),
        ("B??B", False, Stage.NO_GOOD, ()),
        ("BSSS", False, Stage.ALONE, ()),
        ("B", True, Stage.NO_GOOD, ()),
        ("BSSB", True, Stage.NO_GOOD, ()),
        ("BSS", True, Stage.ALONE, ()),
        ("B?????????", True, Stage.STEPS, (1, 2, 4, 8, 9)),
        ("B?B???????", True, Stage.STEPS, (4, 8, 9)),
        ("BBB?S???SS", True, Stage.CUTS, ()),
        ("B??G", False, Stage.CUTS, ()),
        ("BBSG", False, Stage.BOUNDARY, ()),
        ("BG?B?G", False, Stage.BOUNDARY, ()),
    ],
)
def test_the_stage_and_the_wanted_runs(line, steps, stage, wanted):
    found = survey([LETTERS[letter] for letter in line], steps=steps)
    assert (found.stage, found.wanted) == (stage, wanted)


def test_the_change_nearest_to_the_bad_end_is_taken():
    found = survey([LETTERS[letter] for letter in "B?BB?GBG"], steps=False)
    assert (found.bad, found.good, found.open) == (3, 5, (4,))
