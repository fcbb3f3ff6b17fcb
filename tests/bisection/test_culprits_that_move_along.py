"""A package whose older release downgrades another one: each one that breaks the tests is a separate culprit."""

from __future__ import annotations

import pytest
from planted_upgrades import TO_THE_RELEASE, month, source, write_project
from wheelhouse import Wheelhouse

RUN = ("--run", "python -m unittest -q test_mine", *TO_THE_RELEASE, "--json")
TESTS = """
import unittest
{imports}

class T(unittest.TestCase):
    def test_own(self):
        pass

    def test_both(self):
        tools.work()
        framework.work()
"""


@pytest.fixture
def moving(harness, tmp_path_factory):
    """`framework` 2.0 is broken and needs `tools` 2.0 or later; `tools` is broken from 3.0 on."""
    house = Wheelhouse(tmp_path_factory.mktemp("moving"))
    for number, version in enumerate(("1.0", "1.1", "2.0", "2.1", "3.0", "3.1")):
        broken = "tools is broken" if number >= 4 else ""
        house.add("tools", version, files={"tools.py": source(version, broken=broken)}, uploaded=month(number))
    for number, version in enumerate(("1.0", "1.1", "2.0", "2.1")):
        broken = "framework is broken" if number >= 2 else ""
        needs = ("tools>=2",) if number >= 2 else ("tools>=1",)
        files = {"framework.py": source(version, broken=broken)}
        house.add("framework", version, files=files, requires=needs, uploaded=month(number))
    return harness.with_environ(**house.environ)


@pytest.fixture
def pinned(harness, tmp_path_factory):
    """Each `shell` pins one `kernel`, which is broken from 2.0 on."""
    house = Wheelhouse(tmp_path_factory.mktemp("pinned"))
    for number, version in enumerate(("1.0", "1.1", "2.0", "2.1")):
        broken = "kernel is broken" if number >= 2 else ""
        house.add("kernel", f"0.{number}", files={"kernel.py": source(version, broken=broken)}, uploaded=month(number))
        needs = (f"kernel==0.{number}",)
        house.add("shell", version, files={"shell.py": source(version)}, requires=needs, uploaded=month(number))
    return harness.with_environ(**house.environ)


def culprits(answer):
    return {
        culprit["package"]: (culprit["last_good"], culprit["first_bad"])
        for group in answer["failures"]
        for culprit in group["culprits"]
    }


def test_both_are_named_with_their_own_releases(moving):
    tests = TESTS.format(imports="import framework, tools")
    write_project(moving.folder, tests, requires=["framework", "tools"])
    answer = moving("bisect", "--good", "2024-02-15", "--bad", "2024-08-01", *RUN).json
    assert culprits(answer) == {"framework": ("1.1", "2.0"), "tools": ("2.1", "3.0")}
    assert set(answer["constraints"]) == {"framework<2", "tools<3"}
    assert answer["constraints_verified"]


def test_a_package_pinned_exactly_by_another_is_part_of_it(pinned):
    tests = TESTS.format(imports="import shell as framework, kernel as tools")
    write_project(pinned.folder, tests, requires=["shell"])
    answer = pinned("bisect", "--good", "2024-01-15", "--bad", "2024-06-01", *RUN[:2], "--json").json
    assert culprits(answer) == {"shell": ("1.1", "2.0")}
    assert answer["constraints"] == ["shell<2"]
    assert answer["constraints_verified"]


def test_a_package_upgraded_alone_has_what_it_newly_requires(harness, tmp_path_factory):
    """`casing` 2.0 newly requires `fresh`, and comes with the `inner` that breaks the test, in another way then."""
    house = Wheelhouse(tmp_path_factory.mktemp("covered"))
    house.add("fresh", "1.0", files={"fresh.py": ""}, uploaded=month(0))
    for number, value in enumerate(("1", "None", "''")):
        house.add("inner", f"{number + 1}.0", files={"inner.py": f"VALUE = {value}\n"}, uploaded=month(number))
        needs = (f"inner=={number + 1}.0", *(("fresh",) if number else ()))
        text = "import inner\n" + ("import fresh\n" if number else "")
        house.add("casing", f"{number + 1}.0", files={"casing.py": text}, requires=needs, uploaded=month(number))
    planted = harness.with_environ(**house.environ)
    tests = """
    import unittest
    import casing

    class T(unittest.TestCase):
        def test_own(self):
            self.assertEqual(1 + casing.inner.VALUE, 2)
    """
    write_project(planted.folder, tests, requires=["casing", "inner"])
    answer = planted("bisect", "--good", "2024-01-15", "--bad", "2024-06-01", *RUN).json
    assert culprits(answer) == {"inner": ("1.0", "2.0")}
