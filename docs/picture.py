"""Runs a command in a terminal of its own and draws what it shows: `python docs/picture.py [--rows N] OUT.svg COMMAND`.

`--rows` keeps only so many of the last rows. `nox -s picture` makes the picture of the README and of the landing page.
"""

from __future__ import annotations

import argparse
import os
import pty
import shlex
import struct
import sys
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ

import pyte
from rich.console import Console
from rich.style import Style
from rich.text import Text

COLUMNS, HEIGHT = 100, 400


def screen_of(command: list[str]) -> pyte.Screen:
    """Run a command on a terminal of 100 columns; return its screen at the end. The output is shown here, too."""
    screen = pyte.Screen(COLUMNS, HEIGHT)
    screen.set_mode(pyte.modes.LNM)
    stream = pyte.ByteStream(screen)
    child, terminal = pty.fork()
    if child == 0:
        environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": "50"}
        os.execvpe(command[0], command, environment)  # noqa: S606
    ioctl(terminal, TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    while True:
        try:
            written = os.read(terminal, 65536)
        except OSError:  # the end of a terminal on Linux
            written = b""
        if not written:
            break
        sys.stdout.buffer.write(written)
        sys.stdout.flush()
        stream.feed(written)
    if status := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        sys.exit(status)
    return screen


def rows_of(screen: pyte.Screen) -> list[Text]:
    """The rows of a screen with their colours, without empty ones at the end."""
    rows = []
    for number in range(HEIGHT):
        row = Text()
        for column in range(COLUMNS):
            cell = screen.buffer[number][column]
            row.append(cell.data, Style(color=_color(cell.fg), bold=cell.bold, italic=cell.italics))
        row.rstrip()
        rows.append(row)
    while rows and not rows[-1].plain:
        rows.pop()
    return rows


def _typed(command: list[str]) -> str:
    """The command as a user types it, without the folder for results."""
    words = command[: command.index("--results")] if "--results" in command else command
    return shlex.join(words)


def _color(name: str) -> str | None:
    if name == "default":
        return None
    if len(name) == 6 and all(letter in "0123456789abcdef" for letter in name):
        return f"#{name}"
    return {"brown": "yellow"}.get(name, name.replace("bright", "bright_"))


def main() -> None:
    """Run, draw and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--rows", type=int, default=0)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    chosen = parser.parse_args()
    rows = rows_of(screen_of(chosen.command))
    kept = rows[-chosen.rows :] if chosen.rows else rows
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True, color_system="truecolor")
        console.print(Text.assemble(("$ ", "bold green"), (_typed(chosen.command), "bold")))
        if len(kept) < len(rows):
            console.print("...", style="dim")
        for row in kept:
            console.print(row, no_wrap=True, crop=True)
        console.save_svg(str(chosen.out), title="harness", font_aspect_ratio=0.6)


if __name__ == "__main__":
    main()
