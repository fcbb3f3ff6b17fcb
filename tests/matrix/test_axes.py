"""A value of a package axis is a version, or a word, a number, the project and a range."""

from __future__ import annotations

import pytest
from packaging.specifiers import SpecifierSet

from harness.matrix.cells import Selection, Word, selection


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        ("4.53.0", Selection(Word.VERSION)),
        ("5.0.0rc1", Selection(Word.VERSION)),
        ("latest", Selection(Word.LATEST)),
        ("latest 5", Selection(Word.LATEST, 5)),
        ("latest 5 <5", Selection(Word.LATEST, 5, SpecifierSet("<5"))),
        ("latest 5 torch-x >=2,<5", Selection(Word.LATEST, 5, SpecifierSet(">=2,<5"))),
        ("latest>=4.53", Selection(Word.LATEST, 1, SpecifierSet(">=4.53"))),
        ("latest Torch_X", Selection(Word.LATEST)),
        ("prereleases", Selection(Word.PRERELEASES)),
        ("prereleases torch-x >=4", Selection(Word.PRERELEASES, 1, SpecifierSet(">=4"))),
        (">=4.50,<5", Selection(Word.EVERY, 1, SpecifierSet(">=4.50,<5"))),
        ("torch-x >=4.50,<5", Selection(Word.EVERY, 1, SpecifierSet(">=4.50,<5"))),
        ("==4.53.*", Selection(Word.EVERY, 1, SpecifierSet("==4.53.*"))),
    ],
)
def test_a_value_is_read(value, meant):
    assert selection("torch-x", value) == meant


def test_a_project_can_have_a_keyword_as_its_name():
    """The rest decides: a word comes first."""
    assert selection("latest", "latest latest >=2") == Selection(Word.LATEST, 1, SpecifierSet(">=2"))
