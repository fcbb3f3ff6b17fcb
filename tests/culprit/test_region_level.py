"""The region level: one of twelve regions although most mixtures fail to import, two together, and fixes."""

from __future__ import annotations

from planted import BROKEN, levels, proved, told


def _module(*, new: bool, bug: bool) -> str:
    """A module with 12 changed regions: an import and its use, a renamed helper and its callers, and more."""
    helper, clock = ("renewed", "monotonic") if new else ("helper", "time")
    number = 2 if new else 1
    return f'''"""A module, text {number}."""

from time import {clock}

LIMIT = {number}


def {helper}(value):
    return value + LIMIT


def first(value):
    return {helper}(value)


def second(value):
    started = {clock}()
    return value, started


class Counter:
    step = {number}

    def up(self, value):
        return value + self.step

    def down(self, value):
        return value - {number}


def third(value):
    return {helper}(value) - {number}


def fourth(value):
    {BROKEN if bug else f"return value + {number}"}


def fifth(value):
    return [value] * {number}


def run():
    counter = Counter()
    value = first(counter.up(counter.down(1)))
    second(value)
    fifth(third(value))
    fourth(value)
    return {helper}(value)
'''


def test_one_of_twelve_regions_is_found_though_many_mixtures_fail_to_import(plant):
    plant.shops(
        {"shop.py": _module(new=False, bug=False)},
        {"shop.py": _module(new=True, bug=True)},
    )
    answer = plant.answer()
    found = levels(answer)["region"]
    assert found["candidates"] >= 12
    assert [region["function"] for region in found["regions"]] == ["fourth"]
    assert BROKEN in found["regions"][0]["diff"]
    assert proved(found)
    assert found["runs"] <= 8
    assert told(answer, "Culprit").endswith(" changed fourth (shop.py, line 36)")
    assert plant.answer()["culprit_probes"] == 0


SAMPLE = f"""
def left():
    return {{left}}


def middle():
    return {{number}}


def right():
    return {{right}}


def run():
    middle()
    if {{condition}}:
        {BROKEN}
"""


def _sample(condition: str, *, new: bool) -> dict[str, str]:
    return {"shop.py": SAMPLE.format(left=new, right=new, number=int(new), condition=condition)}


def test_two_regions_that_must_both_be_reverted(plant):
    condition = "left() or right()"
    plant.shops(_sample(condition, new=False), _sample(condition, new=True))
    found = levels(plant.answer())["region"]
    assert [region["function"] for region in found["regions"]] == ["left", "right"]
    assert proved(found)


def test_the_first_diverging_of_two_interacting_regions_is_named_with_the_other(
    plant,
):
    condition = "left() and right()"
    plant.shops(_sample(condition, new=False), _sample(condition, new=True))
    answer = plant.answer()
    found = levels(answer)["region"]
    assert [region["function"] for region in found["regions"]] == ["left"]
    assert [region["function"] for region in found["needs"]] == ["right"]
    assert proved(found)
    assert [region["after"] for region in found["needs"]] == [[11, 11]]


def test_an_import_and_its_use_are_reverted_together(plant):
    """With only the use reverted, its name is not imported any more."""
    old = "from json import dumps\n\n\ndef unused():\n    return 1\n\n\ndef run():\n    return dumps([1])\n"
    new = f"from json import loads\n\n\ndef unused():\n    return 2\n\n\ndef run():\n    {BROKEN}\n    loads('[1]')\n"
    plant.shops({"shop.py": old}, {"shop.py": new})
    found = levels(plant.answer())["region"]
    assert [region["function"] for region in found["regions"]] == ["", "run"]
    assert proved(found)


def test_regions_in_two_files_that_depend_on_each_other(plant):
    core = "from shop import left, right\n\ndef run():\n    if left.work() or right.work():\n        " + BROKEN + "\n"
    releases = [
        {
            "shop/__init__.py": core,
            **{
                f"shop/{name}.py": f"def other():\n    return {number}\n\n\ndef work():\n    return {number}\n"
                for name in ("left", "right")
            },
        }
        for number in (0, 1)
    ]
    plant.shops(*releases)
    answer = plant.answer()
    found = levels(answer)["region"]
    assert [(region["file"], region["function"]) for region in found["regions"]] == [
        ("shop/left.py", "work"),
        ("shop/right.py", "work"),
    ]
    assert proved(found)
    assert "work (shop/left.py, line 6) and work (shop/right.py, line 6)" in told(answer, "Culprit")


def test_three_lanes_name_the_same_region(plant):
    plant.shops({"shop.py": _module(new=False, bug=False)}, {"shop.py": _module(new=True, bug=True)})
    found = levels(plant.answer("--good", "1.0", "--bad", "1.1", "--lanes", "3"))["region"]
    assert [region["function"] for region in found["regions"]] == ["fourth"]
    assert proved(found)


def _called(*, new: bool) -> str:
    """A call that passes a mask by position, and by keyword in the older module, which has one parameter more."""
    head, passed = ("", "mask") if new else (", head=None", "mask=mask, head=head")
    return f"""def layer(value, mask=None{head}):
    return value


def checked(function, *given, **named):
    if len(given) > 1:
        {BROKEN}
    return function(*given, **named)


def forward(value, mask{head}):
    return checked(
        layer, value, {passed},
    )


def run():
    return forward(1, 2)
"""


def test_the_call_is_told_from_the_parameters_that_it_needs_when_reverted(plant):
    """Reverted, the call passes a parameter that the newer functions lack; in the older module it works alone."""
    plant.shops({"shop.py": _called(new=False)}, {"shop.py": _called(new=True)})
    found = levels(plant.answer())["region"]
    assert proved(found)
    assert [region["function"] for region in found["regions"]] == ["forward"]
    assert "value, mask," in found["regions"][0]["diff"]
    assert found["candidates"] == 3
