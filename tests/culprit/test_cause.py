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
        "`if dtype is None: dtype = 'auto'` was added to `load`",
    ),
    (
        "def run(a):\n    a.sort()\n    return a\n",
        "def run(a):\n    return a\n",
        "`a.sort()` was removed from `run`",
    ),
    (
        "from requests import HTTPError\n",
        "from httpx import HTTPError, Response\n",
        "`from requests import HTTPError` became `from httpx import HTTPError, Response` in `shop.urls`",
    ),
    (
        'class Config:\n    strategy: str = field(\n        default="ffd",\n        metadata={"help": "?"},\n    )\n',
        'class Config:\n    strategy: str = field(\n        default="bfd",\n        metadata={"help": "?"},\n    )\n',
        """`default="ffd",` became `default="bfd",` in `Config`""",
    ),
    (
        "def run(a):\n    if a:\n        b = old(\n            a,\n        )\n    return b\n",
        "def run(a):\n    b = new(\n        a,\n        1,\n    )\n    return b\n",
        "`b` in `run` was changed from `old(a)` to `new(a, 1)`",
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
        "`@old_name('x')` was removed from `T.run`",
    ),
    (
        "def quote(x):\n    return x\n\n\ndef kept():\n    pass\n",
        "def kept():\n    pass\n",
        "`quote` was removed from `shop.urls`",
    ),
    (
        "LIMIT = 10\n",
        "LIMIT = 20\n",
        "`LIMIT` in `shop.urls` was changed from `10` to `20`",
    ),
    (
        "def run(a):\n    if a > 1:\n        return 2\n    return 3\n",
        "def run(a):\n    if a >= 1:\n        return 2\n    return 3\n",
        "`if a > 1:` became `if a >= 1:` in `run`",
    ),
    (
        "class A(Base):\n    pass\n",
        "class A:\n    pass\n",
        "`class A(Base):` became `class A:` in `A`",
    ),
    (
        "def run(a):\n    if a:\n        return 0\n    return a.size()\n\n\ndef kept():\n    pass\n",
        "def run(a):\n    return _size(a)\n\n\ndef kept():\n    pass\n\n\ndef _size(a):\n    return a.size() - 1\n",
        "`run` calls `_size`, which was added to `shop.urls`",
    ),
]


@pytest.mark.parametrize(("before", "after", "told"), CASES, ids=[told for _, _, told in CASES])
def test_a_region_reads_as_a_cause(before, after, told):
    """One sentence for each usual kind of change."""
    difference = FileDifference.between("shop/urls.py", before, after)
    found = [one for number in range(len(difference.blocks)) for one in causes(difference, number)]
    assert told in found


def test_a_region_is_told_without_the_other_changes_of_its_header():
    before = "@old\n@kept\ndef run(\n    a,\n    b=1,\n    c=2,\n    d=3,\n):\n    return 1\n"
    after = "@new\n@kept\ndef run(\n    a,\n    b=5,\n    c=2,\n    d=4,\n):\n    return 1\n"
    difference = FileDifference.between("shop/urls.py", before, after)
    found = [causes(difference, number) for number in range(len(difference.blocks))]
    default = "the default of the parameter `{}` of `run` was changed from `{}` to `{}`".format
    assert found == [
        ("`@old` became `@new` in `run`",),
        (default("b", 1, 5),),
        (default("d", 3, 4),),
    ]


def test_what_is_not_python_has_no_cause():
    """A text that can't be parsed says nothing."""
    assert causes(FileDifference.between("shop.py", "def (", "def f(): pass"), 0) == ()


def test_what_is_more_than_a_line_or_a_statement_is_not_told():
    difference = FileDifference.between("shop.py", "def run():\n    a()\n    b()\n", "def run():\n    c()\n    d()\n")
    assert causes(difference, 0) == ()
    nested = "def run():\n    def part():\n        return 1\n\n    return part()\n"
    difference = FileDifference.between("shop.py", nested, "def run():\n    a()\n    return 2\n")
    assert causes(difference, 0) == ()


def test_of_many_changes_those_are_told_that_the_failure_names(tmp_path):
    before = "class Retry:\n    def __init__(self, total=10, methods=None, status=None, wait=1):\n        pass\n"
    after = "class Retry:\n    def __init__(self, total=5, status=(), wait=2, most=3):\n        pass\n"
    edits = edits_of(tmp_path, {"shop/retry.py": before}, {"shop/retry.py": after})
    message = "Retry.__init__() got an unexpected keyword argument 'methods'"
    assert causes_of(edits, edits.all) == ()
    assert causes_of(edits, edits.all, message) == ("the parameter `methods` of `Retry.__init__` was removed",)
    assert causes_of(edits, edits.all, "another message") == ()
