"""The package level and the releases of the culprit: one of many, two together, tied and removed packages."""

from __future__ import annotations

import pytest
from planted import BROKEN, levels, proved

LIBRARIES = [f"lib{n:02}" for n in range(1, 13)]
IMPORTS = "".join(f"import {name}\n" for name in LIBRARIES)
CALLS = "".join(f"    {name}.work()\n" for name in LIBRARIES)
WORKS = "def work():\n    return 1\n"
FAILS = f"def work():\n    {BROKEN}\n"


@pytest.mark.parametrize(("below", "as_of"), [("", "era"), (",<{}", "none")], ids=["loose", "tied"])
def test_one_of_twelve_packages_that_changed_with_the_release(plant, below, as_of):
    shop = {"shop.py": f"{IMPORTS}\ndef run():\n{CALLS}"}
    for version in (1, 2):
        for name in LIBRARIES:
            source = FAILS if version == 2 and name == "lib07" else WORKS.replace("1", str(version))
            plant.add(name, f"{version}.0", {f"{name}.py": source})
        requires = tuple(f"{name}>={version}.0{below.format(version + 1)}" for name in LIBRARIES)
        plant.add("shop", f"1.{version - 1}", shop, requires)
    plant.add("shop", "1.2", {**shop, "later.py": ""}, requires)
    answer = plant.answer("--good", "1.0", "--bad", "1.1", "--as-of", as_of)
    package = levels(answer)["package"]
    assert package["packages"] == ["lib07 1.0 -> 2.0"]
    assert proved(package)
    assert package["candidates"] == 13
    assert package["notes"] == []  # the subject moved no further than to the release that is asked about
    assert levels(answer)["region"]["files"] == ["lib07.py"]
    users, _, culprit = answer["sentence"].partition("culprit is ")
    assert "shop 1.1" in users
    assert "lib07" not in users
    assert culprit.startswith("lib07 2.0")


def _pair(plant, run: str, tied: bool = True) -> None:
    for version in (1, 2):
        ends = f",<{version + 1}" if tied else ""
        plant.add("left", f"{version}.0", {"left.py": f"NEW = {version == 2}\n"})
        plant.add("right", f"{version}.0", {"right.py": f"NEW = {version == 2}\n"})
        plant.add("other", f"{version}.0", {"other.py": f"NEW = {version == 2}\n"})
        requires = tuple(f"{name}>={version}.0{ends}" for name in ("left", "right", "other"))
        plant.add("shop", f"1.{version - 1}", {"shop.py": f"import left, right, other\n\ndef run():\n{run}"}, requires)


def test_two_packages_that_break_it_only_together(plant):
    _pair(plant, f"    if left.NEW and right.NEW:\n        {BROKEN}\n")
    answer = plant.answer()
    package = levels(answer)["package"]
    assert package["packages"] == ["left 1.0 -> 2.0", "right 1.0 -> 2.0"]
    assert proved(package)
    assert levels(answer)["file"]["files"] == ["left.py", "right.py"]
    assert levels(answer)["file"]["proved"]


def test_two_packages_that_each_break_it_alone(plant):
    _pair(plant, f"    if left.NEW or right.NEW:\n        {BROKEN}\n")
    package = levels(plant.answer("--good", "1.0", "--bad", "1.1", "--depth", "package"))["package"]
    assert package["packages"] == ["left 1.0 -> 2.0", "right 1.0 -> 2.0"]
    assert proved(package)
    assert any("left" in note and "right" in note and "both" in note for note in package["notes"])


def test_a_package_that_needs_a_newer_dependency(plant):
    """The change in the subject is the culprit; its new release needs a function of the newer library."""
    plant.add("tool", "1.0", {"tool.py": "def old():\n    return 1\n"})
    plant.add("shop", "1.0", {"shop.py": "import tool\n\ndef run():\n    return 1\n"}, ("tool<2",))
    plant.add("tool", "2.0", {"tool.py": "def old():\n    return 1\n\ndef new():\n    return 2\n"})
    plant.add(
        "shop", "1.1", {"shop.py": f"from tool import new\n\ndef run():\n    new()\n    {BROKEN}\n"}, ("tool>=2",)
    )
    package = levels(plant.answer())["package"]
    assert package["packages"] == ["shop 1.0 -> 1.1"]
    assert proved(package)
    assert "tool changed, which it can't run without" in package["proofs"][1]["sentence"]


def test_two_packages_that_need_each_other_and_one_that_only_the_older_needs(plant):
    """What could not run in one direction is not tried in the other."""
    plant.add("web", "1.0", {"web.py": ""})
    plant.add("spare", "1.0", {"spare.py": "A = 1\n"})
    plant.add("hub", "1.0", {"hub.py": "import web\n\ndef old():\n    return 1\n"}, ("web",))
    plant.add("shop", "1.0", {"shop.py": "from hub import old\n\ndef run():\n    old()\n"}, ("hub<2", "spare<2"))
    plant.add("spare", "2.0", {"spare.py": "A = 2\n"})
    plant.add("hub", "2.0", {"hub.py": "def new():\n    return 2\n"})
    code = {"shop.py": f"from hub import new\n\ndef run():\n    new()\n    {BROKEN}\n"}
    plant.add("shop", "1.1", code, ("hub>=2", "spare>=2"))
    package = levels(plant.answer("--depth", "package"))["package"]
    assert package["packages"] == ["hub 1.0 -> 2.0", "shop 1.0 -> 1.1"]
    assert proved(package)
    assert "and with web, which it can't run without" in package["proofs"][0]["sentence"]


CODE = {"shop.py": "import tool\n\ndef run():\n    return tool.work()\n"}


def test_a_change_made_by_the_resolver_is_bisected_over_the_dependency(plant):
    for number in range(8):
        source = FAILS if number >= 5 else WORKS.replace("1", str(number))
        plant.add("tool", f"1.{number}", {"tool.py": source})
    plant.add("shop", "1.0", CODE, ("tool==1.1",))
    plant.add("shop", "1.1", CODE, ("tool==1.7",))
    answer = plant.answer()
    found = levels(answer)
    assert found["package"]["packages"] == ["tool 1.4 -> 1.5"]
    assert found["package"]["proved"]
    assert (found["region"]["files"], found["region"]["proved"]) == (["tool.py"], True)
    assert plant.answer()["culprit_probes"] == 0


def test_a_downgraded_dependency(plant):
    for number in range(6):
        plant.add("tool", f"1.{number}", {"tool.py": FAILS if number <= 2 else WORKS.replace("1", str(number))})
    plant.add("shop", "1.0", CODE, ("tool==1.5",))
    plant.add("shop", "1.1", CODE, ("tool==1.0",))
    package = levels(plant.answer())["package"]
    assert package["packages"] == ["tool 1.3 -> 1.2"]
    assert package["proved"]


def test_a_package_that_is_no_longer_installed(plant):
    code = f"def run():\n    try:\n        import extra\n    except ImportError:\n        {BROKEN}\n"
    plant.add("extra", "1.0", {"extra.py": ""})
    plant.add("shop", "1.0", {"shop.py": code}, ("extra",))
    plant.add("shop", "1.1", {"shop.py": code})
    answer = plant.answer()
    package = levels(answer)["package"]
    assert package["packages"] == ["extra 1.0 -> (absent)"]
    assert proved(package)
    assert "extra (removed)" in answer["sentence"]


def test_a_newly_installed_package(plant):
    code = f"def run():\n    try:\n        import extra\n    except ImportError:\n        return\n    {BROKEN}\n"
    plant.add("extra", "1.0", {"extra.py": ""})
    plant.add("shop", "1.0", {"shop.py": code})
    plant.add("shop", "1.1", {"shop.py": code}, ("extra",))
    package = levels(plant.answer())["package"]
    assert package["packages"] == ["extra (absent) -> 1.0"]
    assert proved(package)


def test_the_runs_that_prove_two_packages_are_traced_for_their_lines(plant):
    """Lines are searched between the same two locks, so neither is run once more for its trace."""
    plant.add("hub", "1.0", {"hub.py": "SIZE = 1\n\ndef old():\n    return SIZE\n"})
    plant.add("shop", "1.0", {"shop.py": "from hub import old\n\ndef run():\n    old()\n"}, ("hub<2",))
    plant.add("hub", "2.0", {"hub.py": "SIZE = 2\n\ndef new():\n    return SIZE\n"})
    code = {"shop.py": f"from hub import new\n\ndef run():\n    new()\n    {BROKEN}\n"}
    plant.add("shop", "1.1", code, ("hub>=2",))
    answer = plant.answer()
    found = levels(answer)
    assert found["package"]["packages"] == ["hub 1.0 -> 2.0", "shop 1.0 -> 1.1"]
    assert proved(found["package"])
    assert found["region"]["proved"]
    assert answer["culprit_probes"] < 9  # with two runs more for the traces; one that is nearly done may end, too
