"""Compiled parts: a cause in them is named as such, and a cause beside them is found."""

from __future__ import annotations

from planted import Planted, Raw, levels

INIT = """from pathlib import Path

from shop.step import run

if not Path(__file__).with_name("fast.so").read_bytes():
    raise RuntimeError("empty")
"""
READS = """from pathlib import Path


def run():
    fast = Path(__file__).with_name("fast.so").read_bytes()
    if fast.startswith(b"2"):
        raise RuntimeError("the step is broken")
"""


def _noise(version: str) -> dict[str, str]:
    return {f"shop/h{number}.py": f"X = {version}\n" for number in range(4)}


def test_a_cause_in_the_compiled_part_is_named(plant: Planted) -> None:
    """With all Python files put back it fails alike, and the compiled file alone makes the difference."""
    for version, fast in (("1.0", b"1" * 64), ("1.1", b"2" * 64)):
        step = READS + f"\n\nVERSION = {version}\n"
        plant.add(
            "shop",
            version,
            {"shop/__init__.py": INIT, "shop/step.py": step, "shop/fast.so": Raw(fast), **_noise(version)},
        )
    found = levels(plant.answer())["file"]
    assert found["compiled"] == ["shop/fast.so"]
    assert found["files"] == ["shop/fast.so"]
    assert found["proved"]
    assert found["causes"] == ["the cause is in the compiled part, shop/fast.so"]


def test_a_cause_in_python_is_found_beside_compiled_files(plant: Planted) -> None:
    """Every mixture of all Python files fails to import, one method alone does not."""
    for version, fast, step in (
        ("1.0", b"1" * 64, "return 1"),
        ("1.1", b"2" * 64, "raise RuntimeError('the step is broken')"),
    ):
        checks = (
            "from pathlib import Path\n\nfrom shop.step import run\n\n"
            f"if Path(__file__).with_name('fast.so').read_bytes()[:1] != {fast[:1]!r}:\n"
            "    raise ImportError('built for another release')\n"
        )
        files = {"shop/__init__.py": checks, "shop/step.py": f"def run():\n    {step}\n", "shop/fast.so": Raw(fast)}
        plant.add("shop", version, {**files, **_noise(version)})
    found = levels(plant.answer())["region"]
    assert [region["function"] for region in found["regions"]] == ["run"]


SCALES = """from pathlib import Path


def _refuse(self, name):
    raise AttributeError(f"`{{name}}` was removed from the Scale class in shop 1.1.")


_FAST = Path(__file__).with_name("fast.so").read_bytes()
_METHODS = {{"weigh": lambda self: 1}} if _FAST.startswith(b"1") else {{"__getattr__": _refuse}}
globals()["Scale"] = type("Scale", (), _METHODS)
if _FAST[:1] != b"{0}":
    raise ImportError("built for another release")
"""
STUB = "class _Measuring:{0}\n\nclass Scale(_Measuring): ...\n"
WEIGH = """
    @overload
    def weigh(self, what: int) -> int: ...
    @overload
    def weigh(self, what: str) -> str: ..."""


def test_a_method_removed_from_a_compiled_class_is_told_without_a_search(plant: Planted) -> None:
    """Only a stub declares it, so that nothing can be put back."""
    for version, fast, declared in (("1.0", b"1" * 64, WEIGH), ("1.1", b"2" * 64, " ...")):
        files = {
            "shop/__init__.py": SCALES.format(fast[:1].decode()),
            "shop/__init__.pyi": f"from typing import overload\n\n{STUB.format(declared)}",
            "shop/fast.so": Raw(fast),
        }
        plant.add("shop", version, {**files, **_noise(version)})
    signed = '\n[tool.harness.signature]\nexception = "AttributeError"\nmessage = "weigh"\n'
    answer = plant.answer(body="from shop import Scale\n\nScale().weigh()\n", signed=signed)
    (found,) = levels(answer).values()
    assert found["compiled"] == ["shop/fast.so"]
    assert found["causes"] == [
        "`weigh` was removed from `shop.Scale`, which is probably in the compiled part, shop/fast.so"
    ]
    assert "only a stub declares it (shop/__init__.pyi:7)" in found["notes"]
    assert found["proved"]
