"""Test tools that a project uses without requiring them are found, and no others."""

from __future__ import annotations

from harness.question.lockfiles import environment_of
from harness.question.project_requirements import RequestedExtras, requirements_of
from harness.question.tools_in_use import plugin_of_option, plugins_in_use

TESTS = """
import httpretty, json
import pytest
from mine import mock_things

@pytest.mark.asyncio
async def test_one(mocker, tmp_path): pass

def test_two(benchmark): pass

@pytest.fixture
def benchmark(): pass
"""


def test_plugins_are_found_by_options_settings_fixtures_marks_and_imports(tmp_path):
    (tmp_path / "setup.cfg").write_text("[tool:pytest]\naddopts = --cov=mine -q --strict-markers\ntimeout = 60\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text(TESTS)
    assert set(plugins_in_use(tmp_path)) == {
        "pytest-cov", "pytest-timeout", "httpretty", "pytest-asyncio", "pytest-mock"
    }  # fmt: skip


def test_requirements_of_the_project_are_unchanged(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --cov-report=xml -n 2\n")
    (tmp_path / "requirements-test.txt").write_text("pytest-cov<6\n")
    found = requirements_of(tmp_path, None, RequestedExtras(find=True), environment_of("3.11.7"))
    assert found.requirements == ("pytest-cov<6", "pytest-xdist")
    assert any("-n" in told for told in found.notes)


def test_a_module_of_the_project_is_not_a_tool(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text("from .mock import thing\n")
    assert plugins_in_use(tmp_path) == {}


def test_setuptools_is_added_where_the_project_imports_pkg_resources(tmp_path):
    (tmp_path / "setup.py").write_text("import pkg_resources\n")
    (tmp_path / "mine.py").write_text("# no pkg_resources here\n")
    assert plugins_in_use(tmp_path) == {}
    (tmp_path / "mine.py").write_text("def version():\n    from pkg_resources import get_distribution\n")
    assert plugins_in_use(tmp_path) == {"setuptools": "pkg_resources"}


def test_plugins_are_known_by_their_options():
    told = [plugin_of_option(word) for word in ("--cov=mine", "--cov-report", "-n4", "-n", "-x", "tests")]
    assert told == ["pytest-cov", "pytest-cov", "pytest-xdist", "pytest-xdist", "", ""]
