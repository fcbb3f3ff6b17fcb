"""`--ask`: the user judges each run by hand; what was judged is kept, labelled, and never repeated by the machine."""

from __future__ import annotations

import pytest
from at_a_terminal import Terminal
from support import Harness, fill
from wheelhouse import Wheelhouse

BODY = "import plot\nprint('line 1\\n' * 20)\nprint('the curve is', 'wrong' if plot.LOSS > 2 else 'right')\n"
REPRO = f"""# /// script
# dependencies = ["plot"]
# [tool.harness.subjects.plot]
# [tool.harness.signature]
# exception = "ValueError"
# ///
{BODY}"""
ASKED = "[l]og: "


@pytest.fixture(scope="module")
def plots(tmp_path_factory: pytest.TempPathFactory) -> Wheelhouse:
    """A package that never raises; from 1.4 on its curve is wrong."""
    house = Wheelhouse(tmp_path_factory.mktemp("plots"))
    fill(house, "plot", "GGGGBBB")
    return house


@pytest.fixture
def here(harness: Harness, plots: Wheelhouse) -> Harness:
    (harness.folder / "plot_it.py").write_text(REPRO, encoding="utf-8")
    return harness.with_environ(**plots.environ)


WORDS = ("bisect", "plot", "--repro", "plot_it.py", "--good", "1.0", "--bad", "1.6", "--ask")


def test_a_question_is_judged_run_by_run_and_kept(here: Harness) -> None:
    terminal = Terminal(here, *WORDS)
    assert finish(terminal) == 0, terminal.screen
    assert "judged by hand" in terminal.screen
    assert "harness shell bad" in terminal.screen
    again = Terminal(here, *WORDS)
    assert again.end() == 0
    assert ASKED not in again.screen
    assert "this question was answered before" in again.screen
    report = here("report", "--format", "json").json
    assert (report["last_good"], report["first_bad"]) == ("1.3", "1.4")
    assert {step["reason"] for step in report["steps"]} == {"judged by hand"}
    assert "every run was judged by hand (--ask)" in report["notes"]
    refused = here("probe", "--again", report["culprits"][0]["sides"][0]["observation"])
    assert (refused.code, "was judged by hand" in refused.stderr) == (2, True)


def finish(terminal: Terminal) -> int:
    """Judge what is left, by the last line of each run."""
    while True:
        try:
            verdict = terminal.expect(ASKED)
        except AssertionError:
            return terminal.end()
        terminal.type("b\n" if "is wrong" in verdict else "g\n")


def test_quitting_keeps_what_was_judged_and_a_skip_tries_another(here: Harness) -> None:
    terminal = Terminal(here, *WORDS)
    assert "is wrong" in terminal.expect(ASKED)
    terminal.type("bad\n")
    terminal.expect(ASKED)
    terminal.type("q\n")
    terminal.expect("the same command goes on here; what you judged is kept")
    assert terminal.end() == 130
    terminal = Terminal(here, *WORDS)
    first = terminal.expect(ASKED)
    assert "is right" in first  # 1.6 was judged
    terminal.type("g\n")
    third = terminal.expect(ASKED)
    terminal.type("k\n")
    other = terminal.expect(ASKED)
    assert name_in(other) != name_in(third)
    terminal.type("b\n" if "is wrong" in other else "g\n")
    assert finish(terminal) in (0, 3)


def name_in(shown: str) -> str:
    return shown[shown.rindex("plot 1.") :][:8]


def test_a_run_can_be_made_again_and_looked_at(here: Harness) -> None:
    terminal = Terminal(here, *WORDS)
    assert "... 10 lines before" in terminal.expect(ASKED)
    terminal.type("l\n")
    assert terminal.expect(ASKED).count("| line 1") == 20
    terminal.type("what\n")
    assert "type one of these letters" in terminal.expect(ASKED)
    terminal.type("r\n")
    assert "the curve is wrong" in terminal.expect(ASKED)
    terminal.type("s\n")
    terminal.expect("gone when you leave")
    terminal.type("ls; exit\n")
    terminal.expect("plot_it.py")
    terminal.expect(ASKED)
    terminal.type("q\n")
    assert terminal.end() == 130


def test_a_command_of_a_project_finds_the_package_too(here: Harness) -> None:
    (here.folder / "requirements.txt").write_text("plot\n", encoding="utf-8")
    (here.folder / "check.py").write_text(BODY, encoding="utf-8")
    words = ("--run", "python check.py", "--good", "2023-03-15", "--ask")
    terminal = Terminal(here, "bisect", *words)
    assert finish(terminal) == 0, terminal.screen
    assert "plot 1.4" in terminal.screen
    assert "plot<1.4" in terminal.screen


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ((), "--ask needs a terminal"),
        (("--flaky",), "--flaky does not apply with --ask"),
        (("--depth", "file"), "--depth file does not apply with --ask"),
    ],
)
def test_mistakes_are_one_sentence(here: Harness, more: tuple[str, ...], said: str) -> None:
    if not more:
        ended = here(*WORDS)
        assert (ended.code, said in ended.stderr) == (2, True)
        return
    terminal = Terminal(here, *WORDS, *more)
    assert terminal.end() == 2
    assert said in " ".join(terminal.screen.split())
