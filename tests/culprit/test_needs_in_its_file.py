"""What a culprit needs in the older release is found in its own file."""

from __future__ import annotations

from planted import Planted, levels, proved

OLDER = """class Till:
    def __init__(self, name):
        self.name = name

    def close(self):
        return 1


class Shop:
    def open(self):
        till = Till("one")
        return till


def run():
    return Shop().open().close()
"""
NEWER = """class Till:
    def __init__(self, name, rules):
        self.name = name
        self.rules = rules

    def close(self):
        if self.rules["strict"]:
            raise RuntimeError("the step is broken")
        return 1


class Shop:
    def __init__(self):
        self.all = {"strict": True}

    def open(self):
        till = Till("one", self.all)
        return till


def run():
    return Shop().open().close()
"""


def test_a_culprit_with_what_it_needs_in_its_file_is_proved_both_ways(plant: Planted) -> None:
    """Reverting one condition is enough; in the older release it needs a parameter, an attribute and the call."""
    for version, text in (("1.0", OLDER), ("1.1", NEWER)):
        noise = {f"shop/h{number}.py": f"X = {version}\n" for number in range(8)}
        inits = "".join(f"import shop.h{number}\n" for number in range(8))
        plant.add("shop", version, {"shop/__init__.py": inits, "shop/step.py": text, **noise})
    body = "from shop.step import run\n\nrun()\n"
    found = levels(plant.answer(body=body))["region"]
    assert [region["function"] for region in found["regions"]] == ["Till.close"]
    assert proved(found)
    assert {region["function"] for region in found["needs"]} >= {"Till.__init__", "Shop.open"}
