"""What a repro says is true of its bug is read, and each mistake is reported in a sentence."""

from __future__ import annotations

import pytest

from harness.errors import BadRepro
from harness.model.regression import regression
from harness.model.repro import parse_repro

WHOLE = {
    "kind": "crash",
    "upstream": ["https://example.org/1"],
    "last-good": "1.0",
    "first-bad": "1.1",
    "last-bad": "1.3",
    "fixed-in": "1.4",
    "good-again": "2.0",
    "seen": {"release": "1.2", "error": "mod.Gone: no f in g", "frames": ["a/b.py:f"]},
}


def test_a_window_and_what_was_seen() -> None:
    known = regression(WHOLE, "known")
    assert known.seen is not None
    assert (known.seen.exception, known.seen.message) == ("Gone", "no f in g")
    assert [known.has(version) for version in ("1.0", "1.1", "1.3", "1.4", "local")] == [False, True, True, False, None]
    assert known.since == "from 1.1 up to 1.3; fixed in 1.4"


def test_a_bug_that_every_release_has() -> None:
    known = regression({"kind": "crash", "upstream": ["https://example.org"], "never-worked": True}, "known")
    assert known.has("0.1")
    assert known.since == "in every release; not fixed"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kind": "bug"}, "known.kind must be one of crash"),
        ({"upstream": []}, "known.upstream must be a list of https addresses"),
        ({"upstream": ["issue 12"]}, "known.upstream must be a list of https addresses"),
        ({"since": "1.0"}, "known has unknown keys: since"),
        ({"first-bad": None}, "known.first-bad must be a string in quotes, not None"),
        ({"first-bad": "soon"}, "known.first-bad = 'soon' is not a version"),
        ({"never-worked": True}, "known needs either last-good and first-bad, or never-worked = true"),
        ({"never-worked": "yes"}, "known.never-worked must be true or false"),
        ({"depth": "line"}, "known.depth must be one of release, region, not 'line'"),
        ({"workaround": " "}, "known.workaround must be a string in quotes"),
        ({"seen": {"release": "1.2"}}, "known.seen.error must be a string in quotes"),
        ({"seen": {"trace": "1.2"}}, "known.seen has unknown keys: trace; known keys: error, frames, release"),
    ],
)
def test_a_mistake_is_reported(changes: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=r"known") as caught:
        regression({**WHOLE, **changes}, "known")
    assert said in str(caught.value)


def test_a_repro_names_its_file_in_the_sentence() -> None:
    text = '# /// script\n# [tool.harness.known]\n# kind = "crash"\n# ///\n'
    with pytest.raises(BadRepro, match=r"a.py: known.upstream must be a list"):
        parse_repro(text, name="a", path="a.py")
