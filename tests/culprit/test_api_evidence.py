"""What the API of two releases says about a failure, found in real files without importing them."""

from __future__ import annotations

import zipfile

import pytest
from wheelhouse import Wheel

from harness.culprit.api_evidence import api_evidence
from harness.culprit.mentions import About, Mention, advice, mentions
from harness.model import RaisedException, StackFrame

OLD = {
    "shop/__init__.py": """
from .core import *
from .core import Basket
from shop import legacy
raise SystemExit("nobody may import this")
""",
    "shop/core.py": """
import warnings
__all__ = ["buy", "sell", "old_price", "Till", "order_items"]

def buy(what, count=1, *, gift=False): ...
def sell(what): ...

def old_price(what):
    warnings.warn("old_price is deprecated, use price_of instead", DeprecationWarning)

def order_items(): ...

class Counter:
    def append(self, what): ...

class Till(Counter):
    def __init__(self, size, colour="red"): ...

class Basket: ...
""",
    "shop/legacy.py": """
def __getattr__(name):
    if name == "lazy":
        return 3
    if name == "kept":
        return 4
""",
    "shop/counted.py": """
__all__ = []
__all__.extend(["lend_out"])

def lend_out():
    '''Lend something.

    .. deprecated:: 0.9
        ``lend_out`` will be removed. Please use `rent_out` instead.
    '''

def lend_in(): ...
""",
    "shop/gone.py": "number = 1\n",
    "shop/hidden.py": "number = 1\n",
    "shop/masked.py": "def twice(): ...\n",
    "shop/scales.py": "from ._fast import Scale\n",
    "shop/scales.pyi": """
import typing
from typing import overload

class _Measuring:
    @overload
    def weigh(self, what: int) -> int: ...
    @typing.overload
    def weigh(self, what: str) -> str: ...

class Scale(_Measuring): ...
""",
    "shop/stock.py": """
import warnings

def twice(): ...

def count_all():
    warnings.warn("count_all is deprecated. Use shop.count instead.", DeprecationWarning)
""",
    "shop/tests/__init__.py": "",
    "shop/tests/helpers.py": "def helper(count): ...\n",
}
NEW = {
    "shop/__init__.py": """
from .core import *
from shop import legacy
__gone__ = {"buy_all": "Use `shop.buy` for each of them."}
""",
    "shop/core.py": """
__all__ = ["buy", "sell", "Till", "ordered_items"]

def buy(what, amount=1, *, gift=False, where): ...
def sell(what): raise TypeError("the shop is closed on Sundays, come again")
def ordered_items(): ...

class Counter: ...

class Till(Counter):
    def __init__(self, size): ...
""",
    "shop/baskets.py": "class Basket: ...\n",
    "shop/_counted.py": "def lend_in(): ...\n",
    "shop/legacy.py": OLD["shop/legacy.py"].replace('"lazy"', '"other"'),
    "shop/new/gone.py": "number = 1\n",
    "shop/_vendor/hidden.py": "number = 1\n",
    "shop/masked.py": OLD["shop/masked.py"] + "def count_all(): ...\n",
    "shop/scales.py": "from ._fast import Scale\n",
    "shop/scales.pyi": "class _Measuring: ...\n\nclass Scale(_Measuring): ...\n",
    "shop/stock.py": "",
    "shop/new/__init__.py": "",
    "shop/tests/__init__.py": "",
    "shop/tests/helpers.py": "def helper(): ...\n",
}
OLD["shop/__init__.py"] += "def buy_all(): ...\n"


def installed(place, version, files, name="the-shop"):
    with zipfile.ZipFile(Wheel(name, version, files).write(place)) as wheel:
        wheel.extractall(place)
    return place


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    """Two installed releases of a package."""
    return [
        installed(tmp_path_factory.mktemp("release"), "1.0", OLD),
        installed(tmp_path_factory.mktemp("release"), "2.0", NEW),
    ]


def told(releases, name, message, package="the-shop", cause=None):
    raised = RaisedException(f"builtins.{name}", message, cause=cause)
    return api_evidence(raised, package, older=("1.0", releases[0]), newer=("2.0", releases[1]))


@pytest.mark.parametrize(
    ("error", "message", "kind", "name", "where", "words"),
    [
        ("AttributeError", "module 'shop' has no attribute 'old_price'", "removed-name", "shop.old_price",
         ("shop/core.py", 8), "use price_of instead"),
        ("ImportError", "cannot import name 'old_price' from 'shop.core' (/x/shop/core.py)", "removed-name",
         "shop.core.old_price", ("shop/core.py", 8), "use price_of instead"),
        ("AttributeError", "`sp.old_price` was removed in shop 2. Use `shop.price` instead.", "removed-name",
         "shop.old_price", ("shop/core.py", 8), "Use `shop.price` instead."),
        ("AttributeError", "module 'shop' has no attribute 'buy_all'", "removed-name", "shop.buy_all",
         ("shop/__init__.py", 6), "Use `shop.buy` for each of them."),
        ("ImportError", "cannot import name 'Basket' from 'shop' (unknown location)", "moved-name", "shop.Basket",
         ("shop/core.py", 19), "shop.baskets.Basket"),
        ("AttributeError", "module 'shop' has no attribute 'order_items'", "renamed-name", "shop.order_items",
         ("shop/core.py", 11), "shop.ordered_items"),
        ("AttributeError", "module 'shop.legacy' has no attribute 'lazy'", "removed-name", "shop.legacy.lazy",
         ("shop/legacy.py", 3), ""),
        ("ModuleNotFoundError", "No module named 'shop.gone'", "removed-module", "shop.gone", ("shop/gone.py", 1),
         "shop/new/gone.py"),
        ("AttributeError", "'Till' object has no attribute 'append'", "removed-name", "shop.core.Counter.append",
         ("shop/core.py", 14), ""),
        ("AttributeError", "`weigh` was removed from the Scale class in shop 2.0.", "removed-name",
         "shop.scales.Scale.weigh", ("shop/scales.pyi", 9), ""),
        ("TypeError", "Till.__init__() got an unexpected keyword argument 'colour'", "changed-parameters",
         "shop.core.Till.__init__", ("shop/core.py", 17), "colour is gone"),
        ("TypeError", "buy() got an unexpected keyword argument 'count'", "changed-parameters", "shop.core.buy",
         ("shop/core.py", 5), "count is gone"),
        ("TypeError", "buy() missing 1 required keyword-only argument: 'where'", "changed-parameters", "shop.core.buy",
         ("shop/core.py", 5), "where is new and required"),
        ("AttributeError", "module 'shop' has no attribute 'lend_out'", "removed-name", "shop.lend_out",
         ("shop/counted.py", 5), 'says: "``lend_out`` will be removed. Please use `rent_out` instead."'),
        ("TypeError", "the shop is closed on Sundays, come again", "new-message", "the-shop", ("shop/core.py", 5),
         "closed on Sundays"),
    ],
)  # fmt: skip
def test_the_fate_of_a_name_is_reported_with_its_old_location(releases, error, message, kind, name, where, words):
    (found,) = told(releases, error, message)
    assert (found.kind, found.name, (found.file, found.line)) == (kind, name, where)
    assert words in found.text
    assert "1.0" in found.text or kind == "new-message"
    gone = words.removesuffix(" is gone") if words.endswith(" is gone") else ""
    assert (found.did == f"removed the parameter {gone} of {name}") is bool(gone)


@pytest.mark.parametrize(
    ("error", "message", "kind", "there", "not_there"),
    [
        ("AttributeError", "module 'shop.stock' has no attribute 'count_all'", "removed-name",
         "Use shop.count instead", "shop.masked"),
        ("AttributeError", "module 'shop.stock' has no attribute 'twice'", "removed-name", "was removed",
         "shop.masked"),
        ("ModuleNotFoundError", "No module named 'shop.hidden'", "removed-module", "is gone in", "_vendor"),
    ],
)  # fmt: skip
def test_only_a_public_place_to_which_it_moved_is_a_destination(releases, error, message, kind, there, not_there):
    """The release's own advice counts more than a name that looks alike."""
    (found,) = told(releases, error, message)
    assert found.kind == kind
    assert there in found.text
    assert not_there not in found.text


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ("AttributeError", "module 'shop' has no attribute 'sell'"),  # both have it
        ("AttributeError", "module 'shop' has no attribute 'never_there'"),
        ("AttributeError", "module 'shop.legacy' has no attribute 'kept'"),  # both make it up
        ("AttributeError", "module 'other' has no attribute 'old_price'"),
        ("AttributeError", "'Basket' object has no attribute 'append'"),  # never was of that class
        ("TypeError", "buy() got an unexpected keyword argument 'gift'"),
        ("TypeError", "sell() takes 1 positional argument but 2 were given"),
        ("ModuleNotFoundError", "No module named 'shop.core'"),
        ("ModuleNotFoundError", "No module named 'shop'"),
        ("ValueError", "invalid literal for int() with base 10: 'x'"),
        ("KeyError", "'old_price'"),
        ("AttributeError", "module 'shop' has no attribute 'lend_in'"),  # only its module became private
    ],
)
def test_an_unchanged_api_gives_no_evidence(releases, error, message):
    assert told(releases, error, message) == ()


def test_a_function_used_only_in_tests_is_not_part_of_the_api(releases):
    assert told(releases, "TypeError", "helper() got an unexpected keyword argument 'count'") == ()


def test_a_name_in_the_cause_of_an_exception_counts(releases):
    cause = RaisedException("builtins.AttributeError", "module 'shop' has no attribute 'old_price'")
    (found,) = told(releases, "RuntimeError", "could not set up the shop", cause=cause)
    assert found.name == "shop.old_price"


def test_a_package_without_python_files_gives_no_evidence(releases, tmp_path):
    message = "module 'shop' has no attribute 'old_price'"
    assert told([tmp_path, releases[1]], "AttributeError", message) == ()
    compiled = installed(tmp_path, "2.0", {"shop.cpython-311-x86_64-linux-gnu.so": "\x7fELF"})
    assert told([releases[0], compiled], "AttributeError", message) == ()


def test_an_unparsable_source_is_ignored(releases, tmp_path):
    broken = installed(tmp_path, "2.0", {**NEW, "shop/sub.py": "old_price = = 3\n"})
    (found,) = told([releases[0], broken], "AttributeError", "module 'shop' has no attribute 'old_price'")
    assert found.name == "shop.old_price"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("module 'a.b' has no attribute 'c'", [Mention(About.NAME, "a.b.c")]),
        ("cannot import name 'c' from partially initialized module 'a.b' (x)", [Mention(About.NAME, "a.b.c")]),
        ("type object 'A' has no attribute 'b'", [Mention(About.MEMBER, "A.b")]),
        ("A.<locals>.f() got an unexpected keyword argument 'x'", [Mention(About.CALL, "A.f", "x")]),
        ("f() takes 2 positional arguments but 3 were given", [Mention(About.CALL, "f")]),
        ("f() takes from 1 to 2 positional arguments but 3 were given", [Mention(About.CALL, "f")]),
        ("`np.a` was removed in NumPy 2.0", [Mention(About.NAME, "np.a")]),
        ("'a.b' has been removed", [Mention(About.NAME, "a.b")]),
        ("a.b.c has been renamed to a.b.d", [Mention(About.NAME, "a.b.c")]),
        ("the file was removed", []),
        ("", []),
    ],
)
def test_the_names_in_a_message_are_found(message, expected):
    assert list(mentions(RaisedException("E", message))) == expected


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("error = metrics.error(len([1]), x, squared=False)", "error"),
        ("Till(squared=False)", "Till.__init__"),
        ("assert error(x) == squared", None),
    ],
)
def test_a_decorator_that_checks_arguments_leaves_their_function_to_the_call(line, name):
    """`inspect.Signature.bind` says only which argument it was."""
    frames = (
        StackFrame("script.py", 3, "<module>", text=line),
        StackFrame("shop/checks.py", 9, "checked", text="signature.bind(*given, **named)"),
    )
    raised = RaisedException("TypeError", "got an unexpected keyword argument 'squared'", (), frames)
    assert mentions(raised) == ((Mention(About.CALL, name, "squared"),) if name else ())


def test_a_modules_own_getattr_may_say_only_the_name() -> None:
    """The frame tells the module."""
    frames = (StackFrame("script.py", 3, "<module>"), StackFrame("shop/__init__.py", 9, "__getattr__"))
    assert mentions(RaisedException("AttributeError", "Basket", (), frames)) == (Mention(About.NAME, "shop.Basket"),)
    assert mentions(RaisedException("AttributeError", "Basket", (), frames[:1])) == ()


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("`np.a` was removed in the NumPy 2.0 release. Use `np.b` instead.", "Use `np.b` instead."),
        ("`a.B` has been moved to the `c` package. See https://d.", None),
        ("`np.a` was removed in the NumPy 2.0 release. It was old.", ""),
        ("Something else. Use a hammer.", ""),
    ],
)
def test_the_advice_in_a_message_follows_the_removal(message, expected):
    assert advice(RaisedException("E", message)) == (message if expected is None else expected)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("The `field` parameter is not available in version 2, please use the `info` parameter instead.",
         "Use the `info` parameter instead."),
        ("the shop is closed on Sundays; use the machine outside instead", "Use the machine outside instead."),
        ("the shop is closed on Sundays, come again", ""),
    ],
)  # fmt: skip
def test_a_new_message_that_says_what_to_use_instead_is_advice(tmp_path, message, expected):
    files = {"shop/__init__.py": f"def sell(): raise TypeError({message!r})\n"}
    places = [
        installed(tmp_path / version, version, inside, name="shop")
        for version, inside in (("1.0", {"shop/__init__.py": ""}), ("2.0", files))
    ]
    (found,) = told(places, "TypeError", message, package="shop")
    assert (found.kind, found.advice) == ("new-message", expected)
