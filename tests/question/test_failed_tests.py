"""The tests that failed elsewhere: reports as pytest and unittest-xml-reporting write them, and what is no report."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import UserMistake
from harness.question.failed_tests import only_failed

TESTS = {
    "tests/test_unit.py": """
import unittest
import pytest

class TestAlpha:
    @pytest.mark.parametrize("text", ["a", "b.c[d] (e)"])
    def test_works(self, text):
        assert text == "x"

class Old(unittest.TestCase):
    def test_old(self):
        self.fail()

@pytest.fixture
def broken():
    raise ValueError

def test_set_up(broken): ...
def test_passes(): ...
@pytest.mark.xfail
def test_expected(): raise ValueError
""",
    "tests/test_import.py": "import a_module_that_is_missing",
}
FAILED = [
    "tests/test_import.py",
    "tests/test_unit.py::TestAlpha::test_works[a]",
    "tests/test_unit.py::TestAlpha::test_works[b.c[d] (e)]",
    "tests/test_unit.py::Old::test_old",
    "tests/test_unit.py::test_set_up",
]
UNITTEST = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites><testsuite name="outer"><testsuite name="tests.test_unit.Old">
<testcase classname="tests.test_unit.Old" name="test_old (number=1)" file="tests/test_unit.py"><failure/></testcase>
<testcase classname="Bare" name="test_it" file="tests/test_unit.py"><error/></testcase>
<testcase classname="tests.test_unit.Old" name="test_well"><system-out>x</system-out><skipped/></testcase>
<testcase classname="unittest.loader._FailedTest.tests" name="test_import"><error>gone</error></testcase>
<testcase classname="web.button" name="it opens"><failure/></testcase>
</testsuite></testsuite></testsuites>"""
BOMB = '<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]><testsuites><testcase name="&c;"/></testsuites>'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project."""
    for name, text in TESTS.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def run_pytest(folder: Path, *words: str) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:harness", "--continue-on-collection-errors", *words]
    assert subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 1


def chosen(argv: str, *given: Path | None) -> list[str]:
    words, _ = only_failed(tuple(argv.split()), given[0], given[1:])
    return [word.removeprefix("--harness-only=") for word in words if word.startswith("--harness-only=")]


@pytest.mark.parametrize("options", [(), ("-o", "junit_family=xunit1"), ("--junit-prefix", "ci.linux")], ids=str)
def test_the_failed_tests_of_pytests_report_are_chosen(folder: Path, options: tuple[str, ...]) -> None:
    run_pytest(folder, "--junitxml=report.xml", *options)
    assert chosen("pytest -q", folder / "report.xml", folder) == FAILED


def test_those_of_unittest_are_chosen_for_either_tool_and_others_are_named(folder: Path) -> None:
    report = folder / "report.xml"
    report.write_text(UNITTEST, encoding="utf-8")
    unit = "tests/test_unit.py::Old::test_old", "tests/test_unit.py::Bare::test_it", "tests/test_import.py"
    assert chosen("python -m pytest", report, folder / "tests", folder) == [*unit]
    dotted = ["tests.test_unit.Old.test_old", "tests.test_unit.Bare.test_it", "tests.test_import"]
    assert chosen("python -m unittest", report, folder) == dotted
    _, notes = only_failed(("pytest",), report, (folder,))
    assert "not in this project: web.button.it opens" in notes[1]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "can't be read as XML"),
        ("<testsuites><testcase>", "can't be read as XML"),
        (BOMB, "declares a document type"),
        ("<html/>", "begins with <html>"),
        ("<testsuites/>", "has 0 tests, and none that failed"),
        ('<testsuite><testcase classname="a" name="b"/></testsuite>', "has 1 test, and none that failed"),
        (
            UNITTEST.replace("test_unit", "test_gone").replace("test_import", "x"),
            "no test that failed in .* is in this project",
        ),
        ('<?xml version="1.0" encoding="nonsense"?><testsuites/>', "can't be read as XML"),
        ("<testsuites>" + "<testsuite>" * 10_000, "can't be read as XML"),
    ],
)
def test_what_is_no_report_of_failures_gets_one_sentence(folder: Path, content: str, why: str) -> None:
    (folder / "report.xml").write_text(content, encoding="utf-8")
    with pytest.raises(UserMistake, match=why):
        only_failed(("pytest",), folder / "report.xml", (folder,))


def test_a_command_without_tests_has_none_to_choose(folder: Path) -> None:
    with pytest.raises(UserMistake, match="neither pytest nor unittest"):
        only_failed(("make", "test"), folder / "report.xml", (folder,))


def test_lf_means_the_tests_that_failed_in_the_users_folder(folder: Path) -> None:
    run_pytest(folder)
    inside = folder / "tests"
    assert sorted(chosen("pytest --lf -q", None, folder)) == sorted(FAILED)
    assert sorted(chosen("pytest --last-failed", None, inside, folder)) == sorted(FAILED)
    assert sorted(chosen("pytest --lf test_unit.py::TestAlpha", None, inside, folder)) == FAILED[1:3]
    words, notes = only_failed(
        ("pytest", "tests/test_other.py", "--lf", "tests/test_unit.py::test_passes"), None, (folder,)
    )
    assert words == ("pytest", "tests/test_other.py", "tests/test_unit.py::test_passes")
    assert "so all of its tests run" in notes[0]
    assert only_failed(("pytest", "-q"), None, (folder,)) == (("pytest", "-q"), ())
    (folder / ".pytest_cache/v/cache/lastfailed").write_text("{", encoding="utf-8")
    with pytest.raises(UserMistake, match="can't read"):
        only_failed(("pytest", "--lf"), None, (folder,))
