"""Files that are no text, and what mixtures share with environments."""

from __future__ import annotations

import hashlib

from planted import BROKEN, Raw, levels, proved
from support import own_cache as cache  # noqa: F401 - a fixture

RUN = "from shop import core\n\ndef run():\n    core.work()\n"
NOISE_BEFORE = {f"shop/noise{n}.py": f"VALUE = {n}\n" for n in range(4)}
NOISE_AFTER = {f"shop/noise{n}.py": f"VALUE = {n + 100}\n" for n in range(4)}

READ = f"""
from pathlib import Path

def run():
    data = Path(__file__).with_name("%s").read_bytes()
    if %s:
        {BROKEN}
"""


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
