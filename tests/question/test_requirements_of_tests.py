"""The requirements of a project's tests are found wherever projects declare them."""

from __future__ import annotations

import pytest

from harness.question.lockfiles import environment_of
from harness.question.project_requirements import RequestedExtras, requirements_of

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
    return requirements_of(tmp_path, None, RequestedExtras(find=True), ENVIRONMENT).requirements


def test_shared_requirements_of_tox_are_read(tmp_path):
    write(tmp_path, "tox.ini", TOX)
    write(tmp_path, "tests/needs.txt", "requests-mock==1.9\n")
    write(tmp_path, "setup.cfg", "[metadata]\nname = mine\n[options]\ninstall_requires =\n    six\n"
          "[options.extras_require]\nfast = orjson\n")  # fmt: skip
    assert requirements(tmp_path) == ("six", "pytest", "responses", "requests-mock", "orjson")


def test_literal_requirements_in_a_setup_file_are_read(tmp_path):
    write(tmp_path, "setup.py", SETUP)
    assert requirements(tmp_path) == ("numpy", "networkx>=2.0", "nose")


def test_a_poetry_group_is_read_without_unused_tools(tmp_path):
    write(tmp_path, "pyproject.toml", POETRY)
    assert requirements(tmp_path) == ("pytest>=6.2.4", "factory-boy[doc]")


def test_a_tool_imported_by_the_tests_is_kept(tmp_path):
    write(tmp_path, "pyproject.toml", HATCH)
    write(tmp_path, "tests/test_it.py", "import mypy.api\n")
    assert requirements(tmp_path) == ("six", "pytest", "mypy", "ruff-api")


def test_arbitrary_equality_is_a_pin_wherever_it_is_declared(tmp_path):
    write(tmp_path, "tox.ini", "[testenv]\ndeps =\n    pytest===7.2.0\n    -r needs.txt\n")
    write(tmp_path, "needs.txt", "requests-mock===1.9\n")
    write(tmp_path, "pyproject.toml", "[project]\nname = 'mine'\ndependencies = ['six===1.16.0']\n"
          "[dependency-groups]\ntests = ['hypothesis===6.1']\n")  # fmt: skip
    # The project's own pin counts until --unpin; those of its tests say only what they were developed with.
    assert requirements(tmp_path) == ("six===1.16.0", "hypothesis", "pytest", "requests-mock")


@pytest.mark.parametrize("name", ["requirements-test.txt", "test_requirements.txt", "requirements/tests.in"])
def test_files_named_after_tests_are_read(tmp_path, name):
    write(tmp_path, name, "pytest-mock==3.10\nhypothesis>=6\n")
    write(tmp_path, "requirements-dev.txt", "tox\n")
    assert requirements(tmp_path) == ("pytest-mock", "hypothesis>=6")


def test_the_source_of_a_pinned_file_replaces_it(tmp_path):
    write(tmp_path, "tox.ini", "[testenv]\ndeps =\n    -r requirements/tests.txt\n")
    write(tmp_path, "requirements/tests.txt", "iniconfig==2.0.0\npluggy==1.0.0\npytest==7.2.1\n")
    write(tmp_path, "requirements/tests.in", "pytest\n")
    assert requirements(tmp_path) == ("pytest",)


def test_other_files_are_ignored_if_tests_have_their_own(tmp_path):
    write(tmp_path, "requirements-docs.txt", "sphinx\n")
    write(tmp_path, "requirements-test.txt", "pytest-mock\n")
    assert requirements(tmp_path) == ("pytest-mock",)


def test_the_source_of_requirements_is_reported(tmp_path):
    write(tmp_path, "tox.ini", TOX)
    assert any("tox" in told for told in requirements_of(tmp_path, None, RequestedExtras(find=True), ENVIRONMENT).notes)


def test_nothing_is_searched_if_the_user_named_the_requirements(tmp_path):
    write(tmp_path, "tox.ini", TOX)
    assert requirements_of(tmp_path, None, RequestedExtras(), ENVIRONMENT).requirements == ()


def test_an_unreadable_file_is_ignored(tmp_path):
    write(tmp_path, "tox.ini", UNRELATED_TOX + "[testenv:lint]\nbroken\n")
    write(tmp_path, "setup.py", "def (")
    assert requirements(tmp_path) == ()


def test_tools_that_no_test_uses_are_left_out_wherever_they_are_named(tmp_path):
    write(tmp_path, "tox.ini", "[testenv]\ndeps =\n    pytest\n    flake8\n    black\n    mypy\n")
    write(tmp_path, "requirements.txt", "six==1.16.0\nisort==5.0\n")
    write(tmp_path, "tests/test_it.py", "import subprocess\nimport black\nsubprocess.run(['mypy', '--version'])\n")
    found = requirements_of(tmp_path, None, RequestedExtras(find=True), ENVIRONMENT)
    assert found.requirements == ("six==1.16.0", "pytest", "black", "mypy")
    assert any("flake8" in told and "isort" in told for told in found.notes)


def test_a_group_that_is_asked_for_by_name_keeps_its_tools(tmp_path):
    write(tmp_path, "pyproject.toml", "[dependency-groups]\nlint = ['flake8']\n")
    assert requirements_of(tmp_path, None, RequestedExtras(groups=("lint",)), ENVIRONMENT).requirements == ("flake8",)


def test_the_file_of_pipenv_is_read(tmp_path):
    write(tmp_path, "Pipfile", "[packages]\nsix = '*'\nattrs = {version = '>=22', extras = ['x']}\n"
          "mine = {path = '.'}\n[dev-packages]\npytest = '~=8.0'\nblack = '*'\n")  # fmt: skip
    assert requirements(tmp_path) == ("six", "attrs[x]>=22", "pytest~=8.0")


@pytest.mark.parametrize(
    ("program", "expected"),
    [("mypy", ("attrs", "mypy", "black")), ("sphinx", ("attrs", "sphinx==4.5.0", "furo")), ("pdoc", ("attrs",))],
)
def test_a_place_that_names_the_program_of_the_command_is_taken_whole(tmp_path, program, expected):
    write(tmp_path, "docs/requirements.txt", "sphinx==4.5.0\nfuro\n")
    write(tmp_path, "pyproject.toml", "[project]\nname = 'mine'\ndependencies = ['attrs']\n"
          "[dependency-groups]\ndev = ['mypy', 'black']\n")  # fmt: skip
    wanted = RequestedExtras(find=True, program=program)
    assert requirements_of(tmp_path, None, wanted, ENVIRONMENT).requirements == expected


def test_places_for_tests_are_read_together(tmp_path):
    write(tmp_path, "tox.ini", "[testenv]\ndeps =\n    pytest\n")
    write(tmp_path, "requirements-test.txt", "responses==0.25\npytest>=8\n")
    write(tmp_path, "pyproject.toml", "[dependency-groups]\ntests = ['hypothesis']\n")
    found = requirements_of(tmp_path, None, RequestedExtras(find=True), ENVIRONMENT)
    assert found.requirements == ("hypothesis", "pytest", "responses")
    assert all(any(place in told for told in found.notes) for place in ("tox", "requirements-test.txt", "group tests"))


def test_of_other_places_what_the_tests_import_is_taken(tmp_path):
    write(tmp_path, "tox.ini", "[testenv]\ndeps =\n    pytest\n")
    write(tmp_path, "requirements-dev.txt", "freezegun==1.2\nsphinx\nmypy\n")
    write(tmp_path, "requirements/web.txt", "flask\ndjango\n")
    write(tmp_path, "pyproject.toml", "[project]\nname = 'mine'\ndependencies = ['six']\n"
          "[project.optional-dependencies]\ndev = ['attrs', 'rich']\n")  # fmt: skip
    write(tmp_path, "tests/test_it.py", "import flask\nfrom freezegun import freeze_time\nimport attrs\n")
    assert requirements(tmp_path) == ("six", "pytest", "attrs", "freezegun", "flask")


def test_a_poetry_project_that_fails_to_build_still_has_its_requirements(tmp_path):
    own = '[tool.poetry.dependencies]\npython = "^3.8"\nsix = "^1.2.3"\nattrs = "~22.1"\nzipp = "^0.3"\nnumpy = "*"\n'
    own += 'flask = {version = ">=1,<3", extras = ["async"]}\nredis = {version = "4.5", optional = true}\n'
    write(tmp_path, "pyproject.toml", POETRY + own + '[tool.poetry.extras]\ncache = ["redis"]\n')
    found = requirements_of(tmp_path, None, RequestedExtras(find=True), ENVIRONMENT)
    own = {"six<2,>=1.2.3", "attrs<22.2,>=22.1", "zipp<0.4,>=0.3", "numpy", "flask[async]<3,>=1"}
    assert own <= set(found.requirements)
    named = requirements_of(tmp_path, None, RequestedExtras(extras=("cache",)), ENVIRONMENT)
    assert "redis==4.5" in named.requirements


def test_a_source_distribution_that_fails_to_build_has_the_requirements_of_its_metadata(tmp_path):
    write(
        tmp_path, "PKG-INFO", "Metadata-Version: 2.1\nName: mine\nRequires-Dist: astor (>=0.8)\n\nRequires-Dist: no\n"
    )
    write(tmp_path, "setup.py", "from setuptools import setup\nsetup(install_requires=read())\n")
    assert requirements_of(tmp_path, None, RequestedExtras(), ENVIRONMENT).requirements == ("astor>=0.8",)


def test_a_file_outside_the_project_that_tox_or_a_link_names_is_not_read(tmp_path):
    (tmp_path / "user").write_text("private-name\n", encoding="utf-8")
    project = tmp_path / "project"
    project.mkdir()
    write(project, "tox.ini", "[testenv]\ndeps =\n    pytest\n    -r ../user\n")
    (project / "requirements-test.txt").symlink_to("../user")
    (project / "requirements.txt").symlink_to("../user")
    required = requirements_of(project, None, RequestedExtras(find=True), ENVIRONMENT)
    assert "private-name" not in (*required.for_tests, *required.requirements)
