"""A repro that pins its author's versions: they are the bad end, and the search goes back from their day."""

from __future__ import annotations

from pathlib import Path

import pytest
from planted_upgrades import TO_THE_RELEASE, month, source
from wheelhouse import Wheelhouse

TOOL = """
# [tool.harness.subjects.face]
# bad = "1.2"
# as-of = "era"
# [tool.harness.signature]
# exception = "RuntimeError"
# message = "the core is broken"
"""
FACE = "import core\nVERSION = {version!r}\n\n\ndef work():\n    return core.work()\n"


@pytest.fixture
def pinned(harness, tmp_path_factory):
    """`face` uses `core`, broken from 1.1 on; a repro pins both at 1.2, as its author had them."""
    house = Wheelhouse(tmp_path_factory.mktemp("own"))
    for number, version in enumerate(("1.0", "1.1", "1.2", "1.3")):
        broken = "the core is broken" if number in (1, 2) else ""
        house.add("core", version, files={"core.py": source(version, broken=broken)}, uploaded=month(number))
        house.add("face", version, files={"face.py": FACE.format(version=version)}, uploaded=month(number))
    text = (
        '# /// script\n# dependencies = ["face==1.2", "core==1.2"]\n'
        + TOOL.lstrip()
        + "# ///\nimport face\n\nface.work()\n"
    )
    path = harness.folder / "pinned.py"
    path.write_text(text, encoding="utf-8")
    return harness.with_environ(**house.environ)


def test_without_a_package_the_search_goes_back_from_what_the_repro_pins(pinned):
    ended = pinned("bisect", "--repro", "./pinned.py")
    assert ended.code == 0, ended.stderr
    assert "bad end: what the repro requires: face==1.2, core==1.2 (--bad changes it)" in ended.stderr
    assert "pinned fails since core 1.1." in ended.stdout
    assert "Workaround  core<1.1" in ended.stdout


def test_releases_of_a_package_take_the_others_of_their_own_day(pinned):
    ended = pinned("bisect", "face", "--repro", "./pinned.py", "--json", *TO_THE_RELEASE)
    answer = ended.json
    assert (ended.code, answer["last_good"], answer["first_bad"]) == (0, "1.0", "1.1"), ended.stderr


def test_pins_that_cannot_be_installed_are_one_sentence(pinned):
    path = Path(pinned.folder) / "pinned.py"
    path.write_text(path.read_text("utf-8").replace("core==1.2", "core==9.9"), "utf-8")
    ended = pinned("bisect", "--repro", "./pinned.py")
    assert ended.code == 2
    assert "core==9.9" in ended.stderr
    assert "Traceback" not in ended.stderr
