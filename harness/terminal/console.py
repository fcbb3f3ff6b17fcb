"""The console, and what all prints share: no control characters reach the terminal, except those of its own styles."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich.console
from rich.cells import cell_len
from rich.segment import Segment
from rich.text import Text

from harness.model import Verdict
from harness.model.text import cut_between_words, plain
from harness.search import PositionState

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import ConsoleOptions, RenderableType

    from harness.bisection.history import RowState
    from harness.bisection.sections import Row


STYLE = {Verdict.GOOD: "green", Verdict.BAD: "red", Verdict.SKIP: "yellow"}
_STATE_STYLE = {
    "good": "bold green",
    "bad": "bold red",
    "skip": "yellow",
    "excluded": "dim",
    "between-good": "green",
    "between-bad": "red",
}
_FIRST = {"bad": 0, "good": 1, "skip": 2}  # of several states with one letter
_TONE = {"good": "green", "bad": "red", "skip": "yellow", "other": "cyan", "dim": "dim"}
_LABEL = len("Workaround") + 2
_SHORT = len("not shown")
_LOG_WIDTH = 120  # columns of a line if the output is not a terminal


class Console(rich.console.Console):
    """A rich console for untrusted names, messages and diffs, which may contain escapes or rich's markup.

    Whoever writes to it holds the lock `writing`. Otherwise, a picture that is drawn while another thread prints a line
    would erase that line.
    """

    def __init__(self, **options: Any) -> None:
        self.writing = threading.RLock()
        super().__init__(**{"markup": False, **options})

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as rich does, while no other thread writes."""
        with self.writing:
            super().print(*objects, **options)

    def on_broken_pipe(self) -> None:
        """Raise the `BrokenPipeError` that writing has raised, since rich would end the program."""
        raise

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render, and remove control characters from the text of each segment."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable() or segment.text == "\n":
                yield segment
            else:
                yield Segment(plain(segment.text), segment.style)


def short_path(path: Path) -> Path:
    """The path relative to the working directory if it is inside, else unchanged."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def line_width(console: rich.console.Console) -> int:
    """The width of a line in columns: that of the terminal, or 120 for logs and pipes."""
    return console.width if console.is_terminal else _LOG_WIDTH


def print_line(console: rich.console.Console, line: Text | str) -> None:
    """Print one line, cut to the width, between two words if possible."""
    text, width = line.copy() if isinstance(line, Text) else Text(line), line_width(console)
    if cell_len(text.plain) > width:
        text.truncate(width - 1)
        text = text[: cut_between_words(text.plain, len(text.plain))]
        text.append("…")
    console.print(text, soft_wrap=True)


def print_text(console: rich.console.Console, text: Text | str, style: str = "", hang: int = 0) -> None:
    """Print a text in full: on a terminal, wrapped between words, in a log on one line.

    The other lines are indented as the first one is, and by `hang` columns more. A word that is too long, such as a
    path, has a line of its own.
    """
    text = text if isinstance(text, Text) else Text(text, style)
    if not console.is_terminal:
        console.print(text, soft_wrap=True)
        return
    indent = len(text.plain) - len(text.plain.lstrip()) + hang
    cuts, used = [], 0
    for word in re.finditer(r"\S+\s*", text.plain):
        width = cell_len(word[0].rstrip())
        if used > indent and used + width > console.width:
            cuts.append(word.start())
            used = indent
        used = cell_len(text.plain[: word.end()]) if not cuts else used + cell_len(word[0])
    for number, line in enumerate(text.divide(cuts)):
        line.rstrip()
        console.print(Text(" " * indent).append_text(line) if number else line, soft_wrap=True)


def picture(states: Sequence[PositionState | RowState], width: int = _LOG_WIDTH) -> Text:
    """The range as one letter for each release, the oldest first, without excluded releases at either end.

    If there are too many for the width, a letter is that of several neighbours: of one that ran, a bad one first.
    """
    shown = [i for i, state in enumerate(states) if state is not PositionState.EXCLUDED]
    states = states[shown[0] : shown[-1] + 1] if shown else ()
    letters = min(len(states), max(width - len("[]"), 1))
    text = Text("[")
    for letter in range(letters):
        part = states[letter * len(states) // letters : (letter + 1) * len(states) // letters]
        state = min(part, key=lambda state: _FIRST.get(state.value, len(_FIRST)))
        text.append(state.symbol, _STATE_STYLE.get(state.value, "default"))
    return text.append("]")


def print_head(console: rich.console.Console, rows: Iterable[tuple[str, str]]) -> None:
    """Print a line for each label with a text, and an empty line if there is any; nothing is cut."""
    rows = [(label, text) for label, text in rows if text]
    for label, text in rows:
        print_text(console, Text.assemble((f"{label:<{_LABEL}}", "bold"), text), hang=_LABEL)
    if rows:
        console.print()


def print_rows(console: Console, rows: Iterable[Row]) -> None:
    """Print the rows that a screen has room for: short labels in a column, then what they say and the lines below."""
    for row in rows:
        if not row.is_long:
            _print_row(console, row)


def _print_row(console: Console, row: Row) -> None:
    if row.code:
        print_text(console, f"\n  {row.label}", "bold")
        for line in row.code.splitlines():
            style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "dim")
            console.print(Text(f"    {line}", style=style), soft_wrap=True)
        console.print()
        return
    lead = f"  {row.label:<{_SHORT}} "
    if len(row.label) > _SHORT or not row.label:
        lead = f"  {row.label}: " if row.label else "  "
    text, hang = f"{row.text} {row.link}".rstrip(), len(lead) - 2 if len(row.label) <= _SHORT else 2
    if row.tone == "dim":
        print_text(console, f"{lead}{text}", "dim", hang=hang)
    else:
        print_text(console, Text.assemble((lead, _TONE.get(row.tone, "")), text), hang=hang)


def duration(seconds: float) -> str:
    """Seconds as text, in seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
