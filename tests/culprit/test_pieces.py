"""Imports and decorators among changed lines are regions of their own, and imports are unlikely culprits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.culprit.edits import Edits
from harness.culprit.regions import FileDifference
from harness.culprit.sides import PackageFiles
from harness.culprit.ties import Consistency, ties_of

BEFORE = """\
import os
from .masks import Converter
from .flash import flag, wraps
from .models import Base

class Layer(Base):
    pass
"""
AFTER = """\
import os
from .caches import (
    Cache,
)
from .flash import flag
from .layers import Checkpointing
from .models import ALL, Base

class Layer(Checkpointing):
    pass
"""


def regions(before, after):
    """What each region of a file was and became."""
    found = FileDifference.between("m.py", before, after)
    old, new = before.splitlines(), after.splitlines()
    return [(old[a:b], new[c:d]) for a, b, c, d in found.blocks]


GONE = "def {0}(x):\n    return x\n\n\n"


def test_definitions_that_went_together_are_regions_of_their_own():
    before = GONE.format("keep") + GONE.format("one") + GONE.format("two") + "X = 1\n"
    after = GONE.format("keep") + "X = 2\n"
    assert [(old[:1], new) for old, new in regions(before, after)] == [
        (["def one(x):"], []),
        (["def two(x):"], []),
        (["X = 1"], ["X = 2"]),
    ]


def test_definitions_that_came_together_are_regions_of_their_own():
    before = "X = 1\n" + GONE.format("keep")
    after = "X = 2\n\n\n" + GONE.format("one") + "class Two:\n    pass\n\n\n" + GONE.format("keep")
    assert [(old, new[:1]) for old, new in regions(before, after)] == [
        (["X = 1"], ["X = 2"]),
        ([], ["def one(x):"]),
        ([], ["class Two:"]),
    ]


def test_a_definition_with_another_name_in_its_place_is_one_region():
    assert len(regions(GONE.format("one") + "X = 1\n", GONE.format("two") + "X = 1\n")) == 1


def test_functions_are_paired_by_name_before_their_lines_are_compared():
    """A rewritten file has many lines that look like lines of other functions."""
    size = "def size(char):\n    total = 0\n    return total\n\n\n"
    length = "def length(text):\n    if not text:\n        return 0\n    return sum(map(size, text))\n\n\n"
    cut = "def cut(text):\n    total = 0\n    return text\n"
    added = (
        "def _length(text):\n    total = 0\n    for char in text:\n        total += size(char)\n    return total\n\n\n"
    )
    after = length.replace("sum(map(size, text))", "_length(text)") + added + cut + "\n\n" + size.rstrip("\n") + "\n"
    assert [(len(old), new[-1:]) for old, new in regions(size + length + cut, after)] == [
        (5, []),
        (1, ["    return _length(text)"]),
        (0, [""]),
        (0, ["    return total"]),
    ]


def edits_of(tmp_path, before, after):
    sides = []
    for name, text in (("before", before), ("after", after)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "m.py").write_text(text, encoding="utf-8")
        sides.append(PackageFiles(tmp_path / name, {"m.py": name}))
    return Edits.of({"m.py": ("m.py",)}, *sides, {"m.py"})


def test_each_import_of_one_block_is_a_region_and_those_of_one_module_are_one():
    assert regions(BEFORE, AFTER) == [
        (["from .masks import Converter"], []),
        ([], ["from .caches import (", "    Cache,", ")"]),
        (["from .flash import flag, wraps"], ["from .flash import flag"]),
        ([], ["from .layers import Checkpointing"]),
        (["from .models import Base"], ["from .models import ALL, Base"]),
        (["class Layer(Base):"], ["class Layer(Checkpointing):"]),
    ]


def test_a_base_class_needs_its_own_import_and_no_other(tmp_path):
    edits = edits_of(tmp_path, BEFORE, AFTER)
    assert Consistency(edits, ties_of(edits)).advanced({"m.py#5"}) == {"m.py#5", "m.py#3"}


def test_a_decorator_is_a_region_apart_from_the_header_below_it():
    before = "@renamed('old', to='new')\n@cached\ndef step(new: Optional[int] = None):\n    return new\n"
    after = "@cached\ndef step(new: int | None = None):\n    return new\n"
    assert regions(before, after) == [
        (["@renamed('old', to='new')"], []),
        (["def step(new: Optional[int] = None):"], ["def step(new: int | None = None):"]),
    ]
    joined = before.replace("@cached\n", "")
    assert regions(joined, after.replace("@cached\n", "")) == regions(before, after)


def test_a_decorator_and_a_changed_header_are_not_tied(tmp_path):
    before = "@renamed('old', to='new')\ndef step(new: Optional[int] = None):\n    return new\n"
    edits = edits_of(tmp_path, before, "def step(new: int | None = None):\n    return new\n")
    assert edits.all == {"m.py#0", "m.py#1"}
    assert ties_of(edits).closed({"m.py#0"}) == {"m.py#0"}


LINES = st.lists(
    st.sampled_from(
        ["import a", "import b", "from c import d", "from c import (\n    e,\n    f,\n)", "", "# a note", "@g", "x = 1"]
    ),
    max_size=8,
)


@given(LINES, LINES)
def test_all_regions_reverted_are_the_older_text_and_none_the_newer(before, after):
    older, newer = ("".join(f"{line}\n" for line in [*lines, "def h(): pass"]) for lines in (before, after))
    found = FileDifference.between("m.py", older, newer)
    assert found.mixed(range(len(found.blocks))) == older
    assert found.mixed(()) == newer
    assert found.flipped().mixed(range(len(found.blocks))) == newer


@pytest.mark.parametrize(
    ("before", "after", "is_quiet"),
    [
        ("", "from a import b\n", True),
        ("import a\n", "", True),
        ("from a import b, c\n", "from a import b\n", True),
        ("from a import (\n    b,\n)\n", "from a import (\n    b,\n    c,\n)\n", True),
        ("from a import b\n", "from other import b\n", False),
        ("from a import b\n", "from a import c as b\n", False),
        ("", "from a import *\n", False),
        ("", "a.start()\n", False),
        ("", "# a note\n", True),
        ("from a import (\n    b,\n)\n", "from other import (\n    b,\n)\n", False),
        ("from a import (\n    b,\n)\nc()\n", "from a import (\n    b,\n    c,\n)\nd()\n", None),
    ],
)
def test_an_import_is_quiet_unless_a_name_comes_from_elsewhere(tmp_path, before, after, is_quiet):
    edits = edits_of(tmp_path, f"x = 1\n{before}y = 2\n", f"x = 1\n{after}y = 2\n")
    assert edits.quiet() == (edits.all if is_quiet else frozenset() if is_quiet is False else {"m.py#0"})
