"""A package with compiled files that has to move along with the culprit: the culprit's own file is still found."""

from __future__ import annotations

from planted import Planted, Raw, levels, proved

NEEDS = """from importlib.metadata import version

if not version("till").startswith({0!r}):
    raise ImportError("shop needs till {0}")
"""
INIT = "import shop.needs\nfrom shop.step import run\n"
STEP = 'def run():\n    """Take the step."""\n    return {0}\n'
BROKEN = 'def run():\n    """Take the step."""\n    raise RuntimeError("the step is broken")\n'


def test_the_file_is_found_beside_a_compiled_package_that_moves_along(plant: Planted) -> None:
    """Neither release of shop runs with the other's till, which is compiled and harmless."""
    for version in ("1.0", "2.0"):
        plant.add(
            "till",
            version,
            {"till/__init__.py": f"COINS = {version}\n", "till/fast.so": Raw(version.encode() * 64)},
        )
    for version, till, step in (("1.0", "1.", STEP.format(1)), ("1.1", "2.", BROKEN)):
        files = {
            "shop/__init__.py": INIT,
            "shop/needs.py": NEEDS.format(till),
            "shop/step.py": step,
            **{f"shop/h{number}.py": f"X = {version}\n" for number in range(5)},
        }
        plant.add("shop", version, files, requires=(f"till=={till}*",))
    found = levels(plant.answer("--good", "1.0", "--bad", "1.1"))
    assert found["file"]["files"] == ["shop/step.py"]
    assert proved(found["file"])
