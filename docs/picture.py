"""Draws the session that README.md shows as docs/_static/session.svg: `python docs/picture.py`, or `nox -s picture`.

The README has the transcript of a real run between two marks; the picture adds the colours of a terminal. With `--run`
the command of the session runs first, with results of its own, and its transcript replaces that in the README.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parent.parent
OUT = ROOT / "docs" / "_static" / "session.svg"
COLUMNS, ROWS = 120, 40
_BLOCK = re.compile(r"<!-- session -->.*?```console\n(.*?)```", re.DOTALL)
_RUN = re.compile(r"(?P<verdict>good|bad|skipped) +(?P<label>.*?)(?P<rest>   .*?|)(?P<tail>  \[[^\]]*\])?$")
_COLORS = {
    "good": "bold green",
    "bad": "bold red",
    "skipped": "bold yellow",
    "proved": "green",
    "+": "green",
    "-": "red",
}


def with_session_of_now(readme: str) -> str:
    """Return the README with what the command of its session prints now; raises `CalledProcessError` if it fails."""
    block = _BLOCK.search(readme)
    if block is None:
        raise ValueError("README.md has no session")
    command = block[1].splitlines()[0]
    with tempfile.TemporaryDirectory() as results:
        environ = {**os.environ, "COLUMNS": str(COLUMNS), "NO_COLOR": "1", "HARNESS_RESULTS": results}
        ended = subprocess.run(
            [sys.executable, "-m", *shlex.split(command.removeprefix("$ "))],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environ,
            check=True,
        )
        printed = ended.stdout.replace(results, "results").rstrip()
    headline, *rest = printed.splitlines()
    steps = next((number for number, line in enumerate(rest) if not line.startswith("  ")), 0)
    body = "\n".join([command, headline, *(["..."] if steps else []), *rest[steps:], ""])
    return readme[: block.start(1)] + body + readme[block.end(1) :]


def rows_of(readme: str) -> list[str]:
    """Return the rows of the picture: the command, and the last rows of what it printed, cut to the columns."""
    block = _BLOCK.search(readme)
    if block is None:
        raise ValueError("README.md has no session")
    command, *printed = [line[:COLUMNS].rstrip() for line in block[1].rstrip().splitlines()]
    return [command, "...", *printed[-ROWS:]] if len(printed) > ROWS else [command, *printed]


def drawn(rows: list[str]) -> str:
    """Return the picture of rows as SVG."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True, color_system="truecolor")
        # Above the first empty row are the steps, then the answer and its head.
        answer = rows.index("") if "" in rows else len(rows)
        for number, row in enumerate(rows):
            console.print(_coloured(row, number, answer), no_wrap=True, crop=True)
        return console.export_svg(title="harness", font_aspect_ratio=0.6)


def _coloured(row: str, number: int, answer: int) -> Text:
    """Return a row with the colours that it has in a terminal."""
    if number == 0:
        return Text.assemble(("$ ", "bold green"), (row.removeprefix("$ "), "bold"))
    if number < answer:
        run = _RUN.fullmatch(row)
        if run is None:
            return Text(row, "dim")
        start, end = run.span("label")
        text = Text(row)
        text.stylize(_COLORS[run["verdict"]], 0, run.end("verdict"))
        text.stylize("bold", start, end)
        text.stylize("dim", run.start("tail") if run["tail"] else len(row))
        return text
    if number == answer + 1:
        return Text(row, "bold red")
    if row == "Next":
        return Text(row, "bold")
    text = Text(row)
    if head := re.match(r"[A-Z][a-z]+( [a-z]+)*(?=  )", row):
        text.stylize("bold", 0, head.end())
    elif (label := re.match(r"  ([a-z]+)  ", row)) and label[1] in _COLORS:
        text.stylize(_COLORS[label[1]], 0, label.end())
    elif row.startswith("    ") and row.strip()[:1] in ("+", "-"):
        text.stylize(_COLORS[row.strip()[0]])
    return text


if __name__ == "__main__":
    if "--run" in sys.argv:
        page = ROOT / "README.md"
        page.write_text(with_session_of_now(page.read_text(encoding="utf-8")), encoding="utf-8")
    OUT.write_text(drawn(rows_of((ROOT / "README.md").read_text(encoding="utf-8"))), encoding="utf-8")
