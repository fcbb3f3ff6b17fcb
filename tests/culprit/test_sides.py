"""The two sides of a change: reading environments, their differences, and locks that mix both."""

from __future__ import annotations

import hashlib

import pytest

from harness.culprit.edits import Edits
from harness.culprit.sides import PackageFiles, differing
from harness.environment import Environment
from harness.model import Lock, Pin


@pytest.fixture
def side(tmp_path):
    """Write files as an installed distribution and read them back."""

    def lay(label, version, files, *, recorded=None, name="shop"):
        folder = tmp_path / label
        packages = folder / "lib" / "python3.11" / "site-packages"
        metadata = f"{name}-{version}.dist-info"
        told = {**files, f"{metadata}/METADATA": f"Name: {name}\nVersion: {version}\n".encode()}
        for path, content in told.items():
            (packages / path).parent.mkdir(parents=True, exist_ok=True)
            (packages / path).write_bytes(content)
        rows = [f"{path},sha256={hashlib.sha256(content).hexdigest()},{len(content)}" for path, content in told.items()]
        rows += [f"{metadata}/RECORD,,", *(recorded or ())]
        (packages / metadata / "RECORD").write_text("\n".join(rows) + "\n")
        environment = Environment(folder / "bin" / "python", Lock("3.11", "linux", ()), folder)
        return PackageFiles.of(environment, ["shop"])

    return lay


def test_only_changed_added_and_removed_files_are_units(side):
    before = side("a", "1.0", {"shop/same.py": b"1", "shop/changed.py": b"1", "shop/gone.bin": b"\x00\xff"})
    after = side("b", "1.1", {"shop/same.py": b"1", "shop/changed.py": b"2", "shop/new.json": b"{}"})
    units = differing(before, after)
    assert units.keys() == {"shop/changed.py", "shop/gone.bin", "shop/new.json", "metadata of shop"}
    assert units["shop/changed.py"] == ("shop/changed.py",)


def test_all_metadata_is_one_unit_including_record(side):
    """With RECORD alone, the folder would still count as an installed distribution."""
    units = differing(side("a", "1.0", {}), side("b", "1.1", {}))
    assert units == {
        "metadata of shop": (
            "shop-1.0.dist-info/METADATA",
            "shop-1.0.dist-info/RECORD",
            "shop-1.1.dist-info/METADATA",
            "shop-1.1.dist-info/RECORD",
        )
    }


def test_a_renamed_file_is_one_unit_named_by_its_new_path(side):
    text = b"def work():\n    return 1\n\nLIMIT = 5\n"
    before, after = side("a", "1.0", {"shop/old.py": text}), side("b", "1.0", {"shop/new.py": text})
    assert differing(before, after)["shop/new.py"] == ("shop/old.py", "shop/new.py")


def test_a_file_that_moved_and_left_a_stub_is_a_rename(side):
    text = b"".join(b"LIMIT_%d = %d\n" % (number, number) for number in range(20))
    stub, part = b"from ._old import *\n", text[: len(text) // 2]
    before = side("a", "1.0", {"shop/old.py": text, "shop/cut.py": text.replace(b"LIMIT", b"MOST")})
    after = side(
        "b", "1.0", {"shop/old.py": stub, "shop/_old.py": text + b"\n", "shop/cut.py": part, "shop/_cut.py": part}
    )
    units = differing(before, after)
    assert units["shop/_old.py"] == ("shop/old.py", "shop/_old.py")
    assert "shop/old.py" not in units
    assert units["shop/cut.py"] == ("shop/cut.py",)
    edits = Edits.of(units, before, after, units)
    older = {"shop/old.py": text, "shop/_old.py": None}
    newer = {"shop/old.py": stub, "shop/_old.py": text + b"\n"}
    assert edits.files(edits.all, newer_base=True).items() >= older.items()
    assert edits.files((), newer_base=False).items() >= newer.items()
    (region,) = (unit for unit in edits.all if unit.startswith("shop/_old.py#"))
    assert edits.files({region}, newer_base=True) == {"shop/_old.py": text}


def test_scripts_bytecode_and_missing_files_are_left_out(side):
    recorded = ["../../../bin/shop,sha256=x,1", "shop/__pycache__/a.cpython-311.pyc,,", "shop/vanished.py,sha256=x,1"]
    found = side("a", "1.0", {"shop/a.py": b"1"}, recorded=recorded)
    assert {path for path in found.digests if "dist-info" not in path} == {"shop/a.py"}


def test_other_distributions_are_not_read(side):
    assert side("a", "1.0", {"till/a.py": b"1"}, name="till").digests == {}


def test_a_foreign_environment_is_not_read(tmp_path):
    with pytest.raises(ValueError, match="environments that the harness built"):
        PackageFiles.of(Environment(tmp_path / "python", Lock("3.11", "linux", ())), ["shop"])


def lock(**versions):
    return Lock("3.11", "linux", tuple(Pin(name, version) for name, version in versions.items()))


def test_distributions_are_exchanged_added_and_left_out():
    before, after = lock(shop="1", tool="1", gone="1"), lock(shop="2", tool="2", fresh="1")
    assert before.exchanging(after, ["tool"]) == lock(shop="1", tool="2", gone="1")
    assert before.exchanging(after, ["gone", "fresh"]) == lock(shop="1", tool="1", fresh="1")
    assert before.exchanging(after, ["shop", "tool", "gone", "fresh"]) == after
    assert before.exchanging(after, []) == before
