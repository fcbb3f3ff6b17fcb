"""`harness bisect python`: since which Python it fails, and whether that is Python or a package that it installs."""

from __future__ import annotations

import pytest
from planted_upgrades import source
from wheelhouse import Wheelhouse

from harness.environment import PipSettings, Uv
from harness.errors import UserMistake

REPRO = """\
# /// script
# dependencies = [{dependencies}]
# [tool.harness]
# [tool.harness.signature]
# exception = "{exception}"
# ///
{body}
"""


def _here(minor):
    try:
        return Uv(PipSettings()).find_python(minor)
    except UserMistake:
        return None


pytestmark = pytest.mark.skipif(
    any(_here(minor) is None for minor in ("3.11", "3.12", "3.13")), reason="needs Python 3.11, 3.12 and 3.13"
)


def write(harness, body, *, exception, dependencies=""):
    text = REPRO.format(body=body, exception=exception, dependencies=dependencies)
    (harness.folder / "step.py").write_text(text, encoding="utf-8")
    return ("bisect", "python", "--repro", "step.py", "--good", "3.11", "--bad", "3.13", "--json")


@pytest.mark.parametrize(
    ("body", "exception", "first"),
    [
        ("import unittest; unittest.TestCase().assertEquals(1, 1)", "AttributeError", "3.12"),
        ("import cgi", "ModuleNotFoundError", "3.13"),
    ],
)
def test_python_itself_is_the_culprit(harness, body, exception, first):
    ended = harness(*write(harness, body, exception=exception))
    answer = ended.json
    assert (ended.code, answer["status"], answer["first_bad"]) == (0, "found", first)
    (culprit,) = answer["failures"][0]["culprits"]
    assert culprit["package"] == "python"
    assert culprit["proved"]
    assert answer["sentence"] == f"step fails since Python {first}."


def test_a_package_that_only_the_newer_python_installs_is_told_from_it(harness, tmp_path_factory):
    house = Wheelhouse(tmp_path_factory.mktemp("house"))
    house.add("tools", "1.0", files={"tools.py": source("1.0")})
    house.add("tools", "2.0", files={"tools.py": source("2.0", broken="it broke")}, requires_python=">=3.12")
    harness = harness.with_environ(**house.environ)
    command = write(harness, "import tools; tools.work()", exception="RuntimeError", dependencies='"tools"')
    answer = harness(*command).json
    assert (answer["status"], answer["first_bad"]) == ("found", "3.12")
    (culprit,) = answer["failures"][0]["culprits"]
    assert (culprit["package"], culprit["last_good"], culprit["first_bad"]) == ("tools", "1.0", "2.0")
    assert answer["sentence"] == "step fails since Python 3.12 (the culprit is tools 2.0)."


def test_the_fix_can_be_a_python(harness):
    command = write(harness, "import sys\nif sys.version_info < (3, 12): raise KeyError('old')", exception="KeyError")
    command = (*command[:4], "--bad", "3.11", "--good", "3.13", "--find-fix", "--json")
    answer = harness(*command).json
    assert (answer["status"], answer["last_bad"], answer["first_good"]) == ("fixed", "3.11", "3.12")


@pytest.mark.parametrize(
    ("ends", "named"),
    [
        (("--good", "3.13", "--bad", "3.11"), "swap them"),
        (("--good", "3.12", "--bad", "3.12"), "nothing between"),
        (("--good", "tuesday"), "3.12"),
        (("--good", "3.99"), "3.99"),
        (("--good", "3.11", "--python", "3.12"), "--python"),
    ],
)
def test_mistakes_get_one_sentence(harness, ends, named):
    write(harness, "import sys", exception="KeyError")
    ended = harness("bisect", "python", "--repro", "step.py", *ends)
    assert ended.code == 2
    assert named in ended.stderr
    assert "Traceback" not in ended.stderr
