"""Ties: changes that cannot be reverted without others, in one direction where possible."""

from __future__ import annotations

import pytest
from edited import edits_of, unit
from hypothesis import given
from hypothesis import strategies as st

from harness.culprit.ties import Consistency, Ties, ties_of
from harness.model import StackFrame


def reverted_with(edits, text):
    """What is reverted with the region of a text."""
    return Consistency(edits, ties_of(edits)).reverted({unit(edits, text)}) - {unit(edits, text)}


def test_a_name_that_another_file_imports_is_reverted_with_the_import(tmp_path):
    before = {"shop/a.py": "X = 1\n", "shop/b.py": "def run():\n    return 1\n"}
    after = {
        "shop/a.py": "X = 1\n\n\ndef price():\n    return 2\n",
        "shop/b.py": "from .a import price\n\n\ndef run():\n    return price()\n",
    }
    edits = edits_of(tmp_path, before, after)
    assert reverted_with(edits, "def price") == {unit(edits, "import price"), unit(edits, "return price")}
    assert reverted_with(edits, "return price") == frozenset()


def test_an_import_is_reverted_with_what_uses_it_in_its_file(tmp_path):
    before = {"a.py": "import os\n\n\ndef run():\n    return 1\n"}
    after = {"a.py": "import os\nimport re\n\n\ndef run():\n    return re.escape('x')\n"}
    edits = edits_of(tmp_path, before, after)
    assert reverted_with(edits, "import re") == {unit(edits, "re.escape")}
    assert reverted_with(edits, "re.escape") == frozenset()


def test_a_submodule_that_comes_is_tied_to_its_import(tmp_path):
    before = {"shop/__init__.py": "", "shop/a.py": "X = 1\n"}
    after = {"shop/__init__.py": "", "shop/a.py": "import shop.fresh\n\nX = 1\n", "shop/fresh.py": "Y = 1\n"}
    edits = edits_of(tmp_path, before, after)
    assert ties_of(edits).closed({"shop/fresh.py"}) == edits.all


def needs(edits, text):
    """The texts that must be reverted with the region of a text."""
    return ties_of(edits).closed({unit(edits, text)}) - {unit(edits, text)}


def test_an_import_from_a_new_file_is_tied_to_it(tmp_path):
    before = {"shop/__init__.py": "", "shop/a.py": "def run():\n    return 1\n"}
    after = {
        "shop/__init__.py": "",
        "shop/a.py": "from shop.fresh import start\n\n\ndef run():\n    return start()\n",
        "shop/fresh.py": "def start():\n    return 2\n",
    }
    edits = edits_of(tmp_path, before, after)
    assert Consistency(edits, ties_of(edits)).reverted({"shop/fresh.py"}) == edits.all
    assert reverted_with(edits, "return start") == frozenset()


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


LAZY = "from __future__ import annotations\nimport typing\n\nif typing.TYPE_CHECKING:\n    from shop import Item\n"


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
        text = edits.differences["a.py"].mixed(edits.by_file(consistency.reverted({one})).get("a.py", frozenset()))
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


def test_a_tuple_of_another_length_is_tied_to_its_unpacking(tmp_path):
    before = {"a.py": "def f():\n    return 1, 2\n\n\ndef run():\n    a, b = f()\n    return a\n"}
    after = {"a.py": "def f():\n    return 1, 2, 3\n\n\ndef run():\n    a, b, c = f()\n    return a\n"}
    edits = edits_of(tmp_path, before, after)
    assert reverted_with(edits, "= f()") == {unit(edits, "return 1")}
    assert reverted_with(edits, "return 1") == {unit(edits, "= f()")}


def test_a_value_that_became_a_pair_moves_with_those_that_take_it_apart(tmp_path):
    """The older caller would take the pair for the value, and the newer one would take the value apart."""
    before = {"a.py": "def f():\n    return 1\n\n\ndef run():\n    a = f()\n    return a\n"}
    after = {"a.py": "def f():\n    return 1, None\n\n\ndef run():\n    a, _ = f()\n    return a\n"}
    edits = edits_of(tmp_path, before, after)
    assert reverted_with(edits, "= f()") == {unit(edits, "return 1")}
    assert reverted_with(edits, "return 1") == {unit(edits, "= f()")}


def test_a_pair_that_is_returned_in_a_variable_ties_nothing(tmp_path):
    before = {"a.py": "def ends(n):\n    return n, n\n\n\ndef run(n):\n    low, high = ends(n)\n"}
    after = {"a.py": "def ends(n):\n    both = n, n\n    return both\n\n\ndef run(n):\n    low, high = ends(n + 1)\n"}
    edits = edits_of(tmp_path, before, after)
    assert reverted_with(edits, "return both") == reverted_with(edits, "ends(n + 1)") == frozenset()


def test_a_pair_that_another_line_still_returns_ties_nothing(tmp_path):
    """The function returns pairs on both sides; one line of it returns them through a variable."""
    before = {"a.py": "def f(x):\n    if x:\n        return 1, 2\n    return 3, 4\n\n\na, b = f(5)\n"}
    after = {
        "a.py": "def f(x):\n    if x:\n        found = 1, 2\n        return found\n    return 3, 4\n\n\na, b = f(6)\n"
    }
    edits = edits_of(tmp_path, before, after)
    assert reverted_with(edits, "= f(6)") == frozenset()
    assert reverted_with(edits, "return found") == frozenset()


def test_a_call_that_passes_a_parameter_needs_the_definition_that_has_it(tmp_path):
    before = {"a.py": "def f(x, how=1):\n    return x\n\n\ndef run():\n    return f(1, how=2)\n"}
    after = {"a.py": "def f(x):\n    return x\n\n\ndef run():\n    return f(1)\n"}
    edits = edits_of(tmp_path, before, after)
    assert reverted_with(edits, "return f(1)") == {unit(edits, "def f")}
    assert reverted_with(edits, "def f") == frozenset()


def test_a_parameter_that_came_is_reverted_with_the_calls_that_pass_it(tmp_path):
    before = {"a.py": "class A:\n    def __init__(self, x):\n        self.x = x\n", "b.py": "def run(A):\n    A(1)\n"}
    after = {
        "a.py": "class A:\n    def __init__(self, x, y=0):\n        self.x = x\n",
        "b.py": "def run(A):\n    A(1, y=2)\n",
    }
    edits = edits_of(tmp_path, before, after)
    assert reverted_with(edits, "def __init__") == {unit(edits, "A(1")}
    assert reverted_with(edits, "A(1") == frozenset()


@pytest.mark.parametrize("other", ["def f(x, **more):\n    return x\n", "def f(x, how=3):\n    return x\n"])
def test_a_definition_that_takes_the_parameter_on_both_sides_ties_nothing(tmp_path, other):
    before = {"a.py": "def f(x, how=1):\n    return x\n", "b.py": "def run(f):\n    return f(1, how=2)\n"}
    edits = edits_of(tmp_path, before, {"a.py": other, "b.py": "def run(f):\n    return f(1)\n"})
    assert not ties_of(edits).needs


def test_an_import_in_a_function_that_never_runs_needs_nothing(tmp_path):
    before = {"shop/a.py": "X = 1\n", "shop/b.py": "def run():\n    return 1\n"}
    after = {
        "shop/a.py": "X = 1\n\n\ndef price():\n    return 2\n",
        "shop/b.py": "def run():\n    from .a import price\n\n    return price()\n",
    }
    edits = edits_of(tmp_path, before, after)
    user = unit(edits, "import price")
    assert user in ties_of(edits).closed({unit(edits, "def price")})
    assert not ties_of(edits, idle={user}).needs


def test_a_line_with_the_name_of_a_builtin_needs_what_binds_it(tmp_path):
    """Without the import the name still means something, but something else."""
    before = {"a.py": "from shop import Group as ExceptionGroup\n\n\ndef run():\n    raise ExceptionGroup([])\n"}
    after = {"a.py": "import shop\n\n\ndef run():\n    raise ExceptionGroup('all', [])\n"}
    edits = edits_of(tmp_path, before, after)
    binding, using = unit(edits, "Group as"), unit(edits, "raise")
    ties = ties_of(edits)
    assert ties.closed({using}) == {using}
    assert ties.reversed().closed({using}) == {using, binding}
    same = {"a.py": before["a.py"].replace("raise", "return")}
    assert ties_of(edits_of(tmp_path / "same", before, same)).needs == {}


@pytest.mark.parametrize(("count", "others"), [(30, 30), (60, 0)])
def test_a_part_that_needs_too_many_others_is_not_completed(tmp_path, count, others):
    """What it lacks in its file is reverted with it, up to forty others; then it is left as it is."""
    users = "".join(f"\n\ndef use{number}():\n    a = {number}\n    return a\n" for number in range(count))
    before = {"a.py": f"import os\n{users}", "b.py": "X = 1\n"}
    after = {"a.py": f"import os\nimport re\n{users.replace('return a', 'return re.escape(a)')}", "b.py": "X = 2\n"}
    edits = edits_of(tmp_path, before, after)
    asked = frozenset({unit(edits, "import re")})
    assert len(Consistency(edits, ties_of(edits)).reverted_alone(asked) - asked) == others


def learned(edits, text, name, place=("", 0), *, reverting=True):
    """What else moves with the region of a text once a run without it has missed a name."""
    consistency, moved = Consistency(edits, ties_of(edits)), {unit(edits, text)}
    consistency.learn(moved, {name: place}, reverting=reverting)
    return (consistency.reverted(moved) if reverting else consistency.advanced(moved)) - moved


def test_a_line_that_takes_values_apart_defines_each_of_them(tmp_path):
    before = {"a.py": "def run(n):\n    whole = n\n\n    return whole\n"}
    after = {"a.py": "def run(n):\n    low, _ = n, 1\n\n    if low is None:\n        low = 0\n    return low\n"}
    edits = edits_of(tmp_path, before, after)
    assert learned(edits, "low, _ = ", "low") == {unit(edits, "if low is None")}


def test_a_missing_variable_is_looked_for_in_the_file_that_lacks_it(tmp_path):
    before = {f"{name}.py": "def run():\n    return 1\n" for name in "abcdef"}
    after = {f"{name}.py": "import os\n\n\ndef run():\n    return os.sep\n" for name in "abcdef"}
    edits = edits_of(tmp_path, before, after)
    consistency = Consistency(edits, Ties())
    assert not consistency.learn({"a.py#1"}, {"os": ("", 0)}, reverting=False)  # too many files have it
    assert consistency.learn({"a.py#1"}, {"os": ("a.py", 0)}, reverting=False)
    assert consistency.learned.reversed().closed({"a.py#1"}) == {"a.py#0", "a.py#1"}


def test_an_import_for_type_checkers_binds_nothing_and_a_quoted_annotation_uses_nothing(tmp_path):
    before = {"shop/b.py": "X = 1\n", "shop/a.py": "from shop.b import Y\n\n\ndef run(y: Y):\n    return 1\n"}
    after = {
        "shop/b.py": "X = 2\n",
        "shop/a.py": "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from shop.b import Y\n\n\n"
        'def run(y: "Y"):\n    return 1\n',
    }
    edits = edits_of(tmp_path, before, after)
    with_import = Consistency(edits, ties_of(edits)).advanced({unit(edits, "if TYPE_CHECKING")})
    assert unit(edits, 'def run(y: "Y")') in with_import


def test_an_import_is_read_beside_a_comment_and_before_a_bracket(tmp_path):
    before = {"shop/a.py": "X = 1\n\n\ndef run():\n    return 1\n"}
    after = {
        "shop/a.py": "from warnings import (\n    filterwarnings,  # quiet\n    warn)\n\nX = 1\n\n\n"
        "def run():\n    filterwarnings('error')\n    return warn('x')\n"
    }
    edits = edits_of(tmp_path, before, after)
    used = unit(edits, "return warn")
    assert Consistency(edits, ties_of(edits)).advanced({used}) >= {used, unit(edits, "from warnings")}


def test_a_missing_local_variable_is_looked_for_in_its_function(tmp_path):
    before = {"a.py": "def run(n):\n    low = n\n    print(n)\n    return low\n\n\ndef other(low):\n    return low\n"}
    after = {
        "a.py": "def run(n):\n    if n:\n        low = n\n    print(n)\n    return low if n else 0\n\n\n"
        "def other(low):\n    return low + 1\n"
    }
    edits = edits_of(tmp_path, before, after)
    tied = learned(edits, "if n:", "low", ("a.py", 5), reverting=False)
    assert tied == {unit(edits, "return low if n")}


def test_a_function_that_fails_with_what_it_is_passed_is_tied_to_its_caller(tmp_path):
    before = {"a.py": "def size(n):\n    return len(n)\n\n\ndef run(n):\n    return size([n])\n"}
    after = {"a.py": "def size(n):\n    return n or 0\n\n\ndef run(n):\n    return size(n)\n"}
    edits = edits_of(tmp_path, before, after)
    caller, consistency = {unit(edits, "size(n)\n")}, Consistency(edits, Ties())
    failed = [StackFrame("a.py", 6, "run"), StackFrame("a.py", 2, "size")]
    assert consistency.learn_function(caller, caller, failed)
    assert consistency.advanced(caller) == caller | {unit(edits, "return len(n)")}


def test_a_name_that_a_line_lacks_is_brought_by_its_own_function(tmp_path):
    before = {"a.py": "def run(n):\n    print(n)\n    return 1\n\n\ndef other(m):\n    return m\n"}
    after = {
        "a.py": "def run(n):\n    low = n\n    print(n)\n    return low\n\n\ndef other(m):\n    low = m\n    return m\n"
    }
    edits = edits_of(tmp_path, before, after)
    used = unit(edits, "return low")
    assert Consistency(edits, Ties()).advanced({used}) == {used, unit(edits, "low = n")}
