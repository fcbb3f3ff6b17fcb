"""`harness pin` prints the newest set with which a command passes, as what to type; a run has confirmed it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import Harness, fill
from wheelhouse import Wheelhouse

CHECK = "import lib, tool\nlib.step()\ntool.step()\n"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Wheelhouse:
    """`lib` breaks in 1.4 and `tool` in 1.3, a month apart; `tool` comes with `lib`."""
    house = Wheelhouse(tmp_path_factory.mktemp("two"))
    fill(house, "lib", "GGGGBB", requires=("tool",))
    fill(house, "tool", "GGGBBB")
    fill(house, "fine", "GGG")
    return house


@pytest.fixture
def project(harness: Harness, two: Wheelhouse) -> Harness:
    folder = harness.folder
    (folder / "requirements.txt").write_text("lib\nfine\n", encoding="utf-8")
    (folder / "check.py").write_text(CHECK, encoding="utf-8")
    return harness.with_environ(**two.environ)


def test_todays_newest_is_the_set_if_it_passes(project: Harness) -> None:
    (project.folder / "check.py").write_text("import fine\nfine.step()\n", encoding="utf-8")
    ended = project("pin", "--run", "python check.py")
    assert (ended.code, ended.stdout) == (0, "uv add fine==1.2 lib==1.5\n"), ended.stderr
    assert "nothing has to be held back" in ended.stderr


def test_a_repro_needs_no_project(project: Harness) -> None:
    text = "# /// script\n# dependencies = ['fine']\n# ///\nimport fine\nfine.step()\n"
    (project.folder / "ours.py").write_text(text, encoding="utf-8")
    ended = project("pin", "./ours.py", "--format", "pip")
    assert (ended.code, ended.stdout) == (0, "pip install fine==1.2\n"), ended.stderr
    assert project("pin", "./ours.py", "--format", "constraints").stdout.splitlines()[1:] == ["fine==1.2"]


def test_two_culprits_give_the_newest_set_without_both(project: Harness) -> None:
    ended = project("pin", "--run", "python check.py", "--good", "2023-03-15", "--format", "pip")
    assert ended.code == 0, ended.stderr
    assert ended.stdout == "pip install fine==1.2 lib==1.3 tool==1.2\n"
    assert "(a run with them passed)" in ended.stderr
    assert "uv add 'lib<1.4' 'tool<1.3' puts these bounds into pyproject.toml" in ended.stderr
    # The same question again runs nothing, whatever the format.
    words = ("--good", "2023-03-15", "--format", "constraints")
    project("pin", "--run", "python check.py", *words, "-o", "constraints.txt")
    lines = (project.folder / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert lines[1:] == ["fine==1.2", "lib==1.3", "tool==1.2"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "say what has to pass"),
        (("--run", "python check.py", "--constraints", "c.txt"), "--format constraints -o c.txt"),
        (("--run", "python check.py", "--format", "pipp"), "'pipp' is not one of 'uv', 'pip', 'constraints'"),
    ],
)
def test_mistakes_are_one_sentence(project: Harness, words: tuple[str, ...], said: str) -> None:
    ended = project("pin", *words)
    assert ended.code == 2
    assert said in ended.stderr


def test_what_never_passed_has_no_set(project: Harness) -> None:
    Path("check.py").write_text("import lib\nraise SystemExit(1)\n", encoding="utf-8")
    ended = project("pin", "--run", "python check.py")
    assert ended.code == 2
    assert "no set of packages is known with which it passes" in ended.stderr
