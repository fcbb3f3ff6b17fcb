"""Output of unknown packages cannot affect the terminal."""

from __future__ import annotations

import io

import pytest
from rich.table import Table
from rich.text import Text

from harness.terminal.console import Console

EVIL = "a\x1b[2Jb\x1b]8;;http://x\x1b\\c\x1b]8;;\x07d\u202ee\x9b1mf[/x]"


@pytest.mark.parametrize("is_terminal", [True, False])
def test_escape_sequences_never_reach_the_terminal(is_terminal):
    out = io.StringIO()
    console = Console(file=out, force_terminal=is_terminal, width=80, color_system="standard" if is_terminal else None)
    table = Table.grid()
    table.add_row(EVIL, Text(EVIL, style="bold"))
    console.print(EVIL)
    console.print(Text(EVIL, style="red"))
    console.print(table)
    printed = out.getvalue()
    assert printed.count("[/x]") + printed.count("[/x") >= 4
    for code in ("\x1b[2J", "\x1b]8", "\x9b", "\u202e", "\x07"):
        assert code not in printed
    assert ("\x1b[31m" in printed) is is_terminal


def test_lines_and_styles_match_rich():
    out = io.StringIO()
    Console(file=out, width=20).print("one\ntwo  three")
    assert out.getvalue() == "one\ntwo  three\n"
