"""The runs that prove a culprit of several packages are used again."""

from __future__ import annotations

from planted import BROKEN, levels


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
    assert found["region"]["proved"]
    assert answer["culprit_probes"] < 9  # with two runs more for the traces; one that is nearly done may end, too
