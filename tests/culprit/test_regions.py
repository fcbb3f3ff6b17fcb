"""The changed regions of a file: reverted one by one, grouped, named, and what they require."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.culprit.regions import FileDifference, used_names
from harness.culprit.syntax import Names, names_in

LINES = st.lists(st.sampled_from(["a = 1", "b = 2", "", "def f():", "    return 1", "# note", "x\u2028y"]), max_size=25)


def between(before, after, path="m.py"):
    return FileDifference.between(path, textwrap.dedent(before), textwrap.dedent(after))


@st.composite
def edited(draw):
    """Two texts; the second replaces, removes or adds some lines, and the last newline can be missing."""
    lines = draw(LINES)
    other = list(lines)
    for _ in range(draw(st.integers(0, 5))):
        at = draw(st.integers(0, len(other)))
        other[at : at + draw(st.integers(0, 3))] = draw(LINES)[:3]
    ends = draw(st.tuples(*[st.sampled_from(["", "\n"])] * 2))
    return "\n".join(lines) + ends[0], "\n".join(other) + ends[1]


@given(edited(), st.sampled_from(["m.txt", "m.py"]))
def test_reverting_nothing_gives_the_newer_text_and_reverting_everything_the_older(texts, path):
    found = FileDifference.between(path, *texts)
    assert found.mixed(()) == texts[1]
    assert found.mixed(range(len(found.blocks))) == texts[0]


@given(edited(), st.data())
def test_the_two_directions_complement_each_other(texts, data):
    """Mixtures of both directions are made from the same blocks and complement each other."""
    found = FileDifference.between("m.txt", *texts)
    flipped = FileDifference("m.txt", found.after, found.before, tuple((c, d, a, b) for a, b, c, d in found.blocks))
    old = data.draw(st.sets(st.sampled_from(range(len(found.blocks))))) if found.blocks else set()
    assert found.mixed(old) == flipped.mixed(set(range(len(found.blocks))) - old)


@given(edited(), st.sampled_from(["m.txt", "m.py"]))
def test_regions_are_disjoint_and_in_order(texts, path):
    found = FileDifference.between(path, *texts)
    edges = [edge for a, b, c, d in found.blocks for edge in ((a, c), (b, d))]
    assert edges == sorted(edges)
    assert all(b > a or d > c for a, b, c, d in found.blocks)


BEFORE = """
import json


class Shop:
    # what it does
    def price(self):
        return 1

    def name(self):
        return "old"


def helper():
    return 1


def use():
    return helper()
"""
AFTER = """
import json, os


class Shop:
    # what it is for
    def price(self):
        return 2

    def name(self):
        return "new"


def renamed():
    return 1


def use():
    return renamed()
"""


def test_regions_have_the_name_of_the_enclosing_definition():
    found = between(BEFORE, AFTER)
    names = [found.function_of(number) for number in range(len(found.blocks))]
    assert names == ["", "Shop", "Shop.price", "Shop.name", "renamed", "use"]
    assert found.is_function("Shop.price")
    assert not found.is_function("Shop")
    assert not found.is_function("")


def test_a_removal_is_named_by_the_older_text():
    found = between("def f():\n    a = 1\n    return a\n\n\nx = 1\n", "x = 1\n")
    assert found.function_of(0) == "f"


def test_an_added_or_removed_function_is_named_after_itself():
    without = "def f():\n    return 1\n\n\ndef h():\n    return 1\n"
    within = without.replace("def h", "def g():\n    return 2\n\n\ndef h")
    assert between(without, within).function_of(0) == "g"
    assert between(within, without).function_of(0) == "g"


def test_changed_line_endings_are_a_change():
    found = between("a\nb\n", "a\r\nb\n", "table.csv")
    assert [found.mixed(()), found.mixed({0})] == ["a\r\nb\n", "a\nb\n"]


def test_a_form_feed_does_not_end_a_line():
    before = "x = 1\n\x0c\n\ndef f():\n    return 1\n"
    assert between(before, before.replace("return 1", "return 2")).function_of(0) == "f"


def test_a_decorator_belongs_to_its_function():
    found = between("@one\ndef f():\n    return 1\n", "@two\ndef f():\n    return 1\n")
    assert found.function_of(0) == "f"


def required(found: FileDifference) -> dict[int, frozenset[int]]:
    """The regions that must be reverted with each region; regions that need none are left out."""
    return {n: needed for n in range(len(found.blocks)) if (needed := found.lacking({n}) - {n})}


def test_a_renamed_helper_requires_all_its_users():
    found = between(BEFORE, AFTER)
    assert found.flaws({5}) == {"helper"}
    assert found.flaws({4}) == {"renamed"}
    assert found.flaws({4, 5}) == frozenset()
    assert required(found) == {4: frozenset({5}), 5: frozenset({4})}


def test_a_use_requires_its_import_but_not_the_reverse():
    found = between("import old\n\n\ndef f():\n    return old.x\n", "import new\n\n\ndef f():\n    return new.x\n")
    assert required(found) == {0: frozenset({1}), 1: frozenset({0})}
    added = between("def f():\n    return 1\n", "import new\n\n\ndef f():\n    return new.x\n")
    assert added.flaws({0}) == {"new"}
    assert added.flaws({1}) == frozenset()


def test_a_removed_method_is_required_by_its_use_on_self():
    before = "class A:\n    def old(self):\n        return 1\n\n    def run(self):\n        return self.old()\n"
    found = between(before, before.replace("old", "new"))
    assert found.flaws({1}) == {"old"}


def test_names_undefined_in_both_texts_do_not_matter():
    found = between("x = magic\ny = 1\n", "x = magic\ny = 2\n")
    assert found.flaws({0}) == frozenset()


def test_builtins_in_annotations_that_are_evaluated_only_in_a_mixed_text_are_known():
    after = "from __future__ import annotations\n\n\ndef f(x: float, y: Later) -> bool: ...\n"
    found = between("\n\ndef f(x, y): ...\n", after)
    assert found.flaws({0}) == {"Later"}


@pytest.mark.parametrize("path", ["data.json", "table.csv"])
def test_data_files_require_no_names(path):
    assert between('{"a": helper}\n', '{"a": other}\n', path).flaws({0}) == frozenset()


def test_a_region_has_its_lines_and_its_diff():
    region = between("a = 1\nb()\nc = 3\n", "a = 1\nd()\ne()\nc = 3\n").region(0)
    assert (region.before, region.after, region.function) == ((2, 2), (2, 3), "")
    assert region.diff == "@@ -1,3 +1,4 @@\n a = 1\n-b()\n+d()\n+e()\n c = 3"


def test_a_pure_addition_has_an_empty_old_range():
    region = between("a = 1\n", "a = 1\nb = 2\n").region(0)
    assert region.before[1] < region.before[0]
    assert region.after == (2, 2)


STATEMENTS = """
def load(dtype):
    # Nothing told.
    if dtype is None:
        dtype = "auto"

    known = {
        "dtype": dtype,
    }
    told = dict(known)
    return dtype
"""


@pytest.mark.parametrize("is_added", [True, False])
def test_statements_that_a_function_gained_or_lost_are_regions_of_their_own(is_added):
    """Together they would need everything that one of them needs."""
    without = "\ndef load(dtype):\n    return dtype\n"
    found = between(without, STATEMENTS) if is_added else between(STATEMENTS, without)
    lines = [block[2:] if is_added else block[:2] for block in found.blocks]
    assert lines == [(2, 5), (5, 9), (9, 10)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if a:\n        b()", "if a:\n        b()\n    else:\n        d()\n    e()"),
        ("b()", "if a:\n        c()\n    d()"),
    ],
)
def test_half_statements_and_exchanged_ones_are_one_region(old, new):
    assert len(between(f"def f():\n    {old}\n", f"def f():\n    {new}\n").blocks) == 1


def test_only_python_has_names():
    assert names_in("x = 1\ndef (:") == Names(error=2)
    assert used_names("def (:") == frozenset()


@pytest.mark.parametrize(
    ("source", "unbound"),
    [
        ("import a\n\n\ndef f(x):\n    return a.b(x, y)\n", {"y"}),
        ("def f():\n    global y\n    y = 1\n\n\ndef g():\n    return y\n", set()),
        ("class A:\n    x = 1\n\n    def f(self):\n        return [x for _ in self.all]\n", {"x"}),
        ("def f(x):\n    return lambda: [x for _ in x]\n", set()),
        ("def f(x: Later) -> Later: ...\n", {"Later"}),
        ("from __future__ import annotations\n\n\ndef f(x: Later) -> Later: ...\n", set()),
        ("from a import *\n\nprint(y)\n", set()),
        ("try:\n    import a\nexcept ImportError as b:\n    a = b\n", set()),
    ],
)
def test_names_that_a_text_uses_and_does_not_bind_are_found(source, unbound):
    assert names_in(source).unbound == unbound
