"""The outline of a text: definitions, imports, decorators, and lines by what is on them."""

import ast
from pathlib import Path

import pytest

from harness.culprit.syntax import Definition, Import, children_of, outline_of, walk

TEXT = '''"""Two
lines."""
import os.path

# a comment
from .a import b, c as d


@first
@second(1)
class A:
    """One line."""

    def f(self):
        def inner():
            "text"
            return 1

        return inner


if os:
    def unnamed():
        pass

    import late
'''


def test_definitions_have_their_decorators_and_the_names_around_them():
    found = sorted(outline_of(TEXT).definitions, key=lambda one: one.first)
    assert found == [
        Definition(9, 19, "A", is_function=False, is_in_function=False),
        Definition(14, 19, "A.f", is_function=True, is_in_function=False),
        Definition(15, 17, "A.f.inner", is_function=True, is_in_function=True),
    ]


def test_imports_have_names_and_origins():
    assert set(outline_of(TEXT).imports) == {
        Import(3, 3, "os.path", (("os", "os.path", 3),)),
        Import(6, 6, ".a", (("b", ".a:b", 6), ("d", ".a:c", 6))),
        Import(26, 26, "late", (("late", "late", 26),)),
    }


def test_decorators_end_where_the_next_or_the_header_starts():
    assert [(first, last) for first, last, _ in sorted(outline_of(TEXT).decorators)] == [(9, 9), (10, 10)]


def test_statements_start_on_lines_at_any_depth():
    assert outline_of(TEXT).starts == {1, 3, 6, 11, 12, 14, 15, 16, 17, 19, 22, 23, 24, 26}


def test_handlers_and_cases_have_statements():
    text = "try:\n    a\nexcept E:\n    b\nfinally:\n    c\nmatch d:\n    case 1:\n        e\n"
    assert outline_of(text).starts == {1, 2, 4, 6, 7, 9}


@pytest.mark.parametrize("text", ["x = (\n", "x\0"])
def test_invalid_python_has_an_empty_outline(text):
    assert outline_of(text).starts == frozenset()


def test_a_long_chain_of_branches_can_be_outlined():
    text = "if a:\n    b\n" + "elif a:\n    b\n" * 400
    assert len(outline_of(text).starts) == 802


@pytest.mark.parametrize("source", [TEXT, Path(__file__).read_text(encoding="utf-8"), Path(ast.__file__).read_text()])
def test_a_walk_leaves_out_only_operators_and_contexts(source):
    tree = ast.parse(source)
    left_out = ast.expr_context | ast.operator | ast.boolop | ast.unaryop | ast.cmpop
    assert list(walk(tree)) == [node for node in ast.walk(tree) if not isinstance(node, left_out)]
    for node in ast.walk(tree):
        assert children_of(node) == [one for one in ast.iter_child_nodes(node) if not isinstance(one, left_out)]
