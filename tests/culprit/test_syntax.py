"""The outline of a text: definitions, imports, decorators, and lines by what is on them."""

import pytest

from harness.culprit.syntax import Definition, Import, outline_of

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


def test_quiet_lines_are_empty_comments_or_docstrings():
    assert outline_of(TEXT).quiet == {1, 2, 4, 5, 7, 8, 12, 13, 16, 18, 20, 21, 25}


@pytest.mark.parametrize("text", ["x = (\n", "x\0"])
def test_invalid_python_has_an_empty_outline(text):
    assert outline_of(text).definitions == ()
    assert outline_of(text).quiet is None


def test_a_long_chain_of_branches_can_be_outlined():
    text = "if a:\n    b\n" + "elif a:\n    b\n" * 400
    assert outline_of(text).quiet == frozenset()
