"""`--find-fix` between two sets of packages: which upgrade fixed it."""

from __future__ import annotations

from planted_upgrades import month, source, suite_of, write_project
from wheelhouse import Wheelhouse

RUN = ("--run", "python -m unittest -q test_mine", "--json")


def test_the_release_that_fixed_it_is_named(harness, tmp_path_factory):
    house = Wheelhouse(tmp_path_factory.mktemp("fixed"))
    for number, version in enumerate(("1.0", "1.1", "2.0", "2.1")):
        broken = "it is broken" if number < 2 else ""
        house.add("tools", version, files={"tools.py": source(version, broken=broken)}, uploaded=month(number))
        house.add("other", version, files={"other.py": source(version)}, uploaded=month(number))
    harness = harness.with_environ(**house.environ)
    write_project(harness.folder, suite_of("tools"), requires=["tools", "other"])
    ended = harness("bisect", "--bad", "2024-01-15", "--good", "2024-05-15", "--find-fix", *RUN)
    answer = ended.json
    assert (ended.code, answer["status"]) == (0, "fixed")
    assert (answer["last_bad"], answer["first_good"]) == ("1.1", "2.0")
    assert "fixed in tools 2.0" in answer["sentence"]
    assert answer["constraints"] == ["tools>=2.0"]
    assert answer["constraints_verified"]


def test_without_the_option_days_the_wrong_way_round_are_a_mistake(harness):
    write_project(harness.folder, suite_of())
    ended = harness("bisect", "--bad", "2024-01-15", "--good", "2024-05-15", *RUN)
    assert ended.code == 2
    assert "--find-fix" in ended.stderr
