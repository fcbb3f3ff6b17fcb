"""Ties: changes that cannot be reverted without others, in one direction where possible."""

from __future__ import annotations

import pytest
from edited import edits_of, unit
from hypothesis import given
from hypothesis import strategies as st

from harness.culprit.ties import Consistency, Ties, ties_of


def needs(edits, text):
    """The texts that must be reverted with the region of a text."""
    return ties_of(edits).closed({unit(edits, text)}) - {unit(edits, text)}


def test_a_new_parameter_requires_its_callers_but_not_the_reverse(tmp_path):
    before = {
        "shop/a.py": "def price(item):\n    return item\n",
        "shop/b.py": "from shop.a import price\n\n\ndef run():\n    return price(1)\n\n\ndef stay():\n    return 1\n",
    }
    text = before["shop/b.py"]
    after = {
        "shop/a.py": "def price(item, *, tax=0):\n    return item\n",
        "shop/b.py": text.replace("price(1)", "price(1, tax=2)").replace("return 1", "return 2"),
    }
    edits = edits_of(tmp_path, before, after)
    assert needs(edits, "def price") == {unit(edits, "price(1")}
    assert needs(edits, "price(1") == frozenset()
    assert needs(edits, "return 2") == frozenset()


def test_callers_require_a_removed_parameter(tmp_path):
    before = {"a.py": "def f(x, y):\n    return x\n\n\ndef run():\n    return f(1, 2)\n"}
    after = {"a.py": "def f(x):\n    return x\n\n\ndef run():\n    return f(1)\n"}
    edits = edits_of(tmp_path, before, after)
    assert needs(edits, "f(1") == {unit(edits, "def f")}
    assert needs(edits, "def f") == {unit(edits, "f(1")}


def test_a_default_parameter_does_not_tie_calls_without_it(tmp_path):
    before = {"a.py": "def f(x):\n    return x\n\n\ndef run():\n    return f(1)\n"}
    after = {"a.py": "def f(x, y=2):\n    return x\n\n\ndef run():\n    return f(3)\n"}
    edits = edits_of(tmp_path, before, after)
    assert needs(edits, "def f") == needs(edits, "f(1)") == frozenset()


def test_an_initialiser_is_tied_by_the_name_of_its_class(tmp_path):
    before = {"a.py": "class Shop:\n    def __init__(self):\n        self.x = 1\n\n\ndef run():\n    return Shop()\n"}
    after = {"a.py": before["a.py"].replace("(self)", "(self, size)").replace("Shop()", "Shop(size=1)")}
    edits = edits_of(tmp_path, before, after)
    assert needs(edits, "def __init__") == {unit(edits, "return Shop")}


def test_a_call_of_an_instance_is_tied_to_its_forward_method(tmp_path):
    layer = "class Layer:\n    def forward(self, x{}):\n        return x\n"
    caller = "def run(self, x):\n    return self.layer(x{})\n"
    edits = edits_of(
        tmp_path,
        {"layer.py": layer.format(""), "model.py": caller.format("")},
        {"layer.py": layer.format(", mask=None"), "model.py": caller.format(", mask=1")},
    )
    assert needs(edits, "def forward") == {unit(edits, "self.layer")}


def test_a_tuple_of_another_length_is_tied_to_its_unpacking(tmp_path):
    before = {"a.py": "def f():\n    return 1, 2\n\n\ndef run():\n    a, b = f()\n    return a\n"}
    after = {"a.py": "def f():\n    return 1, 2, 3\n\n\ndef run():\n    a, b, c = f()\n    return a\n"}
    edits = edits_of(tmp_path, before, after)
    assert needs(edits, "= f()") == {unit(edits, "return 1")}
    assert needs(edits, "return 1") == {unit(edits, "= f()")}


def test_a_value_that_became_a_pair_moves_with_those_that_take_it_apart(tmp_path):
    """The older caller would take the pair for the value, and the newer one would take the value apart."""
    before = {"a.py": "def f():\n    return 1\n\n\ndef run():\n    a = f()\n    return a\n"}
    after = {"a.py": "def f():\n    return 1, None\n\n\ndef run():\n    a, _ = f()\n    return a\n"}
    edits = edits_of(tmp_path, before, after)
    assert needs(edits, "= f()") == {unit(edits, "return 1")}
    assert needs(edits, "return 1") == {unit(edits, "= f()")}


def test_an_import_is_tied_to_its_use_in_another_scope(tmp_path):
    before = {"a.py": "import os\n\n\ndef run():\n    return 1\n"}
    after = {"a.py": "import os\nimport re\n\n\ndef run():\n    return re.escape('x')\n"}
    edits = edits_of(tmp_path, before, after)
    assert needs(edits, "import re") == {unit(edits, "re.escape")}
    assert needs(edits, "re.escape") == frozenset()


def test_an_import_from_a_new_file_is_tied_to_it(tmp_path):
    before = {"shop/__init__.py": "", "shop/a.py": "def run():\n    return 1\n"}
    after = {
        "shop/__init__.py": "",
        "shop/a.py": "from shop.fresh import start\n\n\ndef run():\n    return start()\n",
        "shop/fresh.py": "def start():\n    return 2\n",
    }
    edits = edits_of(tmp_path, before, after)
    assert ties_of(edits).closed({"shop/fresh.py"}) == edits.all
    assert needs(edits, "return start") == frozenset()


def test_local_names_of_different_functions_are_unrelated(tmp_path):
    text = (
        "def f():\n    {0} = 1\n    print()\n    return {0}\n\n\ndef g():\n    {1} = 1\n    print()\n    return {1}\n"
    )
    edits = edits_of(tmp_path, {"a.py": text.format("x", "x")}, {"a.py": text.format("y", "y")})
    first = {one for one in edits.all if edits.function(one) == "f"}
    assert len(first) == 2
    assert all(ties_of(edits).closed({one}) == first for one in first)


def test_an_attribute_and_a_method(tmp_path):
    before = "class A:\n    def __init__(self):\n        self.old = 1\n\n    def step(self):\n        return self.old\n"
    edits = edits_of(tmp_path, {"a.py": before}, {"a.py": before.replace("old", "new")})
    assert needs(edits, "self.old = 1") == {unit(edits, "return self.old")}
    assert needs(edits, "return self.old") == {unit(edits, "self.old = 1")}


def test_a_definition_moved_between_files_is_in_every_mixture(tmp_path):
    helper = "def helper():\n    return 1\n"
    before = {"shop/a.py": f"{helper}\n\ndef run():\n    return helper()\n", "shop/b.py": "X = 1\n"}
    after = {
        "shop/a.py": "from shop.b import helper\n\n\ndef run():\n    return helper()\n",
        "shop/b.py": f"X = 1\n\n\n{helper}",
    }
    edits = edits_of(tmp_path, before, after)
    arrived = next(one for one in edits.all if one.startswith("shop/b.py"))
    assert any(one.startswith("shop/a.py") for one in ties_of(edits).closed({arrived}))


def test_a_statement_is_never_split(tmp_path):
    before = {"a.py": "VALUES = [\n    1,\n    2,\n    3,\n]\n"}
    after = {"a.py": "VALUES = (\n    1,\n    2,\n    3,\n)\n"}
    edits = edits_of(tmp_path, before, after)
    assert len(edits.all) == 2
    assert all(ties_of(edits).closed({one}) == edits.all for one in edits.all)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "def f(\n    a,\n    b=1,\n    c=2,\n):\n    return 0\n",
            "def f(\n    A,\n    b=1,\n    C=2,\n):\n    return 0\n",
        ),
        ("ALL = [\n    1,\n    2,\n    3,\n]\n", "ALL = [\n    5,\n    2,\n    7,\n]\n"),
        ("ALL = {\n    'a': 1,\n    'b': 2,\n    'c': 3,\n}\n", "ALL = {\n    'a': 5,\n    'b': 2,\n    'c': 7,\n}\n"),
        ("from os import (\n    a,\n    b,\n    c,\n)\n", "from os import (\n    x,\n    b,\n    y,\n)\n"),
    ],
    ids=["parameters", "list", "dict", "import"],
)
def test_parts_of_a_statement_that_stand_apart_are_not_tied(tmp_path, before, after):
    edits = edits_of(tmp_path, {"a.py": before}, {"a.py": after})
    assert len(edits.all) == 2
    assert all(ties_of(edits).closed({one}) == {one} for one in edits.all)


def test_a_public_name_comes_and_goes_with_its_entry_in_all(tmp_path):
    names, rest = '__all__ = [\n    "keep",\n    "gone",\n]\n', "\n\ndef keep():\n    return 1\n\n\nX = 0\n"
    before = {"a.py": f"{names}\n\ndef gone():\n    return 1\n{rest}"}
    after = {"a.py": names.replace('    "gone",\n', "") + rest.replace("return 1", "return 2")}
    edits = edits_of(tmp_path, before, after)
    assert needs(edits, '"gone"') == {unit(edits, "def gone")}
    assert needs(edits, "def gone") == {unit(edits, '"gone"')}
    assert needs(edits, "return 2") == frozenset()


LAZY = "from __future__ import annotations\nimport typing\n\nif typing.TYPE_CHECKING:\n    from shop import Item\n"


def test_annotations_that_only_type_checkers_read_need_the_line_that_defers_them(tmp_path):
    before = {"a.py": "import typing\n\n\ndef f(x):\n    return x\n"}
    after = {"a.py": LAZY + "\n\ndef f(x: Item):\n    return x\n"}
    edits = edits_of(tmp_path, before, after)
    needed_there = Consistency(edits, ties_of(edits)).advanced({unit(edits, "def f")})
    assert unit(edits, "__future__") in needed_there


def test_an_annotation_that_nothing_evaluates_needs_no_import(tmp_path):
    before = {"a.py": LAZY.replace("Item", "Item, Old") + "\n\ndef f(x, y: Old = 1):\n    return x\n"}
    after = {"a.py": LAZY + "\n\ndef f(x):\n    return x\n"}
    edits = edits_of(tmp_path, before, after)
    consistency = Consistency(edits, ties_of(edits))
    one = unit(edits, "def f")
    assert consistency.reverted({one}) == {one}
    assert not consistency.mixture({one}, "", newer_base=True).flaw


def test_a_block_with_a_changed_header_is_reverted_with_its_body(tmp_path):
    """No name ties them, but half of the block is not valid Python."""
    before = {"a.py": "def f(x):\n    # note\n    x += 1\n\n    # more\n    x += 2\n    return x\n"}
    after = {
        "a.py": "def f(x):\n    # note\n    if x:\n        x += 1\n\n        # more\n        x += 2\n    return x\n"
    }
    edits = edits_of(tmp_path, before, after)
    consistency = Consistency(edits, ties_of(edits))
    for one in edits.all:
        text = edits.differences["a.py"].mixed(edits.numbers(consistency.reverted({one}), "a.py"))
        compile(text, "a.py", "exec")


UNITS = st.sampled_from("abcdefgh")
PAIRS = st.lists(st.tuples(UNITS, UNITS), max_size=12)


@given(PAIRS, st.frozensets(UNITS))
def test_the_complement_of_a_closed_set_is_closed_the_other_way(pairs, units):
    ties = Ties.of(pairs)
    old = ties.closed(units)
    assert units <= old == ties.closed(old)
    rest = frozenset("abcdefgh") - old
    assert ties.reversed().closed(rest) == rest


@pytest.mark.parametrize("text", ["def f(:\n", "print 'x'\n"])
def test_files_other_than_python_tie_nothing(tmp_path, text):
    edits = edits_of(tmp_path, {"a.py": text}, {"a.py": f"{text}x = 1\n"})
    assert not ties_of(edits).needs


def test_places_that_define_what_they_use_are_not_tied(tmp_path):
    before = "def f(x):\n    if x:\n        return x + 1\n    else:\n        return x + 2\n"
    after = (
        "def f(x):\n    if x:\n        found = x + 1\n        return found\n"
        "    else:\n        found = x + 2\n        return found\n"
    )
    edits = edits_of(tmp_path, {"a.py": before}, {"a.py": after})
    assert len(edits.all) == 2
    assert not ties_of(edits).needs


def test_the_setter_of_a_new_property_is_reverted_with_it(tmp_path):
    before = {"a.py": "class Shop:\n    def open(self):\n        return 1\n\n    def close(self):\n        return 2\n"}
    getter = "    @property\n    def size(self):\n        return 3\n\n"
    setter = "    @size.setter\n    def size(self, value):\n        pass\n\n"
    text = (
        before["a.py"]
        .replace("    def open", getter + "    def open")
        .replace("    def close", setter + "    def close")
    )
    edits = edits_of(tmp_path, before, {"a.py": text})
    assert needs(edits, "@property") == {unit(edits, "@size.setter")}
    assert needs(edits, "@size.setter") == frozenset()


def test_a_method_does_not_see_the_names_of_its_class(tmp_path):
    before = {"a.py": "size = 1\n\n\nclass Shop:\n    def run(self):\n        return 2\n"}
    after = {"a.py": "size = 1\n\n\nclass Shop:\n    size = 3\n\n    def run(self):\n        return size\n"}
    edits = edits_of(tmp_path, before, after)
    assert needs(edits, "size = 3") == needs(edits, "return size") == frozenset()


def test_an_attribute_that_other_classes_have_too_is_tied_within_its_class(tmp_path):
    init = "class Shop:\n    def __init__(self, {0}):\n        self.{0} = {0}\n"
    shop = init + "\n    def run(self):\n        x = 1\n        return self.{0}\n"
    others = "\n\nclass Other:\n    def __init__(self):\n        self.old = self.new = 1\n"
    edits = edits_of(tmp_path, {"a.py": shop.format("old") + others}, {"a.py": shop.format("new") + others})
    assert unit(edits, "self.new = ") in needs(edits, "return self.new")
    assert unit(edits, "return self.new") in needs(edits, "self.new = ")


def test_an_attribute_that_stays_in_its_class_ties_nothing(tmp_path):
    init = "class Shop:\n    def __init__(self):\n        self.size, self.old = 1, 2\n"
    text = init + "\n    def run(self):\n        return {}\n"
    edits = edits_of(tmp_path, {"a.py": text.format("self.old")}, {"a.py": text.format("self.size")})
    assert needs(edits, "return self.size") == frozenset()
