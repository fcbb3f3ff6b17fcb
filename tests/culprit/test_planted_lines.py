"""One wrong line among harmless refactorings: only that line is named."""

from __future__ import annotations

import pytest
from planted import levels, proved

PRICES = '''"""Prices."""

from shop.tools import rounded, total_of


def discount(amount, rate):
    cut = amount * rate
    return amount - cut


def price(items, rate):
    amount = total_of(items)
    left = discount(amount, rate)
    return rounded(left)


def label(text):
    return text.upper()
'''
TOOLS = '''"""Tools."""


def total_of(items):
    found = 0
    for item in items:
        found = found + item
    return found


def rounded(value):
    return round(value, 2)
'''
CHECK = """import shop

if shop.price([1, 2, 3], 0.5) != 3.0:
    raise RuntimeError("the step is broken")
"""
INIT = "from shop.prices import label, price\n"


def _tree(prices=PRICES, tools=TOOLS, **more):
    return {"shop/__init__.py": INIT, "shop/prices.py": prices, "shop/tools.py": tools, **more}


def _renamed_helper():
    """The helper and the lines that call it have another name."""
    return _tree(
        PRICES.replace("total_of", "sum_of").replace("amount - cut", "amount + cut"),
        TOOLS.replace("total_of", "sum_of"),
    ), ("shop/prices.py", 8)


def _renamed_local():
    """A local name changed in the wrong line and in the lines around it."""
    return _tree(tools=TOOLS.replace("found = found + item", "found = found - item").replace("found", "current")), (
        "shop/tools.py",
        7,
    )


def _added_parameter():
    """A new parameter and the caller that passes it; the wrong line is neither."""
    prices = PRICES.replace("rate):\n    cut", "rate, *, mode=None):\n    cut").replace(
        "discount(amount, rate)", "discount(amount, rate, mode=1)"
    )
    return _tree(prices.replace("amount * rate", "amount / rate")), ("shop/prices.py", 7)


def _another_arity():
    """A function returns a pair, which its caller unpacks; the wrong line is between them."""
    tools = TOOLS.replace("return found", "return found, len(items)").replace("found = 0", "found = 1")
    return _tree(PRICES.replace("amount = total_of", "amount, _ = total_of"), tools), ("shop/tools.py", 5)


def _moved_to_another_file():
    """The function with the wrong line is in a new file."""
    first, last = PRICES.index("def discount"), PRICES.index("def price")
    moved = PRICES[first:last].rstrip().replace("amount - cut", "amount + cut") + "\n"
    prices = PRICES[:first].rstrip() + "\nfrom shop.cuts import discount\n\n\n" + PRICES[last:]
    return _tree(prices, **{"shop/cuts.py": f'"""Cuts."""\n\n\n{moved}'}), ("shop/cuts.py", 6)


def _moved_in_its_file():
    """The function with the wrong line moved within its file."""
    first, last = PRICES.index("def discount"), PRICES.index("def price")
    moved = PRICES[first:last].rstrip().replace("amount - cut", "amount + cut") + "\n"
    return _tree(f"{PRICES[:first]}{PRICES[last:]}\n\n{moved}"), ("shop/prices.py", 18)


def _renamed_file():
    """The file and the import of it have another name."""
    tree = _tree(PRICES.replace("shop.tools", "shop.toolbox"))
    del tree["shop/tools.py"]
    tree["shop/toolbox.py"] = TOOLS.replace("found + item", "found - item")
    return tree, ("shop/toolbox.py", 7)


def _moved_behind_a_stub():
    """The file moved, and another one that imports its names is where it was."""
    tree = _tree()
    tree["shop/tools.py"] = "from ._tools import *\n"
    tree["shop/_tools.py"] = TOOLS.replace("found + item", "found - item")
    return tree, ("shop/_tools.py", 7)


@pytest.mark.parametrize(
    "planted",
    [
        _renamed_helper,
        _renamed_local,
        _added_parameter,
        _another_arity,
        _moved_to_another_file,
        _moved_in_its_file,
        _renamed_file,
        _moved_behind_a_stub,
    ],
)
def test_the_wrong_line_is_named_and_nothing_else(plant, planted):
    after, (path, line) = planted()
    plant.shops(_tree(), after)
    answer = plant.answer(body=CHECK)
    found = levels(answer)["region"]
    (region,) = found["regions"]
    assert region["file"] == path
    assert region["after"][0] <= line <= region["after"][1] <= region["after"][0] + 1
    assert proved(found)
    assert answer["culprit_probes"] <= 9


CHOSEN = """def pair(items):
    return items


def chosen(items, wanted):
    if wanted is None:
        found = pair(items)
    elif items and wanted:
        found = pair(items[:wanted])
    else:
        found = pair([0])
    return found
"""


def test_a_keyword_is_not_taken_for_a_renamed_name(plant):
    """The wrong line is amid lines that take a pair apart, and `and` became `or` in it."""
    paired = CHOSEN.replace("return items", "return items, None").replace("found = pair", "found, _ = pair")
    plant.shops({"shop.py": CHOSEN}, {"shop.py": paired.replace("items and", "items or")})
    check = "import shop\n\nif shop.chosen([1, 2], 0) != [0]:\n    raise RuntimeError('the step is broken')\n"
    (region,) = levels(plant.answer(body=check))["region"]["regions"]
    assert region["after"] == [8, 8]


def test_a_mixture_that_fails_for_a_reason_of_its_own_is_not_taken_for_the_bug(plant):
    """The signature says no more than TypeError, which a half of the change raises, too: with another message."""
    texts = """\
from shop.marks import mark


def plain(text):
    used = mark()
    return text.replace(",", used)


def price(value, form):
    used = mark()
    number = (form % value).replace(".", used)
    return number
"""
    marks = """\
def mark():
    return "."
"""
    newer = texts.replace("used = mark()", "used, _ = mark()").replace("form % value", "form + value")
    init = "from shop.texts import plain, price\n"
    before = {"shop/__init__.py": init, "shop/texts.py": texts, "shop/marks.py": marks}
    after = {**before, "shop/texts.py": newer, "shop/marks.py": marks.replace('"."', '".", None')}
    plant.shops(before, after)
    answer = plant.answer(
        body="import shop\n\nshop.plain('a,b')\nshop.price(1.5, '%.1f')\n",
        signed='[tool.harness.signature]\nexception = "TypeError"\n',
    )
    found = levels(answer)["region"]
    (region,) = found["regions"]
    assert (region["file"], region["after"]) == ("shop/texts.py", [11, 11])
    assert all(proof["verdict"] == proof["expected"] for proof in found["proofs"])


def test_when_time_runs_out_it_says_how_to_resume(plant):
    plant.shops(_tree(), _renamed_helper()[0])
    answer = plant.answer("--good", "1.0", "--bad", "1.1", "--time", "0.001s", body=CHECK)
    assert answer["culprit"][-1]["level"] == "package"
    assert "--time" in " ".join(answer["culprit"][-1]["notes"])
    assert answer["status"] == "found"


def test_python_lines_are_found_though_no_mixture_with_compiled_files_runs(plant):
    """Each file refuses to work with another release."""
    files = {}
    for version, body in (("1.0", "return 1"), ("1.1", "raise RuntimeError('the step is broken')")):
        check = f"from pathlib import Path\nassert '{version}' in Path(__file__).with_name('fast.so').read_text()\n"
        parts = "".join(f"from shop import part{n}\nassert part{n}.V == '{version}'\n" for n in range(8))
        files[version] = {
            "shop/__init__.py": f"{check}{parts}\ndef run():\n    {body}\n",
            "shop/fast.so": f"compiled for {version}",
            **{f"shop/part{n}.py": f"{check}V = '{version}'\nN = {n}\n" for n in range(8)},
        }
    plant.shops(files["1.0"], files["1.1"])
    found = levels(plant.answer())["region"]
    assert [region["function"] for region in found["regions"]] == ["run"]
