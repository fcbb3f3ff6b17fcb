"""What a file can't be run without, as far as its text tells."""

from __future__ import annotations

import pytest

from harness.culprit.mentions import lacked, mentioned, names_from

FILES = ("shop/__init__.py", "shop/core.py", "shop/sub/__init__.py", "shop/sub/deep.py", "shop/data.json", "till.py")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import till", {"till.py"}),
        ("import shop.sub.deep", {"shop/__init__.py", "shop/sub/__init__.py", "shop/sub/deep.py"}),
        ("from shop.sub import deep", {"shop/__init__.py", "shop/sub/__init__.py", "shop/sub/deep.py"}),
        ("from . import core", {"shop/__init__.py", "shop/core.py"}),
        ("from .sub.deep import x", {"shop/__init__.py", "shop/sub/__init__.py", "shop/sub/deep.py"}),
        ("from .core import x", {"shop/__init__.py", "shop/core.py"}),
        ("def f():\n    from .core import x", {"shop/__init__.py", "shop/core.py"}),
        ("open(folder / 'data.json')", {"shop/data.json"}),
        ("x = core", set()),
        ("def broken(:", set()),
    ],
)
def test_imports_and_names_in_strings_count(text, expected):
    assert mentioned("shop/user.py", text.encode(), FILES) == expected


def test_an_import_of_the_folder_above_is_followed():
    assert "shop/core.py" in mentioned("shop/sub/deep.py", b"from ..core import x", FILES)
    assert "shop/core.py" in mentioned("shop/sub/__init__.py", b"from .. import core", FILES)


NEWER = {
    "a.py": b"from b import new\nfrom same import old\nimport fresh",
    "b.py": b"from c import deep\nnew = deep",
    "c.py": b"import a\ndeep = 1",
    "same.py": b"old = 2",
    "fresh.py": b"",
    "other.py": b"from b import new",
}
OLDER = {"a.py": b"", "b.py": b"renewed = 1", "c.py": b"", "same.py": b"old = 1", "other.py": b""}


def test_what_the_older_side_lacks_is_followed_to_the_end():
    """What is there under the name that is asked for is not lacked, however it changed."""
    assert lacked(["a.py"], NEWER, OLDER.get, NEWER.get) == {"b.py", "c.py", "fresh.py"}
    assert lacked(["c.py"], NEWER, OLDER.get, NEWER.get) == frozenset()


def test_what_is_not_there_or_no_python_lacks_nothing():
    assert lacked(["gone.py"], ["b.py"], lambda _: None, lambda _: None) == frozenset()
    assert names_from("a.py", b"def broken(:", "b.py") == frozenset()


def test_a_module_of_a_package_is_not_lacked_by_the_package():
    newer = {
        "shop/a.py": b"from shop import core\nfrom shop.core import x",
        "shop/__init__.py": b"new",
        "shop/core.py": b"x",
    }
    older = {"shop/a.py": b"", "shop/__init__.py": b"old", "shop/core.py": b"x = 0"}
    assert lacked(["shop/a.py"], newer, older.get, newer.get) == frozenset()
    assert lacked(["shop/a.py"], newer, {**older, "shop/core.py": None}.get, newer.get) >= {"shop/core.py"}
