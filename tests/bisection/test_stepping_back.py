"""Without a good end, each test steps back until it passes; a day without a solution is not the end of the way."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime

import pytest
from planted_upgrades import TO_THE_RELEASE, source, suite_of, write_project
from wheelhouse import Wheelhouse

from harness.bisection.steps_back import StepsBack
from harness.environment import PipSettings, Uv
from harness.errors import UserMistake
from harness.model import Device, Lock
from harness.question.inquiry import Scope
from harness.question.question import day_end
from harness.question.snapshot import Way
from harness.question.worlds import NoSolution, World

RUN = ("--run", "python -m unittest -q test_mine", *TO_THE_RELEASE, "--json")
BAD = datetime(2024, 8, 1, tzinfo=UTC)
AGED = """\
# /// script
# dependencies = ["aging"]
# [tool.harness.signature]
# exception = "ValueError"
# message = "aging is broken"
# ///
"""


def world_of(end, moment):
    lock = Lock("3.11.0", Device.CPU, ())
    return World(end=end, scope=Scope(None, "3.11.0", ()), lock=lock, requirements=(), way=Way.DAY, as_of=moment)


class FewDays:
    """Worlds that can be resolved from one day on."""

    def __init__(self, since, python=""):
        self.since, self.python = since, python
        self.asked = []

    def of(self, end):
        """Make the world of a day."""
        self.asked.append(end.text)
        if end.moment < self.since:
            raise NoSolution(f"nothing can be installed as of {end.text}", python=self.python)
        return world_of(end, end.moment)


def steps_of(worlds):
    bad = world_of(day_end(BAD), BAD)
    steps = StepsBack(worlds, bad)
    return steps, {world.end.text: label for label, world in steps}


def test_days_between_are_tried_where_a_day_has_no_solution():
    steps, labels = steps_of(FewDays(datetime(2024, 5, 1, tzinfo=UTC)))
    assert labels["2024-07-25"] == "as of 2024-07-25, 1 week before"
    assert labels["2024-05-09"] == "as of 2024-05-09, 12 weeks before"  # in the gap, where days are halved
    assert list(labels)[:4] == ["2024-07-25", "2024-07-18", "2024-07-04", "2024-06-06"]
    assert list(labels)[4:] == ["2024-05-09", "2024-05-02", "2024-05-01"]
    assert steps.reached == "2024-05-01"
    assert "nothing can be installed as of" in steps.limit


def test_days_between_are_tried_where_a_day_fails_with_another_error():
    bad = world_of(day_end(BAD), BAD)
    steps = StepsBack(FewDays(datetime(2023, 1, 1, tzinfo=UTC)), bad)
    days = []
    for _, world in steps:
        days.append(world.end.text)
        steps.differs = not "2024-05-20" < world.end.text < "2024-07-20"
        if len(days) == 15:
            break
    # The bad end shows the bug, and a week before does not; eight weeks do, 16 do not; then on beyond these.
    assert days == [
        *("2024-07-25", "2024-07-29", "2024-07-31"),
        *("2024-07-18", "2024-07-04", "2024-06-06", "2024-04-11"),
        *("2024-05-09", "2024-05-23", "2024-05-16", "2024-05-20", "2024-05-22", "2024-05-21"),
        *("2023-12-21", "2023-05-11"),
    ]


def test_another_error_of_older_packages_is_no_answer_and_a_day_between_is(planted, parts_house):
    parts_house.add(
        "aging",
        "1.0",
        files={"aging.py": "raise ImportError('not for this Python')\n"},
        uploaded="2023-01-01T12:00:00Z",
    )
    parts_house.add("aging", "2.0", files={"aging.py": "def part(): ...\n"}, uploaded="2024-05-02T12:00:00Z")
    broken = "def part(): raise ValueError('aging is broken')\n"
    parts_house.add("aging", "3.0", files={"aging.py": broken}, uploaded="2024-05-20T12:00:00Z")
    text = AGED + "import aging\naging.part()\n"
    (planted.folder / "aged.py").write_text(text, encoding="utf-8")
    answer = planted("bisect", "--repro", "aged.py", "--bad", "2024-08-01", *TO_THE_RELEASE, "--json")
    (culprit,) = answer.json["failures"][0]["culprits"]
    assert (culprit["package"], culprit["last_good"], culprit["first_bad"]) == ("aging", "2.0", "3.0")

    # No day has both the release that can be imported and the one that is not broken: only aging itself is put back.
    parts_house.add("aged_along", "1.0", files={"aged_along.py": "import gone\n"}, uploaded="2023-01-01T12:00:00Z")
    parts_house.add("aged_along", "2.0", files={"aged_along.py": ""}, uploaded="2024-07-01T12:00:00Z")
    both = text.replace('["aging"]', '["aging", "aged_along"]').replace("import aging", "import aging, aged_along")
    (planted.folder / "along.py").write_text(both, encoding="utf-8")
    answer = planted("bisect", "--repro", "along.py", "--bad", "2024-08-01", *TO_THE_RELEASE, "--json")
    (culprit,) = answer.json["failures"][0]["culprits"]
    assert (culprit["package"], culprit["last_good"], culprit["first_bad"]) == ("aging", "2.0", "3.0")

    (planted.folder / "aged.py").write_text(
        text.replace("aging.part()", "aging.part\nraise ValueError('aging is broken')"), encoding="utf-8"
    )
    answer = planted("bisect", "--repro", "aged.py", "--bad", "2024-08-01", "--json")
    assert (answer.code, answer.json["status"]) == (3, "inconclusive")
    assert "older packages that were tried fail with another error (as of 2024-" in answer.json["sentence"]
    assert "not for this Python" in answer.json["sentence"]


def test_packages_with_which_no_test_runs_say_nothing_about_the_tests(planted, parts_house):
    """As where the plugin of an older day does not fit: only days between show whether the tests passed."""
    parts_house.add("plugin", "1.0", files={"plugin.py": "import gone\n"}, uploaded="2023-01-01T12:00:00Z")
    parts_house.add("plugin", "2.0", files={"plugin.py": ""}, uploaded="2024-05-02T12:00:00Z")
    parts_house.add("tested", "1.0", files={"tested.py": source("1.0")}, uploaded="2023-01-01T12:00:00Z")
    broken = source("2.0", broken="tested is broken")
    parts_house.add("tested", "2.0", files={"tested.py": broken}, uploaded="2024-05-20T12:00:00Z")
    write_project(planted.folder, "import plugin\n" + suite_of("tested"), requires=["tested", "plugin"])
    answer = planted("bisect", "--bad", "2024-08-01", *RUN).json
    (culprit,) = answer["failures"][0]["culprits"]
    assert (culprit["package"], culprit["last_good"], culprit["first_bad"]) == ("tested", "1.0", "2.0")

    for name, text in (("plugin", "import gone\n"), ("tested", source("1.0"))):
        parts_house.add(f"{name}2", "1.0", files={f"{name}2.py": text}, uploaded="2023-01-01T12:00:00Z")
    parts_house.add("plugin2", "2.0", files={"plugin2.py": ""}, uploaded="2024-05-02T12:00:00Z")
    parts_house.add("tested2", "1.5", files={"tested2.py": broken}, uploaded="2024-04-01T12:00:00Z")
    write_project(planted.folder, "import plugin2\n" + suite_of("tested2"), requires=["tested2", "plugin2"])
    answer = planted("bisect", "--bad", "2024-08-01", *RUN).json
    (culprit,) = answer["failures"][0]["culprits"]  # no day has both, so one package is put back
    assert (culprit["package"], culprit["last_good"], culprit["first_bad"]) == ("tested2", "1.0", "1.5")


def test_a_day_on_which_all_tests_fail_with_another_error_says_nothing(planted, parts_house):
    """As where an old release does not know this Python: the tests passed on a day between."""
    tested = {"1.0": "is too old", "1.5": "", "2.0": "is broken"}
    days = ("2020-01-01", "2023-06-01", "2024-01-20")
    for (version, error), day in zip(tested.items(), days, strict=True):
        files = {"tested.py": source(version, broken=error)}
        parts_house.add("tested", version, files=files, uploaded=f"{day}T12:00:00Z")
    write_project(planted.folder, suite_of("tested"), requires=["tested"])
    answer = planted("bisect", "--bad", "2026-08-01", *RUN).json
    (culprit,) = answer["failures"][0]["culprits"]
    assert (culprit["package"], culprit["last_good"], culprit["first_bad"]) == ("tested", "1.5", "2.0")


def test_the_python_that_leads_further_is_kept():
    steps, _ = steps_of(FewDays(BAD, python="3.9"))
    assert steps.way_on == ("2024-07-31", "3.9")
    assert (steps.reached, steps_of(FewDays(BAD))[0].way_on) == ("", None)


def test_the_limit_comes_with_the_command_that_goes_on(planted, parts_house):
    parts_house.add("young", "1.0", files={"young.py": ""}, uploaded="2024-03-01T12:00:00Z")
    write_project(planted.folder, suite_of("part07"), requires=["part07", "young"])
    answer = planted("bisect", "--bad", "2024-06-01", *RUN).json
    assert answer["failures"][0]["culprits"][0]["first_bad"] == "2.0"
    write_project(
        planted.folder, "def broken(): ...\n" + suite_of("part07", "part19"), requires=["part07", "part19", "young"]
    )
    answer = planted("bisect", "--bad", "2024-06-01", *RUN).json
    found = {culprit["package"] for failure in answer["failures"] for culprit in failure["culprits"]}
    assert found == {"part07"}
    assert answer["failing_at_both"] == ["test_mine.T.test_part19"]
    assert answer["back_to"].startswith("2024-03-0")
    assert "young did not exist" in answer["back_to"]


def test_without_an_older_day_that_can_be_resolved_none_is_said_to_fail_and_one_package_is_put_back(
    planted, parts_house
):
    broken = source("1.0", broken="newest is broken")
    parts_house.add("newest", "1.0", files={"newest.py": broken}, uploaded="2024-05-30T12:00:00Z")
    write_project(planted.folder, suite_of("newest"), requires=["newest"])
    answer = planted("bisect", "--bad", "2024-06-01", *RUN).json
    assert "no older packages could be tried" in answer["sentence"]
    assert "newest did not exist" in answer["sentence"]

    write_project(planted.folder, suite_of("part07"), requires=["part07", "newest"])
    answer = planted("bisect", "--bad", "2024-06-01", *RUN).json
    (culprit,) = answer["failures"][0]["culprits"]
    assert (culprit["package"], culprit["last_good"], culprit["first_bad"]) == ("part07", "1.2", "2.0")


def test_another_python_of_this_machine_goes_further_back(harness, tmp_path):
    """The older release has wheels for Python 3.12 only, and the newer one fails with every Python."""
    other = next((one for one in ("3.12", "3.13") if not sys.version.startswith(one)), "")
    try:
        Uv(PipSettings()).find_python(other)
    except UserMistake:
        pytest.skip(f"no Python {other} on this machine")
    house = Wheelhouse(tmp_path / "young")
    tag = f"cp{other.replace('.', '')}-none-any"
    house.add("early", "1.0", files={"early.py": source("1.0")}, tag=tag, uploaded="2018-01-01T12:00:00Z")
    broken = source("2.0", broken="early is broken")
    house.add("early", "2.0", files={"early.py": broken}, uploaded="2023-06-01T12:00:00Z")
    house.add("aged", "1.0", files={"aged.py": source("1.0")}, tag=tag, uploaded="2022-01-01T12:00:00Z")
    house.add("aged", "2.0", files={"aged.py": source("2.0", broken="aged is broken")}, uploaded="2024-01-01T12:00:00Z")
    here = harness.with_environ(**house.environ)
    write_project(here.folder, suite_of("aged", "early"), requires=["aged", "early"])
    answer = here("bisect", "--bad", "2024-03-01", *RUN).json
    found = [culprit for failure in answer["failures"] for culprit in failure["culprits"]]
    assert {(one["package"], one["last_good"], one["first_bad"]) for one in found} == {
        ("aged", "1.0", "2.0"),
        ("early", "1.0", "2.0"),  # which fails on the first day that only the other Python goes back to
    }
    assert any(f"this is the answer for Python {other}" in note for note in answer["notes"])


def test_a_command_that_always_fails_alike_never_worked_and_one_that_fails_otherwise_says_nothing(planted, parts_house):
    write_project(planted.folder, suite_of("part07"), requires=["part07", "other"])
    parts_house.add("other", "1.0", files={"other.py": "EXIT = 'gone'\n"}, uploaded="2023-01-01T12:00:00Z")
    parts_house.add("other", "2.0", files={"other.py": "EXIT = 3\n"}, uploaded="2024-05-02T12:00:00Z")
    ended = planted("bisect", "--bad", "2024-06-01", "--run", "sh -c 'echo no rule for it; exit 3'")
    assert (ended.code, "fails with every older set of packages" in ended.stdout) == (1, True)
    assert "It ends with no rule for it" in ended.stdout
    ended = planted("bisect", "--bad", "2024-06-01", "--run", "python -c 'import other; exit(other.EXIT)'")
    assert (ended.code, "fail with another error (as of 2024-" in ended.stdout) == (3, True)


@pytest.mark.parametrize(
    ("module", "hint"),
    [("part_07", "a package may be called otherwise"), ("yaml", "pyyaml is declared in requirements-docs.txt")],
)
def test_an_import_that_no_older_package_has_is_told_as_not_installed(planted, module, hint):
    folder = write_project(planted.folder, f"import {module}\n" + suite_of("part07"), requires=["part07"])
    (folder / "requirements-docs.txt").write_text("sphinx\nPyYAML>=6\n", encoding="utf-8")
    subprocess.run(["git", "add", "."], cwd=folder, check=True)
    ended = planted("bisect", "--bad", "2024-06-01", *RUN[:2])
    assert ended.code == 1
    assert f"Not installed: {module}." in ended.stdout
    assert hint in ended.stdout


def test_what_is_missing_is_suggested_with_the_file_that_declares_it(planted):
    tests = suite_of("part07") + "    def test_missing(self):\n        import yaml\n"
    folder = write_project(planted.folder, tests, requires=["part07"])
    (folder / "requirements-docs.txt").write_text("sphinx\nPyYAML>=6\n", encoding="utf-8")
    subprocess.run(["git", "add", "."], cwd=folder, check=True)
    answer = planted("bisect", "--good", "2024-01-15", "--bad", "2024-06-01", *RUN)
    told = answer.json
    assert told["failing_at_both"] == ["test_mine.T.test_missing"]
    assert "--with pyyaml" in told["advice"]
    assert "pyyaml is declared in requirements-docs.txt" in told["advice"]


def test_steps_back_run_some_of_the_failing_tests_before_all(planted, parts_house):
    parts_house.add("wide", "1.0", files={"wide.py": source("1.0")}, uploaded="2023-01-01T12:00:00Z")
    broken = source("2.0", broken="wide is broken")
    for version, day in (("2.0", "2024-05-20"), ("2.1", "2024-07-20")):
        parts_house.add("wide", version, files={"wide.py": broken}, uploaded=f"{day}T12:00:00Z")
    tests = suite_of("wide")
    for number in range(20):
        tests += f"    def test_of_{number}(self):\n        import wide\n        wide.work()\n"
    write_project(planted.folder, tests, requires=["wide"])
    ran = planted("bisect", "--bad", "2024-08-01", *RUN[:2])
    assert "21 tests fail since wide 2.0" in ran.stdout
    assert " 2 weeks before  3 of 3 tests failed" in ran.stderr
    assert "16 weeks before, all tests" in ran.stderr


def test_tests_that_fail_alone_are_run_with_the_others_before_no_good_end_is_found(planted, parts_house):
    parts_house.add("lone", "1.0", files={"lone.py": source("1.0")}, uploaded="2023-01-01T12:00:00Z")
    broken = source("2.0", broken="lone is broken")
    parts_house.add("lone", "2.0", files={"lone.py": broken}, uploaded="2024-05-20T12:00:00Z")
    tests = "ready = []\n" + suite_of("lone").replace("self.assertEqual(mine.ANSWER, 42)", "pass")
    tests += "    def test_a(self):\n        ready.append(1)\n"
    for number in range(20):
        tests += (
            f"    def test_of_{number}(self):\n        import lone\n        assert lone.work() and ready, 'alone'\n"
        )
    write_project(planted.folder, tests, requires=["lone"])
    answer = planted("bisect", "--bad", "2024-08-01", *RUN).json
    (culprit,) = answer["failures"][0]["culprits"]
    assert (culprit["package"], culprit["last_good"], culprit["first_bad"]) == ("lone", "1.0", "2.0")


def test_a_module_that_fails_to_import_now_stands_for_its_tests_on_older_days(planted, parts_house):
    """Today the module can't be imported; before, a test of it fails; only before that it passes."""
    parts_house.add("whole", "1.0", files={"whole.py": source("1.0")}, uploaded="2022-12-01T12:00:00Z")
    broken = source("2.0", broken="whole is broken")
    parts_house.add("whole", "2.0", files={"whole.py": broken}, uploaded="2023-03-01T12:00:00Z")
    parts_house.add("whole", "3.0", files={"whole.py": "import gone\n"}, uploaded="2024-07-01T12:00:00Z")
    parts_house.add("timely", "1.0", files={"timely.py": ""}, uploaded="2022-12-20T12:00:00Z")
    write_project(planted.folder, "import whole\n" + suite_of("whole"), requires=["whole", "timely"])
    answer = planted("bisect", "--bad", "2024-08-01", *RUN).json
    found = {(one["last_good"], one["first_bad"]) for failure in answer["failures"] for one in failure["culprits"]}
    assert found == {("2.0", "3.0"), ("1.0", "2.0")}
