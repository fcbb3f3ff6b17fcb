"""JSON that any parser accepts."""

from __future__ import annotations

import json

import pytest

from harness.model.plain_json import to_json


def refuse(word):
    raise ValueError(word)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_nan_and_infinity_become_null(value):
    told = to_json({"metrics": {"loss": value, "list": [value, (value, 1.5)]}})
    assert json.loads(told, parse_constant=refuse) == {"metrics": {"loss": None, "list": [None, [None, 1.5]]}}


def test_unencodable_text_is_replaced():
    told = json.loads(to_json({"a\ud800": "b\udfff \U0001f600 é \ufeff"}))
    assert told == {"a\ufffd": "b\ufffd \U0001f600 é \ufeff"}
