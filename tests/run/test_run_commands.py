"""Which commands run tests that the harness can read, and how they are restricted."""

from __future__ import annotations

import pytest

from harness.run.commands import only, recognised, typed


@pytest.mark.parametrize(
    ("command", "tool"),
    [
        ("pytest", "pytest"),
        ("pytest -q tests", "pytest"),
        ("/opt/env/bin/py.test tests", "pytest"),
        ("python -m pytest -x", "pytest"),
        ("python3.12 -W error -X dev -m pytest", "pytest"),
        ("env CI=1 PYTHONHASHSEED=3 pytest", "pytest"),
        ("coverage run --branch -m pytest tests", "pytest"),
        ("python -m coverage run -m unittest", "unittest"),
        ("python -m unittest", "unittest"),
        ("python -m unittest -q pkg.test", "unittest"),
        ("python -B -m unittest discover -s tests", "unittest"),
    ],
)
def test_test_commands_are_recognised(command, tool):
    found = recognised(command.split())
    assert found is not None
    assert found.tool == tool
    assert found.argv[found.at].rpartition("/")[2] in ("pytest", "py.test", "unittest")


@pytest.mark.parametrize(
    "command",
    [
        "",
        "true",
        "python train.py pytest",
        "python -c pytest",
        "python -m pip install pytest",
        "python -I -m pytest",  # it reads no PYTHONPATH
        "python -Es -m unittest",
        "env PYTHONPATH=src pytest",
        "env CI=1",
        "python -m",
        "coverage report -m",
        "sh -c pytest",
    ],
)
def test_any_other_command_is_left_alone(command):
    assert recognised(command.split()) is None


def test_a_command_is_restricted_without_changing_its_arguments():
    command = ["python", "-m", "pytest", "-k", "fast", "tests"]
    restricted = only(command, ["tests/test_a.py::test_b[x y]", "tests/test_a.py::test_c"])
    found = recognised(restricted)
    assert found.argv == tuple(command)
    assert found.only == ("tests/test_a.py::test_b[x y]", "tests/test_a.py::test_c")


def test_a_restriction_replaces_an_earlier_one():
    once = only(["pytest", "tests"], ["a.py::b", "a.py::c"])
    assert recognised(only(once, ["a.py::c"])).only == ("a.py::c",)


def test_other_commands_cannot_be_restricted():
    with pytest.raises(ValueError, match="make test"):
        only(["make", "test"], ["a"])


@pytest.mark.parametrize(
    ("command", "tests", "line"),
    [
        ("pytest -q tests", ["tests/test_a.py::test_b"], "pytest -q tests/test_a.py::test_b"),
        ("pytest -k tests other", ["tests/test_a.py::test_b"], "pytest -k other tests/test_a.py::test_b"),
        ("python -m unittest -q pkg.test", ["pkg.test.A.b"], "python -m unittest -q pkg.test.A.b"),
        ("python -m unittest discover", ["test_a.A.b"], "python -m unittest discover"),
        ("pytest -q tests", [f"tests/test_a.py::test_{i}" for i in range(500)], "pytest -q tests"),
        ("pytest -q tests", [], "pytest -q tests"),
        ("make test", None, "make test"),
    ],
)
def test_a_restricted_command_is_shown_as_a_person_would_type_it(command, tests, line):
    argv = command.split()
    assert typed(only(argv, tests) if tests is not None else argv) == line
