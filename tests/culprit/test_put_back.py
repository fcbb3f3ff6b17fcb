"""A removed name is answered by putting it back, in one run, without mixing files."""

from __future__ import annotations

from planted import Planted, levels, proved, told

from harness.culprit.put_back import restored

GONE = '\n[tool.harness.signature]\nexception = "{0}"\nmessage = "quote"\n'
NOISE = {f"shop/h{number}.py": "X = {0}\n" for number in range(4)}
HELPER = "_SAFE = 'abc'\n\n\ndef quote(text):\n    return text + _SAFE\n\n\n"
KEPT = "def unquote(text):\n    return text\n"


def _add(
    plant: Planted,
    older: str,
    newer: str,
    inits: tuple[str, str] = ("from shop.urls import *\n",) * 2,
    more: tuple[dict[str, str], dict[str, str]] = ({}, {}),
) -> None:
    for version, text, first, other in (("1.0", older, inits[0], more[0]), ("1.1", newer, inits[1], more[1])):
        noise = {path: content.format(version) for path, content in NOISE.items()}
        noise |= {"shop/old.py": "def tag(function):\n    return function\n"} if version == "1.0" else {}
        plant.add("shop", version, {"shop/__init__.py": first, "shop/urls.py": text, **noise, **other})


def test_a_removed_function_is_put_back_with_what_it_needs(plant: Planted) -> None:
    """Both directions are proved by a run each, and the answer names what was removed from where."""
    _add(plant, HELPER + KEPT, KEPT)
    answer = plant.answer(body="from shop.urls import quote\n\nquote('a')\n", signed=GONE.format("ImportError"))
    found = levels(answer)["file"]
    assert found["causes"] == ["`quote` was removed from `shop.urls`"]
    assert found["files"] == ["shop/urls.py"]
    assert proved(found)
    assert found["runs"] == 2
    assert "quote" in told(answer, "Culprit")


def test_a_function_of_a_removed_module_is_put_back_without_the_rest_of_it(plant: Planted) -> None:
    """The rest of its module needs another module, which is gone, too."""
    plant.add(
        "shop",
        "1.0",
        {
            "shop/__init__.py": "from shop.urls import quote\n",
            "shop/urls.py": f"from shop.old import tag\n\n{HELPER}{KEPT}",
            "shop/old.py": "def tag(function):\n    return function\n",
        },
    )
    plant.add("shop", "1.1", {"shop/__init__.py": "X = 1\n", "shop/prices.py": "X = 2\n"})
    answer = plant.answer(body="import shop\n\nshop.quote('a')\n", signed=GONE.format("AttributeError"))
    found = levels(answer)["file"]
    assert found["causes"] == ["`quote` was removed from `shop`"]
    assert proved(found)
    assert found["runs"] == 2


def test_a_name_that_a_modules_own_getattr_refuses(plant: Planted) -> None:
    """The release raises an exception of its own for a removed name."""
    refuses = (
        "GONE = {'quote': 'use unquote'}\n\n\ndef __getattr__(name):\n    if name in GONE:\n"
        "        raise ValueError(f'`shop.{name}` was removed: {GONE[name]}')\n    raise AttributeError(name)\n"
    )
    _add(plant, HELPER + KEPT, KEPT, inits=("from shop.urls import quote\n", refuses))
    answer = plant.answer(body="import shop\n\nshop.quote('a')\n", signed=GONE.format("ValueError"))
    found = levels(answer)["file"]
    assert found["causes"] == ["`quote` was removed from `shop`"]
    assert found["proofs"][0]["verdict"] == "good"


def test_a_removed_method_is_put_back_in_its_class(plant: Planted) -> None:
    """A method goes into the class, not to the end of the module."""
    kept = "class Cart:\n    def pay(self):\n        return 1\n"
    _add(plant, f"{kept}\n    def quote(self):\n        return 2\n", f"{kept}\n\nX = 1\n")
    body = "from shop.urls import Cart\n\nCart().quote()\n"
    found = levels(plant.answer(body=body, signed=GONE.format("AttributeError")))["file"]
    assert found["causes"] == ["`quote` was removed from `shop.urls.Cart`"]
    assert proved(found)


def test_a_stand_in_for_a_method_whose_definition_cannot_run_any_more(plant: Planted) -> None:
    """Its decorator is gone from another module: a stand-in shows that the failure is about the name."""
    kept = "class Cart:\n    def pay(self):\n        return 1\n"
    _add(plant, f"from shop.old import tag\n\n\n{kept}\n    @tag\n    def quote(self):\n        return 2\n", kept)
    body = "from shop.urls import Cart\n\nCart().quote()\n"
    found = levels(plant.answer(body=body, signed=GONE.format("AttributeError")))["file"]
    assert found["causes"] == ["`quote` was removed from `shop.urls.Cart`"]
    assert proved(found)


def test_a_class_with_a_namesake(plant: Planted) -> None:
    """Two classes of this name lost the method; the one that is in use is found by a run."""
    kept = "class Cart:\n    def pay(self):\n        return 1\n"
    older = f"{kept}\n    def quote(self):\n        return 2\n"
    _add(plant, older, kept, more=({"shop/early.py": older}, {"shop/early.py": f"{kept}\n\nX = 1\n"}))
    body = "from shop.urls import Cart\n\nCart().quote()\n"
    found = levels(plant.answer(body=body, signed=GONE.format("AttributeError")))["file"]
    assert found["causes"] == ["`quote` was removed from `shop.urls.Cart`"]
    assert proved(found)


def test_the_next_failure_behind_a_removed_name(plant: Planted) -> None:
    """What the old method calls is gone too: the name is still the answer, and no files are mixed."""
    kept = "class Cart:\n    def pay(self):\n        return 1\n"
    older = f"{kept}\n    def quote(self):\n        return self.total.sum\n\n"
    older += "    @property\n    def total(self):\n        return self\n"
    _add(plant, older + "\n    sum = 1\n", f"{kept}\n\nX = 1\n")
    body = "from shop.urls import Cart\n\nCart().quote()\n"
    (found,) = plant.answer(body=body, signed=GONE.format("AttributeError"))["culprit"]
    assert found["causes"] == ["`quote` was removed from `shop.urls.Cart`"]
    assert any("it fails differently: AttributeError" in note for note in found["notes"])


def test_what_is_put_back_has_only_what_the_newer_text_lacks() -> None:
    """The definition comes with the names that it needs, and without those that are still there."""
    old = "import os\n_SAFE = 1\n\n\ndef other():\n    pass\n\n\ndef quote():\n    return os, _SAFE\n"
    assert restored(("quote",), old, "import os\n") == (
        "import os\n\n_SAFE = 1\n\ndef quote():\n    return os, _SAFE\n"
    )
    assert restored(("Cart", "pay"), old, "import os\n") is None
    assert restored(("missing",), old, "import os\n") is None
