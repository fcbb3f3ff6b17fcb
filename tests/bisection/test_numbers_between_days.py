"""A repro whose bug is a wrong number, asked between two days: no run raises, and the package is still found."""

from __future__ import annotations

from planted_upgrades import month
from wheelhouse import Wheelhouse

REPRO = """# /// script
# dependencies = ["tools", "other"]
# [tool.harness.signature]
# metric = "loss"
# above = 1.0
# ///
import json, os
import other, tools

with open(os.environ["HARNESS_METRICS"], "w") as file:
    json.dump({"loss": tools.LOSS}, file)
"""


def test_a_wrong_number_between_two_days(harness, tmp_path_factory):
    house = Wheelhouse(tmp_path_factory.mktemp("numbers"))
    for number, version in enumerate(("1.0", "1.1", "2.0", "2.1")):
        house.add(
            "tools", version, files={"tools.py": f"LOSS = {0.5 if number < 2 else 3.5}\n"}, uploaded=month(number)
        )
        house.add("other", version, files={"other.py": f"VERSION = {version!r}\n"}, uploaded=month(number))
    harness = harness.with_environ(**house.environ)
    (harness.folder / "mine.py").write_text(REPRO)
    asked = ("--repro", "mine.py", "--good", "2024-01-15", "--bad", "2024-05-15", "--depth", "release", "--json")
    ended = harness("bisect", *asked)
    assert ended.code == 0, ended.stderr
    assert (ended.json["last_good"], ended.json["first_bad"]) == ("1.1", "2.0")
    assert ended.json["constraints"] == ["tools<2"]
    assert ended.json["constraints_verified"]
