"""What a culprit needs in the older release: found in its own file, and no other culprit needs less."""

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


BOXES = """from shop.rates import AFTER, BEFORE


class Box:
    value = 1


def step(box):
    kept = box.value{step}
    box.value = kept


class Loop:
    def total(self, boxes):
{total}


def run():
    box = Box()
    step(box)
    found = Loop().total([box])
    if found > 2:
        raise RuntimeError("the step is broken")
"""
OLDER_TOTAL = """        found = 0
        for box in boxes:
            found += box.value
        return found / BEFORE"""
PARTS = range(9)
NEWER_TOTAL = "\n".join(
    (
        "        found = 0.0",
        *(f"        found += self.part_{n}(boxes)" for n in PARTS),
        "        return found * AFTER",
        *(f"\n    def part_{n}(self, boxes):\n        return boxes[0].value / {len(PARTS)}" for n in PARTS),
    )
)


def test_a_line_that_needs_nothing_is_named_before_a_block_that_needs_many(plant: Planted) -> None:
    """Either alone removes the bug, but brought into the older release, the block needs nine new methods."""
    for version, rates, step, total in (
        ("1.0", "BEFORE, AFTER = 1, 4\n", "", OLDER_TOTAL),
        ("1.1", "BEFORE, AFTER = 4, 1\n", "\n    kept *= 4", NEWER_TOTAL),
    ):
        text = BOXES.format(step=step, total=total)
        plant.add("shop", version, {"shop/__init__.py": "", "shop/rates.py": rates, "shop/boxes.py": text})
    found = levels(plant.answer(body="from shop.boxes import run\n\nrun()\n"))["region"]
    assert [region["function"] for region in found["regions"]] == ["step"]
    assert proved(found)
    assert not found["needs"]
