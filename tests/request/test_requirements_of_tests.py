"""What a project's tests need is found wherever projects say so."""

from __future__ import annotations

import pytest

from harness.request.lockfiles import environment_of
from harness.request.project_requirements import Wanted, requirements_of

ENVIRONMENT = environment_of("3.11.7")
TOX = """
[base]
deps =
    responses
[testenv]
deps =
    pytest==7.2.0
    {[base]deps}
    django42: Django>=4.2,<5.0
    -r{toxinidir}/tests/needs.txt
    .[fast]
"""
SETUP = """
from setuptools import setup

needs = ["numpy", "networkx>=2.0"]
setup(name="birch", install_requires=needs, tests_require=["nose"], extras_require={"docs": ["furo"]}, version=read())
"""
POETRY = """
[tool.poetry]
name = "mine"
[tool.poetry.group.dev.dependencies]
pytest = "^6.2.4"
black = "*"
factory-boy = {version = "3.2.1", extras = ["doc"]}
"""
HATCH = """
[project]
name = "mine"
dependencies = ["six"]
[tool.hatch.envs.default]
dependencies = ["pytest", "mypy", "ruff-api"]
"""
UNRELATED_TOX = """
[testenv:lint]
deps = flake8
"""


def write(tmp_path, name, text):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def requirements(tmp_path):
    return requirements_of(tmp_path, None, Wanted(find=True), ENVIRONMENT).requirements


def test_those_of_tox_without_what_is_for_one_of_its_environments(tmp_path):
    write(tmp_path, "tox.ini", TOX)
    write(tmp_path, "tests/needs.txt", "requests-mock==1.9\n")
    write(tmp_path, "setup.cfg", "[metadata]\nname = mine\n[options]\ninstall_requires =\n    six\n"
          "[options.extras_require]\nfast = orjson\n")  # fmt: skip
    assert requirements(tmp_path) == ("six", "orjson", "pytest", "responses", "requests-mock")


def test_those_that_a_setup_file_names_as_literals(tmp_path):
    write(tmp_path, "setup.py", SETUP)
    assert requirements(tmp_path) == ("numpy", "networkx>=2.0", "nose")


def test_a_group_of_poetry_without_tools_that_nothing_imports(tmp_path):
    write(tmp_path, "pyproject.toml", POETRY)
    assert requirements(tmp_path) == ("pytest>=6.2.4", "factory-boy[doc]")


def test_a_tool_that_the_tests_import_is_kept(tmp_path):
    write(tmp_path, "pyproject.toml", HATCH)
    write(tmp_path, "tests/test_it.py", "import mypy.api\n")
    assert requirements(tmp_path) == ("six", "pytest", "mypy", "ruff-api")


@pytest.mark.parametrize("name", ["requirements-test.txt", "test_requirements.txt", "requirements/tests.in"])
def test_files_that_are_called_after_tests(tmp_path, name):
    write(tmp_path, name, "pytest-mock==3.10\nhypothesis>=6\n")
    write(tmp_path, "requirements-dev.txt", "tox\n")
    assert requirements(tmp_path) == ("pytest-mock", "hypothesis>=6")


def test_what_a_file_of_pins_was_made_of_takes_its_place(tmp_path):
    write(tmp_path, "tox.ini", "[testenv]\ndeps =\n    -r requirements/tests.txt\n")
    write(tmp_path, "requirements/tests.txt", "iniconfig==2.0.0\npluggy==1.0.0\npytest==7.2.1\n")
    write(tmp_path, "requirements/tests.in", "pytest\n")
    assert requirements(tmp_path) == ("pytest",)


def test_files_of_other_work_do_not_count_where_the_tests_have_their_own(tmp_path):
    write(tmp_path, "requirements-docs.txt", "sphinx\n")
    write(tmp_path, "requirements-test.txt", "pytest-mock\n")
    assert requirements(tmp_path) == ("pytest-mock",)


def test_where_it_was_found_is_told(tmp_path):
    write(tmp_path, "tox.ini", TOX)
    assert any("tox" in told for told in requirements_of(tmp_path, None, Wanted(find=True), ENVIRONMENT).told)


def test_nothing_is_looked_for_where_the_user_named_what_is_needed(tmp_path):
    write(tmp_path, "tox.ini", TOX)
    assert requirements_of(tmp_path, None, Wanted(), ENVIRONMENT).requirements == ()


def test_a_file_that_can_not_be_read_is_left_alone(tmp_path):
    write(tmp_path, "tox.ini", UNRELATED_TOX + "[testenv:lint]\nbroken\n")
    write(tmp_path, "setup.py", "def (")
    assert requirements(tmp_path) == ()
