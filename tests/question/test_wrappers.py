"""A command in a wrapper is run without it, or refused with what to type instead."""

from __future__ import annotations

import pytest

from harness.errors import UserMistake
from harness.question.repros import chosen_repro, runs_tests, unwrapped


@pytest.mark.parametrize(
    ("typed", "run"),
    [
        ("uv run pytest -x tests", "pytest -x tests"),
        ("uv run --frozen -q -- pytest", "pytest"),
        ("uv run -m pytest -k one", "python -m pytest -k one"),
        ("uv run check.py 1", "python check.py 1"),
        ("poetry run pytest 'a b'", "pytest 'a b'"),
        ("pdm run python -m unittest", "python -m unittest"),
        ("pipenv run pytest", "pytest"),
        ("uvx pytest", "pytest"),
        ("python -m poetry run pytest", "pytest"),
        ("pytest  -x", "pytest  -x"),
        ("uv pip check", "uv pip check"),
        ("'unclosed", "'unclosed"),
    ],
)
def test_a_wrapper_that_only_chooses_an_environment_is_left_out(typed, run):
    assert unwrapped(typed) == run


@pytest.mark.parametrize(
    "typed", ["nox -s tests", "tox -e py", "hatch run pytest", "hatch test", "python -m nox", "uv run tox", "uvx nox"]
)
def test_what_makes_environments_of_its_own_is_refused(typed):
    with pytest.raises(UserMistake, match="makes its own environments") as caught:
        unwrapped(typed)
    assert '--run "pytest"' in caught.value.hint


def test_an_option_that_changes_what_is_installed_is_refused():
    with pytest.raises(UserMistake, match="--with") as caught:
        unwrapped("uv run --with idna==3.4 pytest")
    assert "--extra" in caught.value.hint


def test_a_script_of_the_project_is_what_it_says(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.pdm.scripts]\ntest = 'pytest tests'\nall = {cmd = 'pytest'}\n")
    assert unwrapped("pdm run test -x", tmp_path) == "pytest tests -x"
    assert unwrapped("pdm run all", tmp_path) == "pytest"


def test_every_question_reads_the_command_alike():
    assert runs_tests("uv run pytest")
    assert chosen_repro(None, "uv run pytest -x", None, ()).argv == ("pytest", "-x")
