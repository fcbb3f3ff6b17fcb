"""A changed region is told in one sentence, read from its syntax."""

from __future__ import annotations

import pytest
from edited import edits_of

from harness.culprit.cause import causes, causes_of
from harness.culprit.regions import FileDifference

CASES = [
    (
        "def load(dtype=None):\n    return dtype\n",
        "def load(dtype=None):\n    if dtype is None:\n        dtype = 'auto'\n    return dtype\n",
        "`load` sets `dtype` to `'auto'` if `dtype is None`",
    ),
    (
        "def run(a):\n    a.sort()\n    return a\n",
        "def run(a):\n    return a\n",
        "`run` no longer calls `a.sort`",
    ),
    (
        "def step(loss):\n    return loss\n",
        "def step(loss):\n    loss *= 4\n    return loss\n",
        "`step` runs `loss *= 4`",
    ),
    (
        "from requests import HTTPError\n",
        "from httpx import HTTPError, Response\n",
        "`HTTPError` in `shop.urls` is imported from `httpx` instead of `requests`",
    ),
    (
        "def run(a):\n    b = 1\n    return checked(a, b)\n",
        "def run(a):\n    b = 1\n    warn()\n    return checked(a, b)\n",
        "`run` calls `warn`",
    ),
    (
        "class Model:\n    allowed = [options({'l1', 'none'})]\n",
        "class Model:\n    allowed = [options({'l1'})]\n",
        "the first argument of the call of `options` in `Model` was changed from `{'l1', 'none'}` to `{'l1'}`",
    ),
    (
        'class Config:\n    strategy: str = field(\n        default="ffd",\n        metadata={"help": "?"},\n    )\n',
        'class Config:\n    strategy: str = field(\n        default="bfd",\n        metadata={"help": "?"},\n    )\n',
        "the argument `default` of the call of `field` for `strategy` in `Config` was changed from `'ffd'` to `'bfd'`",
    ),
    (
        'class Model:\n    allowed = {\n        "tol": [1],\n        "penalty": ["l1", "none"],\n    }\n',
        'class Model:\n    allowed = {\n        "tol": [1],\n        "penalty": ["l1", None],\n    }\n',
        "the entry `'penalty'` of `allowed` in `Model` was changed from `['l1', 'none']` to `['l1', None]`",
    ),
    (
        "def run(a):\n    return layer(\n        a,\n        scale=1,\n        bias=2,\n    )\n",
        "def run(a):\n    return layer(\n        a,\n        bias=2,\n    )\n",
        "the argument `scale` of the call of `layer` in `run` is gone",
    ),
    (
        "class X:\n    def step(self, padding=0):\n        return 1\n",
        "class X:\n    def step(self, pad=0):\n        return 1\n",
        "the parameter `padding` of `X.step` was renamed to `pad`",
    ),
    (
        "def step(a, b=1):\n    return a\n",
        "def step(a):\n    return a\n",
        "the parameter `b` of `step` was removed",
    ),
    (
        "def step(a, b=1):\n    return a\n",
        "def step(a, b=2):\n    return a\n",
        "the default of the parameter `b` of `step` was changed from `1` to `2`",
    ),
    (
        "class T:\n    @old_name('x')\n    def run(self):\n        pass\n",
        "class T:\n    def run(self):\n        pass\n",
        "the decorator `old_name('x')` of `T.run` is gone",
    ),
    (
        "def quote(x):\n    return x\n\n\ndef kept():\n    pass\n",
        "def kept():\n    pass\n",
        "`quote` was removed from `shop.urls`",
    ),
    (
        "def run(a, b):\n    return layer(a, b)\n",
        "def run(a, b):\n    return layer(a, states=b)\n",
        "the argument `states` of the call of `layer` in `run` is passed by name",
    ),
    (
        "LIMIT = 10\n",
        "LIMIT = 20\n",
        "`LIMIT` in `shop.urls` was changed from `10` to `20`",
    ),
    (
        "def run(a):\n    if a > 1:\n        return 2\n    return 3\n",
        "def run(a):\n    if a >= 1:\n        return 2\n    return 3\n",
        "the condition `a > 1` in `run` became `a >= 1`",
    ),
    (
        "class A(Base):\n    pass\n",
        "class A:\n    pass\n",
        "`A` derives from `object` instead of `Base`",
    ),
]


@pytest.mark.parametrize(("before", "after", "told"), CASES, ids=[told for _, _, told in CASES])
def test_a_region_reads_as_a_cause(before, after, told):
    """One sentence for each usual kind of change."""
    difference = FileDifference.between("shop/urls.py", before, after)
    found = [one for block in difference.blocks for one in causes(before, after, block, "shop.urls")]
    assert told in found


def test_a_region_is_told_without_the_other_changes_of_its_header():
    before = "@old\n@kept\ndef run(\n    a,\n    b=1,\n    c=2,\n    d=3,\n):\n    return 1\n"
    after = "@new\n@kept\ndef run(\n    a,\n    b=5,\n    c=2,\n    d=4,\n):\n    return 1\n"
    difference = FileDifference.between("shop/urls.py", before, after)
    found = [causes(before, after, block, "shop.urls") for block in difference.blocks]
    default = "the default of the parameter `{}` of `run` was changed from `{}` to `{}`".format
    assert found == [
        ("the decorator `old` of `run` is gone", "`run` has the new decorator `new`"),
        (default("b", 1, 5),),
        (default("d", 3, 4),),
    ]


def test_what_is_not_python_has_no_cause():
    """A text that can't be parsed says nothing."""
    assert causes("def (", "def f(): pass", (0, 1, 0, 1), "shop") == ()


def test_of_many_changes_those_are_told_that_the_failure_names(tmp_path):
    before = "class Retry:\n    def __init__(self, total=10, methods=None, status=None, wait=1):\n        pass\n"
    after = "class Retry:\n    def __init__(self, total=5, status=(), wait=2, most=3):\n        pass\n"
    edits = edits_of(tmp_path, {"shop/retry.py": before}, {"shop/retry.py": after})
    message = "Retry.__init__() got an unexpected keyword argument 'methods'"
    assert causes_of(edits, edits.all) == ()
    assert causes_of(edits, edits.all, message) == ("the parameter `methods` of `Retry.__init__` was removed",)
    assert causes_of(edits, edits.all, "another message") == ()
