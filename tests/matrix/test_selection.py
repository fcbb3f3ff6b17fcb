"""Keywords select cells like in pytest and nox, whatever is typed."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UserMistake
from harness.matrix import Cell
from harness.matrix.reading import selected

CELLS = tuple(
    Cell(f"step-shop-{version}-case={case}", "step", choice={"packages.shop": version, "parameters.case": case})
    for version in ("4.52.4", "4.53.0", "4.53.3")
    for case in ("lora", "full")
)


def chosen(words: str) -> list[str]:
    return [cell.name.removeprefix("step-shop-") for cell in selected(CELLS, words)]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("shop_4_53_0", ["4.53.0-case=lora", "4.53.0-case=full"]),
        ("4.53.0 and lora", ["4.53.0-case=lora"]),
        ("4_53 and not case_full", ["4.53.0-case=lora", "4.53.3-case=lora"]),
        ("(4_52_4 or 4_53_3) and FULL", ["4.52.4-case=full", "4.53.3-case=full"]),
        ("not (lora or 4_53)", ["4.52.4-case=full"]),
        ("4_53_3 AND case=full", ["4.53.3-case=full"]),
        ("step-shop-4.52.4-case=lora", ["4.52.4-case=lora"]),
    ],
)
def test_keywords_select_the_cells_that_have_them(words, names):
    assert chosen(words) == names


@pytest.mark.parametrize("words", ["", "(", "lora and", "lora full", "lora(full)", "a; b", "'lora'", "not", "lora, 4"])
def test_an_invalid_expression_is_refused_in_one_sentence(words):
    with pytest.raises(UserMistake, match="-k takes an expression"):
        selected(CELLS, words)


def test_keywords_without_a_match_are_refused_with_a_list_of_tags():
    with pytest.raises(UserMistake, match="none of the 6 cells") as told:
        selected(CELLS, "4_54")
    assert "shop_4_53_0" in told.value.hint


@given(st.text(alphabet="ab4_.() \t'\"[]:=!andortlmbfx*+,\\\n", max_size=40))
def test_any_input_selects_cells_or_is_refused(words):
    """No other code is evaluated: there is no other result."""
    with contextlib.suppress(UserMistake):
        assert all(cell in CELLS for cell in selected(CELLS, words))
