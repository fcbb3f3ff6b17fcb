"""The file level: two files together; added, removed, renamed and binary files; data, metadata, and mixtures that
cannot run."""

from __future__ import annotations

import hashlib

import pytest
from planted import BROKEN, Raw, levels, proved, told

RUN = "from shop import core\n\ndef run():\n    core.work()\n"
NOISE_BEFORE = {f"shop/noise{n}.py": f"VALUE = {n}\n" for n in range(4)}
NOISE_AFTER = {f"shop/noise{n}.py": f"VALUE = {n + 100}\n" for n in range(4)}
NOISY = "from shop import noise0, noise1, noise2, noise3\n"


@pytest.mark.parametrize("how", ["and", "or"])
def test_two_files_together_of_one_package(plant, how):
    core = f"{NOISY}from shop import left, right\n\ndef work():\n    if left.NEW {how} right.NEW:\n        {BROKEN}\n"
    releases = []
    for new, noise in ((False, NOISE_BEFORE), (True, NOISE_AFTER)):
        sides = {f"shop/{name}.py": f"NEW = {new}\n" for name in ("left", "right")}
        releases.append({"shop/__init__.py": RUN, "shop/core.py": core, **sides, **noise})
    plant.shops(*releases)
    found = levels(plant.answer())
    assert found["file"]["files"] == ["shop/left.py", "shop/right.py"]
    assert proved(found["file"])
    assert found["file"]["candidates"] == 7
    assert plant.answer()["culprit_probes"] == 0


SCAN = """
import importlib, pkgutil
from shop import plugins

def run():
    for module in pkgutil.iter_modules(plugins.__path__):
        importlib.import_module(f"shop.plugins.{module.name}").work()
"""


def test_an_added_file_found_by_a_directory_scan(plant):
    files = {
        "shop/__init__.py": SCAN,
        "shop/plugins/__init__.py": "",
        "shop/plugins/calm.py": "def work():\n    pass\n",
    }
    plant.shops(
        {**files, **NOISE_BEFORE},
        {**files, **NOISE_AFTER, "shop/plugins/wild.py": f"def work():\n    {BROKEN}\n"},
    )
    answer = plant.answer()
    assert answer["culprit"][-1]["level"] == "file"
    assert answer["culprit"][-1]["files"] == ["shop/plugins/wild.py"]
    assert proved(answer["culprit"][-1])


def test_an_added_file_imported_by_a_changed_one(plant):
    before = "def run():\n    return 1\n"
    after = "from shop.fresh import start\n\ndef run():\n    return start()\n"
    fresh = f"def start():\n    {BROKEN}\n"
    plant.shops(
        {"shop/__init__.py": before, **NOISE_BEFORE},
        {"shop/__init__.py": after, "shop/fresh.py": fresh, **NOISE_AFTER},
    )
    answer = plant.answer()
    found = levels(answer)
    assert found["file"]["files"] == ["shop/__init__.py", "shop/fresh.py"]
    assert proved(found["file"])
    assert [proof["verdict"] for proof in found["file"]["proofs"]] == ["good", "bad"]


def test_a_removed_file(plant):
    code = f"def run():\n    try:\n        from shop import compat\n    except ImportError:\n        {BROKEN}\n"
    plant.shops(
        {"shop/__init__.py": code, "shop/compat.py": "", **NOISE_BEFORE}, {"shop/__init__.py": code, **NOISE_AFTER}
    )
    found = plant.answer()["culprit"][-1]
    assert (found["level"], found["files"]) == ("file", ["shop/compat.py"])
    assert proved(found)


def test_a_renamed_file(plant):
    """The module with the last name wins, so the new name alone makes the difference."""
    scan = (
        "import importlib, pkgutil\n\ndef run():\n"
        "    last = max(module.name for module in pkgutil.iter_modules(__path__))\n"
        "    importlib.import_module(f'shop.{last}').work()\n"
    )
    files = {"shop/__init__.py": scan, "shop/middle.py": "def work():\n    return 1\n"}
    wild = f"def work():\n    {BROKEN}\n"
    plant.shops(
        {**files, "shop/early.py": wild, "shop/data.txt": "old\n"},
        {**files, "shop/wild.py": wild, "shop/data.txt": "new\n"},
    )
    found = plant.answer()["culprit"][-1]
    assert (found["level"], found["files"]) == ("file", ["shop/early.py", "shop/wild.py"])
    assert proved(found)
    assert found["candidates"] == 3


READ = f"""
from pathlib import Path

def run():
    data = Path(__file__).with_name("%s").read_bytes()
    if %s:
        {BROKEN}
"""


def test_a_file_of_constants(plant):
    code = READ % ("limits.json", "b'9' in data")
    plant.shops(
        {"shop/__init__.py": code, "shop/limits.json": '{\n "low": 1,\n "high": 5\n}\n', **NOISE_BEFORE},
        {"shop/__init__.py": code, "shop/limits.json": '{\n "low": 2,\n "high": 9\n}\n', **NOISE_AFTER},
    )
    found = levels(plant.answer())
    assert found["file"]["files"] == ["shop/limits.json"]
    assert proved(found["file"])
    assert found["region"]["files"] == ["shop/limits.json"]


def test_a_binary_file(plant):
    code = READ % ("table.bin", "data[0] == 255")
    plant.shops(
        {"shop/__init__.py": code, "shop/table.bin": Raw(b"\x80\x00\x01"), **NOISE_BEFORE},
        {"shop/__init__.py": code, "shop/table.bin": Raw(b"\xff\x00\x01"), **NOISE_AFTER},
    )
    found = plant.answer()["culprit"][-1]
    assert (found["level"], found["files"]) == ("file", ["shop/table.bin"])
    assert proved(found)


def test_a_binary_file_beside_one_that_was_never_opened(plant):
    """A file that is only listed is not known to be used: such files are one candidate at first."""
    code = (
        f"from pathlib import Path\n\ndef run():\n    if any(Path(__file__).parent.glob('*.bin')):\n        {BROKEN}\n"
    )
    unused = {f"shop/extra{n}.txt": "new\n" for n in range(3)}
    plant.shops({"shop/__init__.py": code}, {"shop/__init__.py": code, **unused, "shop/x.bin": Raw(b"\xff\xfe")})
    found = plant.answer()["culprit"][-1]
    assert found["files"] == ["shop/x.bin"]
    assert proved(found)


@pytest.mark.parametrize("read", ["version", "entry_points"])
def test_a_change_in_metadata_only(plant, read):
    asked = {
        "version": "metadata.version('shop') == '1.1'",
        "entry_points": "any(point.value == 'shop:new' for point in metadata.entry_points(group='shop.work'))",
    }[read]
    code = {"shop.py": f"from importlib import metadata\n\ndef run():\n    if {asked}:\n        {BROKEN}\n"}
    points = [
        {f"shop-1.{n}.dist-info/entry_points.txt": f"[shop.work]\nx = shop:{v}\n"} for n, v in ((0, "old"), (1, "new"))
    ]
    plant.shops({**code, **points[0]}, {**code, **points[1]})
    answer = plant.answer()
    found = answer["culprit"][-1]
    assert (found["level"], found["files"]) == ("file", ["metadata of shop"])
    assert proved(found)
    assert "metadata of shop" in told(answer, "Culprit")


def test_what_no_text_shows_that_it_is_needed_is_found(plant):
    """The culprit uses a name that only the newer neighbour has, in a way that no text shows."""
    core = "import importlib\n\ndef work():\n    getattr(importlib.import_module('sh' + 'op.util'), '%s')(); %s\n"
    plant.shops(
        {"shop/__init__.py": RUN, "shop/core.py": core % ("one", "pass"), "shop/util.py": "def one():\n    pass\n"},
        {
            "shop/__init__.py": RUN,
            "shop/core.py": core % ("two", BROKEN),
            "shop/util.py": "def two():\n    pass\n\ndef one():\n    pass\n",
        },
    )
    answer = plant.answer("--good", "1.0", "--bad", "1.1", "--depth", "file")
    found = answer["culprit"][-1]
    assert (found["level"], found["files"], found["needed_files"]) == ("file", ["shop/core.py"], ["shop/util.py"])
    assert [proof["verdict"] for proof in found["proofs"]] == ["good", "bad"]
    assert found["runs"] <= 8


def test_a_changed_import_of_the_culprit_is_mentioned_but_not_blamed(plant):
    util = "def one():\n    return 1\n"
    plant.shops(
        {"shop/__init__.py": RUN, "shop/core.py": "def work():\n    return 1\n", "shop/util.py": util},
        {
            "shop/__init__.py": RUN,
            "shop/core.py": f"from shop.util import two\n\ndef work():\n    two()\n    {BROKEN}\n",
            "shop/util.py": f"{util}\ndef two():\n    return 2\n",
        },
    )
    answer = plant.answer("--good", "1.0", "--bad", "1.1", "--depth", "file")
    found = answer["culprit"][-1]
    assert (found["files"], found["proved"]) == (["shop/core.py"], True)
    assert found["needed_files"] == ["shop/util.py"]


def test_a_mixture_that_fails_differently_is_never_named(plant):
    """Reverting only a part raises something else, which does not match the signature."""
    protocol = "def check(word):\n    if word != {!r}:\n        raise ValueError('another thing is wrong')\n"
    core = f"from shop.other import check\n{NOISY}\ndef work():\n    check({{!r}})\n    {{}}\n"
    plant.shops(
        {
            "shop/__init__.py": RUN,
            "shop/core.py": core.format("old", "pass"),
            "shop/other.py": protocol.format("old"),
            **NOISE_BEFORE,
        },
        {
            "shop/__init__.py": RUN,
            "shop/core.py": core.format("new", BROKEN),
            "shop/other.py": protocol.format("new"),
            **NOISE_AFTER,
        },
    )
    found = levels(plant.answer("--good", "1.0", "--bad", "1.1", "--depth", "file"))["file"]
    assert found["files"] == ["shop/core.py", "shop/other.py"]
    assert proved(found)
    assert found["unresolved"] >= 2
    assert "could not be run without" in " ".join(found["notes"])


def test_a_fix_also_has_a_culprit_file(plant):
    core = f"{NOISY}\ndef work():\n    {{}}\n"
    plant.shops(
        {"shop/__init__.py": RUN, "shop/core.py": core.format(BROKEN), **NOISE_BEFORE},
        {"shop/__init__.py": RUN, "shop/core.py": core.format("return 1"), **NOISE_AFTER},
    )
    answer = plant.answer("--find-fix", "--bad", "1.0")
    found = levels(answer)
    assert answer["status"] == "fixed"
    assert found["file"]["files"] == ["shop/core.py"]
    assert [proof["verdict"] for proof in found["file"]["proofs"]] == ["bad", "good"]
    assert proved(found["region"])
    assert told(answer, "Fix") == "shop 1.1 changed work (shop/core.py, line 4)"


def test_mixtures_do_not_change_finished_environments(plant):
    """Mixtures share files with environments and with the cache of uv."""
    plant.shops(
        {"shop/__init__.py": RUN, "shop/core.py": "def work():\n    return 1\n", **NOISE_BEFORE},
        {"shop/__init__.py": RUN, "shop/core.py": f"def work():\n    {BROKEN}\n", **NOISE_AFTER},
    )

    def digests():
        return {
            str(path): hashlib.sha256(path.read_bytes()).hexdigest()
            for environment in plant.environments.iterdir()
            if "-" not in environment.name
            for path in (environment / "lib").rglob("*")
            if path.is_file()
        }

    plant.answer("--good", "1.0", "--bad", "1.1", "--depth", "release")
    untouched = digests()
    assert "file" in levels(plant.answer())
    assert list((plant.environments.parent / "scratch").iterdir()) == []  # where mixtures are made
    assert untouched
    assert digests() == untouched


def test_a_file_that_cannot_be_reverted_whole_is_searched_inside(plant):
    """Its imports are gone from the newer release; the lines that matter are still found."""
    start = "from shop.gone import helper\n\n"
    before = f"{start}def other():\n    return helper() + 1\n\n\ndef work():\n    value = 1\n    return value\n"
    after = f"def other():\n    return 2\n\n\ndef work():\n    value = 1\n    {BROKEN}\n    return value\n"
    # Everything else that changed names what is gone, too, so that no two files bring `core` back together.
    beside_before = {f"shop/beside{n}.py": f"from shop.gone import helper\nVALUE = {n}\n" for n in range(3)}
    beside_after = {f"shop/beside{n}.py": f"VALUE = {n + 10}\n" for n in range(3)}
    run = "from shop import beside0, beside1, beside2, core\n\ndef run():\n    core.work()\n"
    gone = "def helper():\n    return 1\n"
    plant.shops(
        {"shop/__init__.py": run, "shop/core.py": before, "shop/gone.py": gone, **beside_before},
        {"shop/__init__.py": run, "shop/core.py": after, **beside_after},
    )
    answer = plant.answer()
    found = levels(answer)
    assert found["file"]["files"] == ["shop/core.py"]
    assert found["file"]["proofs"][0]["verdict"] == "good"
    (region,) = found["region"]["regions"]
    assert (region["file"], region["function"]) == ("shop/core.py", "work")
    assert proved(found["region"])


def test_the_package_with_the_culprit_file_is_named(plant):
    """The new shop needs the new helper and the reverse; the culprit line is in shop."""
    run = "import helping\n\nassert helping.LEVEL == {}\n\n\ndef run():\n    {}\n"
    helping = "import importlib.metadata\n\nassert importlib.metadata.version('shop') == '{}'\nLEVEL = {}\n"
    for number, body in ((0, "return 1"), (1, BROKEN)):
        plant.add("helping", f"1.{number}", {"helping.py": helping.format(f"1.{number}", number)})
        plant.add("shop", f"1.{number}", {"shop.py": run.format(number, body)}, requires=(f"helping==1.{number}",))
    answer = plant.answer()
    found = levels(answer)
    assert sorted(text.split()[0] for text in found["package"]["packages"]) == ["helping", "shop"]
    assert found["region"]["packages"] == ["shop 1.0 -> 1.1"]
    assert told(answer, "Culprit").startswith("shop 1.1 changed run (shop.py, line")
