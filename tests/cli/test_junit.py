"""`harness bisect --junit` and `--from-junit`, and `pytest --lf`: with a real pytest of the local index."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import distribution
from xml.etree import ElementTree

import pytest
from support import Harness
from wheelhouse import Wheelhouse

ENDS = ("--good", "2024-01-15", "--bad", "2024-03-15", "--lanes", "1", "--confirm", "1", "--depth", "release")
TESTS = {
    "requirements.txt": "alpha\n",
    "tests/test_unit.py": """
import unittest
import alpha
import pytest

class TestAlpha:
    @pytest.mark.parametrize("text", ["a", "b.c[d]"])
    def test_works(self, text):
        alpha.work()

class Old(unittest.TestCase):
    def test_old(self):
        alpha.work()

def test_other():
    alpha.other()

def test_never():
    raise ValueError("as ever")

def test_passes():
    pass

@pytest.mark.skip
def test_skipped():
    pass
""",
    "tests/test_import.py": "from alpha import gone\n\ndef test_gone():\n    assert gone\n",
}
BROKEN = "def work():\n    raise RuntimeError('no work, <b>& \u00fc')\n\ndef other():\n    raise KeyError('other')\n"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Wheelhouse:
    """pytest as it is installed here, and alpha, which breaks in 1.1."""
    house = Wheelhouse(tmp_path_factory.mktemp("house"))
    needed = "pluggy", "iniconfig", "packaging", "pygments"
    for name in ("pytest", *needed):
        installed = distribution(name)
        files = {
            str(path): path.locate().read_text("utf-8")
            for path in installed.files or ()
            if path.suffix == ".py" or path.name == "entry_points.txt"
        }
        house.add(name, installed.version, files=files, requires=needed if name == "pytest" else ())
    house.add("alpha", "1.0", files={"alpha.py": "gone = True\ndef work(): ...\ndef other(): ...\n"})
    house.add("alpha", "1.1", files={"alpha.py": BROKEN}, uploaded="2024-02-01T12:00:00Z")
    house.add("alpha", "1.2", files={"alpha.py": BROKEN + "X = 1\n"}, uploaded="2024-03-01T12:00:00Z")
    return house


@pytest.fixture
def project(harness: Harness) -> Harness:
    """The command in a project whose tests fail with the newest alpha."""
    for name, text in TESTS.items():
        path = harness.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return harness


def newly_failing(answer: dict) -> set[str]:
    """The tests that some culprit broke."""
    return {test for failure in answer["failures"] for test in failure["tests"]}


def test_the_report_of_an_answer_names_what_broke_each_test_and_can_be_asked_again(project: Harness) -> None:
    ended = project("bisect", "--run", "pytest", *ENDS, "--junit", "out/report.xml", "--json")
    assert ended.code == 0, ended.stderr
    (suite,) = ElementTree.parse(project.folder / "out/report.xml").getroot()
    counts = {"tests": "8", "failures": "5", "errors": "1", "skipped": "1"}
    assert {name: suite.get(name) for name in counts} == counts
    properties = {row.get("name"): row.get("value") for row in suite.iter("property")}
    assert (properties["harness.culprits"], properties["harness.constraints"]) == ("alpha 1.1", "alpha<1.1")
    said = {
        f"{case.get('classname')} {case.get('name')}": case[0].get("message", "")
        for case in suite.iter("testcase")
        if len(case)
    }
    assert said.pop(" tests.test_import").startswith("fails since alpha 1.1: ImportError: ")
    said_of_it = said["tests.test_unit.TestAlpha test_works[b.c[d]]"]
    assert said_of_it == "fails since alpha 1.1: RuntimeError: no work, <b>& \u00fc"
    assert said["tests.test_unit test_never"] == "fails at both ends: ValueError: as ever"

    again = project("bisect", "--from-junit", "out/report.xml", *ENDS, "--json")
    assert newly_failing(again.json) == newly_failing(ended.json), again.stderr
    assert again.json["failing_at_both"] == ["tests/test_unit.py::test_never"]


@pytest.mark.parametrize("words", [("--run", "pytest --lf"), ("--from-junit", "report.xml")], ids=str)
def test_only_the_tests_that_failed_for_the_user_are_searched(project: Harness, words: tuple[str, ...]) -> None:
    (project.folder / "alpha.py").write_text(BROKEN, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "--junitxml=report.xml", "tests/test_unit.py::test_other"]
    assert subprocess.run(command, cwd=project.folder, capture_output=True, check=False).returncode == 1
    (project.folder / "alpha.py").unlink()
    ended = project("bisect", *words, *ENDS, "--junit", "after.xml", "--json")
    assert newly_failing(ended.json) == {"tests/test_unit.py::test_other"}, ended.stderr
    assert [case.get("name") for case in ElementTree.parse(project.folder / "after.xml").iter("testcase")] == [
        "test_other"
    ]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--from-junit", "gone.xml"), "can't read gone.xml: No such file"),
        (("--from-junit", "tests"), "can't read tests: Is a directory"),
        (("--from-junit", "report.xml", "--repro", "x.py"), "--from-junit does not apply to a repro"),
        (("--from-junit", "report.xml", "--run", "make test"), "neither pytest nor unittest"),
        (("--from-junit", "report.xml"), "no tests were found"),
    ],
)
def test_what_names_no_test_gets_one_sentence(project: Harness, words: tuple[str, ...], why: str) -> None:
    report = '<testsuite><testcase classname="tests.test_unit" name="test_gone"><failure/></testcase></testsuite>'
    (project.folder / "report.xml").write_text(report, encoding="utf-8")
    (project.folder / "x.py").write_text("", encoding="utf-8")
    ended = project("bisect", *words, *ENDS)
    assert ended.code == 2
    assert why in ended.stderr
