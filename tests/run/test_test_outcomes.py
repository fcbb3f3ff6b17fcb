"""The result of each test in real runs of pytest and unittest, which behave like the plain tools."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap

import probes
import pytest

from harness.model import Outcome, RaisedException, TestOutcome
from harness.model.observation import TESTS_LIMIT, WHOLE_RUN
from harness.run.commands import only, read_record

SUITE = """
import unittest
import pytest
import tool

def test_passes(): pass

def test_raises():
    try:
        tool.old()
    except AttributeError as error:
        raise ValueError("no old tool") from error

@pytest.mark.parametrize("text", ["a", "b::c", "ä"])
def test_texts(text): assert text == "a"

@pytest.fixture
def broken(): tool.old()

def test_needs_the_fixture(broken): pass

@pytest.mark.xfail
def test_expected(): tool.old()

@pytest.mark.xfail
def test_better_than_expected(): pass

@pytest.mark.xfail(strict=True)
def test_strictly_expected(): pass

@pytest.mark.skip
def test_skipped(): tool.old()

@pytest.fixture
def broken_at_the_end():
    yield
    tool.old()

def test_breaks_at_the_end(broken_at_the_end): pass

class TestOld(unittest.TestCase):
    def test_each(self):
        for i in range(3):
            with self.subTest(i=i):
                self.assertEqual(i, 1)
"""

UNITTEST = """
import unittest
import tool

class TestOne(unittest.TestCase):
    def test_passes(self): pass
    def test_differs(self): self.assertEqual(1, 2)
    def test_raises(self): tool.old()
    def test_each(self):
        for i in range(3):
            with self.subTest(i=i):
                self.assertNotEqual(i, 1)
    @unittest.skip("not now")
    def test_skipped(self): pass
    @unittest.expectedFailure
    def test_expected(self): tool.old()
    @unittest.expectedFailure
    def test_better_than_expected(self): pass

class TestTwo(unittest.TestCase):
    @classmethod
    def setUpClass(cls): tool.old()
    def test_never_begins(self): pass
"""


@pytest.fixture
def project(tmp_path):
    """A folder with tests and the module that they use."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "tool.py").write_text("class _Old: pass\ndef new(): pass\n")

    def write(**files: str):
        for name, text in files.items():
            path = folder / f"{name.replace('__in__', '/')}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(textwrap.dedent(text), encoding="utf-8")
        return folder

    return write


def run(folder, *argv, **more):
    return probes.run(
        folder.parent,
        argv=argv,
        invoked_from=folder,
        variables={"PYTHONPATH": str(folder), **more.pop("env", {})},
        **more,
    )


def outcomes(ran):
    return {test.id: test.outcome.value for test in ran.tests}


def test_every_outcome_of_pytest_is_recorded(project):
    ran = run(project(test_suite=SUITE), "pytest", "-q", ".")
    assert ran.outcome is Outcome.EXITED
    assert ran.exit_code == 1
    assert outcomes(ran) == {
        "test_suite.py::test_passes": "passed",
        "test_suite.py::test_raises": "failed",
        "test_suite.py::test_texts[a]": "passed",
        "test_suite.py::test_texts[b::c]": "failed",
        "test_suite.py::test_texts[\\xe4]": "failed",
        "test_suite.py::test_needs_the_fixture": "error",
        "test_suite.py::test_expected": "xfailed",
        "test_suite.py::test_better_than_expected": "xpassed",
        "test_suite.py::test_strictly_expected": "failed",
        "test_suite.py::test_skipped": "skipped",
        "test_suite.py::test_breaks_at_the_end": "error",
        "test_suite.py::TestOld::test_each": "failed",
    }


def test_an_exception_is_recorded_with_its_cause_and_without_frames_of_pytest(project):
    ran = run(project(test_suite=SUITE), "pytest", "-q", ".")
    (raised,) = (test.exception for test in ran.tests if test.id.endswith("test_raises"))
    assert raised.type == "builtins.ValueError"
    assert raised.message == "no old tool"
    assert "builtins.Exception" in raised.bases
    assert [frame.function for frame in raised.frames] == ["test_raises"]
    assert raised.cause.type == "builtins.AttributeError"
    assert "has no attribute 'old'" in raised.cause.message
    assert raised.cause.frames[-1].text == "tool.old()"


def test_a_missing_fixture_is_named_and_not_the_test_that_asks_for_it(project):
    ran = run(project(test_suite="def test_a(nofix): pass\ndef test_b(nofix): pass\n"), "pytest", "-q", ".")
    assert {test.exception.message for test in ran.tests} == {"fixture 'nofix' not found"}


def test_a_frame_names_its_installed_package(project):
    folder = project(test_suite="import click\ndef test_it(): click.IntRange(1, 2).convert('x', None, None)\n")
    (test,) = run(folder, "pytest", "-q", ".").tests
    assert test.exception.type == "click.exceptions.BadParameter"
    assert test.exception.frames[-1].package == "click"
    assert test.exception.frames[-1].file.startswith("click/")


def test_every_outcome_of_unittest_is_recorded(project):
    ran = run(project(test_one=UNITTEST), "python", "-m", "unittest", "-q", "test_one")
    assert (ran.outcome, ran.exit_code) == (Outcome.EXITED, 1)
    assert outcomes(ran) == {
        "test_one.TestOne.test_passes": "passed",
        "test_one.TestOne.test_differs": "failed",
        "test_one.TestOne.test_raises": "error",
        "test_one.TestOne.test_each": "failed",
        "test_one.TestOne.test_skipped": "skipped",
        "test_one.TestOne.test_expected": "xfailed",
        "test_one.TestOne.test_better_than_expected": "xpassed",
        "test_one.TestTwo": "error",
    }
    (raised,) = (test.exception for test in ran.tests if test.id.endswith("test_raises"))
    assert raised.type == "builtins.AttributeError"
    assert [frame.function for frame in raised.frames] == ["test_raises"]


def test_a_unittest_command_without_tests_is_no_pass(project):
    """Up to Python 3.11 its exit code is 0."""
    ran = run(project(test_one="VALUE = 1\n"), "python", "-m", "unittest", "-q", "test_one")
    assert (ran.outcome, ran.tests) == (Outcome.EXITED, ())
    assert ran.detail.startswith("no tests were found")
    assert ran.mistake == "no tests were found"


def test_unittest_discovers_tests(project):
    folder = project(test_one=UNITTEST)
    found = outcomes(run(folder, "python", "-m", "unittest", "discover", "-s", str(folder)))
    assert found["test_one.TestOne.test_passes"] == "passed"


@pytest.mark.parametrize("name", ["test_bad", "package.test_bad", "package.test_bad.TestBad.test_it"])
def test_a_failed_import_under_unittest_has_its_real_exception(project, name):
    folder = project(
        test_bad="import nothing_there", package__in____init__="", package__in__test_bad="import nothing_there"
    )
    (test,) = run(folder, "python", "-m", "unittest", name).tests
    assert test.id == name.removesuffix(".TestBad.test_it")
    assert test.outcome is TestOutcome.ERROR
    assert test.exception.type == "builtins.ModuleNotFoundError"
    assert test.exception.message == "No module named 'nothing_there'"
    assert test.exception.frames[-1].text == "import nothing_there"


def test_an_exception_that_ends_unittest_early_is_reported(project):
    """unittest propagates exceptions other than ImportError."""
    folder = project(test_bad="import tool\ntool.old()\n", test_one=UNITTEST)
    ran = run(folder, "python", "-m", "unittest", "test_one", "test_bad")
    assert outcomes(ran) == {WHOLE_RUN: "error"}
    assert ran.tests[0].exception.type == "builtins.AttributeError"
    assert "has no attribute 'old'" in ran.detail


def test_a_failed_import_under_pytest_is_an_error_of_the_module(project):
    ran = run(project(test_bad="import nothing_there", test_suite=SUITE), "pytest", "-q", ".")
    assert outcomes(ran)["test_bad.py"] == "error"
    assert ran.tests[0].exception.message == "No module named 'nothing_there'"
    assert "passed" in outcomes(ran).values()  # it keeps no other module from being run
    assert ran.exit_code == 1


def test_the_first_failure_does_not_stop_the_run(project):
    folder = project(test_two="def test_one(): assert 0\ndef test_two(): pass\n")
    assert outcomes(run(folder, "pytest", "-x", ".")) == {
        "test_two.py::test_one": "failed",
        "test_two.py::test_two": "passed",
    }


def test_a_failed_conftest_import_is_reported(project):
    folder = project(conftest="import tool\ntool.old()\n", test_suite=SUITE)
    ran = run(folder, "pytest", "-q", ".")
    assert outcomes(ran) == {"conftest.py": "error"}
    assert ran.tests[0].exception.type == "builtins.AttributeError"
    assert ran.exit_code == 4


def test_an_error_that_ends_pytest_early_is_told_without_its_mark(project):
    folder = project(conftest="import os\nprint('E   ImportError: no name old', flush=True)\nos._exit(3)\n")
    (test,) = run(folder, "pytest", "-q", "-s", ".").tests
    assert (test.id, test.exception.message) == (WHOLE_RUN, "ImportError: no name old")


def test_the_ways_in_which_pytest_ends_are_distinguished(project):
    folder = project(
        test_stop="def test_stop(): raise KeyboardInterrupt\n",
        test_none="",
        test_one="def test_one(): assert 0\n",
        late__in__conftest="def pytest_sessionstart(session): raise SystemError('a plugin fails')\n",
        late__in__test_late="def test_late(): pass\n",
    )
    ended = {
        name: run(folder, "pytest", "-q", *words)
        for name, words in {
            "fail": ["test_one.py"],
            "interrupted": ["test_stop.py"],
            "internal": ["late"],
            "usage": ["--no-such-option"],
            "none": ["test_none.py"],
        }.items()
    }
    assert {name: ran.exit_code for name, ran in ended.items()} == {
        "fail": 1,
        "interrupted": 2,
        "internal": 3,
        "usage": 4,
        "none": 5,
    }
    assert len({ran.detail for ran in ended.values()}) == len(ended)
    assert all(ran.outcome is Outcome.EXITED for ran in ended.values())
    assert ended["internal"].tests[0].exception.message == "a plugin fails"
    assert outcomes(ended["usage"]) == {WHOLE_RUN: "error"}
    assert "--no-such-option" in ended["usage"].tests[0].exception.message
    assert outcomes(ended["none"]) == {}


@pytest.mark.parametrize("tool", ["pytest", "unittest"])
def test_output_and_exit_code_match_the_plain_tool(project, tool, tmp_path):
    folder = project(test_suite=SUITE, test_one=UNITTEST)
    words = ["pytest", str(folder)] if tool == "pytest" else ["unittest", "-v", "test_one", "nowhere"]
    argv = [sys.executable, "-m", *words]
    environ = {**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "80", "PYTHONHASHSEED": "0"}
    for name in ("CI", "BUILD_NUMBER"):  # pytest prints more if they are set, and a run does not get them
        environ.pop(name, None)
    # As deep as the sandbox of a run, as the printed paths are relative.
    (place := tmp_path / "some" / "where" / "else").mkdir(parents=True)
    alone = subprocess.run(argv, env=environ, cwd=place, capture_output=True, text=True, check=False)
    ran = run(folder, "python", *argv[1:], env={"COLUMNS": "80"})
    assert ran.exit_code == alone.returncode
    assert normal(ran.tail) == normal(alone.stdout + alone.stderr)


def normal(text):
    """Sorted lines without times: the two streams are merged here."""
    text = re.sub(r"\d+\.\d+s", "", text)
    return sorted(" ".join(line.strip("=").split()) for line in text.splitlines())


@pytest.mark.parametrize(
    ("death", "kind"),
    [
        ("os.kill(os.getpid(), 11)", "Crashed"),
        ("os._exit(3)", "Exited"),
        ("os._exit(0)", "Exited"),
        ("pytest.exit('stop', 3)", "Exited"),
        (f"print({probes.LIMIT!r}, flush=True), time.sleep(60)", "TimedOut"),
    ],
)
def test_a_dying_run_keeps_its_results_and_names_the_test(project, monkeypatch, death, kind):
    probes.limit_when_printed(monkeypatch)
    folder = project(
        test_death="import os, time, pytest\ndef test_before(): pass\n"
        f"def test_dies(): {death}\ndef test_after(): pass\n"
    )
    ran = run(folder, "pytest", "-q", "-s", ".")
    assert outcomes(ran) == {"test_death.py::test_before": "passed", "test_death.py::test_dies": "error"}
    assert ran.tests[1].exception.type == kind
    assert kind == "Crashed" or "in this test" in ran.tests[1].exception.message
    assert "test_death.py::test_dies" in ran.detail


def test_a_test_that_the_machine_failed_counts_as_skipped_and_a_run_of_only_such_as_failed_by_it(project):
    folder = project(
        test_sick="""
        def test_passes(): pass
        def test_fetches(): raise OSError("503 Server Error: Service Unavailable for url: https://huggingface.co/model")
        def test_fails(): assert 1 == 2
        """
    )
    ran = run(folder, "pytest", "-q", ".")
    assert ran.outcome is Outcome.EXITED
    names = ("passes", "fetches", "fails")
    expected = {
        f"test_sick.py::test_{name}": how for name, how in zip(names, ("passed", "skipped", "failed"), strict=True)
    }
    assert outcomes(ran) == expected
    assert ran.detail.startswith("1 of 3 tests failed")
    ran = run(folder, "pytest", "-q", ".", "-k", "not fails")
    assert ran.outcome is Outcome.MACHINE_FAILED
    assert ran.detail.startswith("OSError: 503 Server Error")
    assert ran.detail.endswith("(test_sick.py::test_fetches)")


def test_a_crash_under_unittest_names_the_test(project):
    folder = project(
        test_death="""
        import os, unittest
        class TestDeath(unittest.TestCase):
            def test_a(self): pass
            def test_b(self): os.kill(os.getpid(), 11)
        """
    )
    ran = run(folder, "python", "-m", "unittest", "test_death")
    assert ran.outcome is Outcome.CRASHED
    assert outcomes(ran) == {"test_death.TestDeath.test_a": "passed", "test_death.TestDeath.test_b": "error"}


def test_tests_on_xdist_workers_are_recorded_with_their_exceptions(project):
    pytest.importorskip("xdist")
    folder = project(test_suite=SUITE)
    alone, spread = run(folder, "pytest", "-q", "."), run(folder, "pytest", "-q", ".", "-n", "2")
    assert outcomes(spread) == outcomes(alone)
    raised = {test.id: test.exception and (test.exception.type, test.exception.message) for test in spread.tests}
    assert raised == {test.id: test.exception and (test.exception.type, test.exception.message) for test in alone.tests}


def test_the_crash_of_an_xdist_worker_has_the_same_message_in_each_run(project):
    pytest.importorskip("xdist")
    folder = project(test_death="import os\ndef test_dies(): os._exit(1)\n")
    (died,) = run(folder, "pytest", "-q", ".", "-n", "1").tests
    assert died.exception.message == "a worker crashed while running 'test_death.py::test_dies'"


def test_a_restricted_pytest_run_loads_only_the_chosen_tests(project):
    folder = project(test_bad="import nothing_there", test_suite=SUITE, sub__in__test_deep="def test_deep(): pass\n")
    wanted = ["test_suite.py::test_texts[b::c]", "test_suite.py::TestOld", "sub/test_deep.py"]
    ran = run(folder, *only(["pytest", "-x", "."], wanted))
    assert outcomes(ran) == {
        "test_suite.py::test_texts[b::c]": "failed",
        "test_suite.py::TestOld::test_each": "failed",
        "sub/test_deep.py::test_deep": "passed",
    }


def test_a_restricted_run_continues_after_a_failed_import(project):
    folder = project(test_bad="import nothing_there", test_suite=SUITE)
    ran = run(folder, *only(["pytest", "."], ["test_bad.py::test_gone", "test_suite.py::test_passes"]))
    assert outcomes(ran) == {"test_bad.py": "error", "test_suite.py::test_passes": "passed"}


def test_a_restricted_run_works_on_xdist_workers(project):
    pytest.importorskip("xdist")
    folder = project(test_suite=SUITE, test_other="def test_other(): pass\n")
    ran = run(folder, *only(["pytest", "-n", "2", "."], ["test_suite.py::test_passes", "test_suite.py::test_raises"]))
    assert outcomes(ran) == {"test_suite.py::test_passes": "passed", "test_suite.py::test_raises": "failed"}


@pytest.mark.parametrize("words", [["test_one", "test_bad"], ["discover", "-s", "FOLDER"]])
def test_a_restricted_run_works_under_unittest(project, words):
    folder = project(test_one=UNITTEST, test_bad="import nothing_there")
    command = ["python", "-m", "unittest", *(str(folder) if word == "FOLDER" else word for word in words)]
    ran = run(folder, *only(command, ["test_one.TestOne.test_passes", "test_one.TestTwo.test_never_begins"]))
    assert outcomes(ran) == {"test_one.TestOne.test_passes": "passed", "test_one.TestTwo": "error"}


def test_tests_of_an_installed_package_have_the_same_names_in_every_environment(tmp_path):
    names = []
    for place in ("old", "new"):
        tests = tmp_path / place / "site-packages" / "shop" / "tests"
        tests.mkdir(parents=True)
        (tests.parent / "__init__.py").touch()
        (tests / "__init__.py").touch()
        (tests / "test_shop.py").write_text("def test_buy(): pass\ndef test_sell(): pass\n")
        environ = {"PYTHONPATH": str(tests.parent.parent)}
        command = ["pytest", "-q", "--pyargs", "shop"]
        names.append(outcomes(probes.run(tmp_path, argv=tuple(command), variables=environ)))
        some = probes.run(tmp_path, argv=only(command, [list(names[0])[1]]), variables=environ)
        assert list(outcomes(some)) == list(names[0])[1:]
    assert names[0] == names[1]
    assert len(names[0]) == 2


def test_an_inner_pytest_run_leaves_no_results(project):
    folder = project(
        test_outer="""
        import os, subprocess, sys
        def test_outer(tmp_path):
            (tmp_path / "test_inner.py").write_text("def test_inner(): assert 0")
            assert subprocess.run([sys.executable, "-m", "pytest", str(tmp_path)]).returncode == 1
        """
    )
    assert outcomes(run(folder, "pytest", "-q", ".")) == {"test_outer.py::test_outer": "passed"}


RERUNS = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    hooks, where = item.ihook, {"nodeid": item.nodeid, "location": item.location}
    hooks.pytest_runtest_logstart(**where)
    for is_last in (False, True):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        failed = any(report.failed for report in reports)
        for report in reports:
            if report.failed and not is_last:
                report.outcome = "rerun"
            hooks.pytest_runtest_logreport(report=report)
        if not failed:
            break
    hooks.pytest_runtest_logfinish(**where)
    return True
"""


def test_the_last_try_of_a_rerun_test_counts(project):
    """Like pytest-rerunfailures."""
    flaky = "tries = []\ndef test_flaky():\n    tries.append(1)\n    assert len(tries) == 2\ndef test_bad(): assert 0\n"
    folder = project(conftest=RERUNS, test_flaky=flaky)
    assert outcomes(run(folder, "pytest", "-q", ".")) == {
        "test_flaky.py::test_flaky": "passed",
        "test_flaky.py::test_bad": "failed",
    }


def test_any_other_command_has_no_tests(tmp_path):
    assert probes.run(tmp_path, argv=("true",)).tests == ()


# -- the record is written by a process that may write anything


def line(test, outcome="passed", **more):
    return json.dumps({"test": test, "outcome": outcome, "seconds": 0.5, **more})


def test_invalid_results_are_left_out(tmp_path):
    record = tmp_path / "record"
    odd = [
        "",
        "[]",
        "3",
        "{",
        "[" * 100_000,
        line("a", "passing"),
        line(3),
        line("c", seconds="x"),
    ]
    record.write_bytes(b"\xff\xfe\n" + "\n".join([*odd, line("ok"), '{"test": "cut of']).encode())
    assert outcomes(read_record(record)) == {"c": "passed", "ok": "passed"}


def test_invalid_exceptions_are_left_out_and_text_is_made_safe(tmp_path):
    record = tmp_path / "record"
    told = {"type": "E", "message": "\x1b[2Jgone", "bases": [], "frames": [], "cause": None}
    record.write_text(
        "\n".join([line("a", "failed", exception={"type": "E"}), line("b\x1b[1m", "failed", exception=told)])
    )
    first, second = read_record(record).tests
    assert (first.id, first.exception) == ("a", None)
    assert (second.id, second.exception) == ("b", RaisedException("E", "gone"))


def test_a_huge_record_is_not_read(tmp_path):
    record = tmp_path / "record"
    record.write_text(line("a"))
    os.truncate(record, 1 << 40)
    assert read_record(record).tests == ()
    assert read_record(record).complaint


def test_the_number_of_kept_tests_is_limited(tmp_path):
    record = tmp_path / "record"
    record.write_text("\n".join(line(f"t{i}") for i in range(TESTS_LIMIT + 100)))
    assert len(read_record(record).tests) == TESTS_LIMIT


@pytest.mark.parametrize("kind", ["folder", "link", "pipe"])
def test_a_record_that_is_not_a_regular_file_is_not_waited_for(tmp_path, kind):
    record = tmp_path / "record"
    if kind == "folder":
        record.mkdir()
    elif kind == "pipe":
        os.mkfifo(record)
    else:
        (tmp_path / "other").write_text(line("a"))
        record.symlink_to(tmp_path / "other")
    read = read_record(record)
    assert read.tests == ()
    assert read.complaint


def test_without_a_record_there_are_no_tests(tmp_path):
    read = read_record(tmp_path / "nowhere")
    assert (read.tests, read.complaint) == ((), "")
