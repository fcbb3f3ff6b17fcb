"""The console: no control characters reach the terminal, except those of its own styles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich.console
from rich.segment import Segment
from rich.text import Text

from harness.model.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from rich.console import ConsoleOptions, RenderableType

_LOG_WIDTH = 120  # columns of a line if the output is not a terminal


class Console(rich.console.Console):
    """A rich console for untrusted names, messages and diffs, which may contain escapes or rich's markup."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"markup": False, **options})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render, and remove control characters from the text of each segment."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable() or segment.text == "\n":
                yield segment
            else:
                yield Segment(plain(segment.text), segment.style)


def line_width(console: rich.console.Console) -> int:
    """The width of a line in columns: that of the terminal, or 120 for logs and pipes."""
    return console.width if console.is_terminal else _LOG_WIDTH


def print_line(console: rich.console.Console, line: Text | str) -> None:
    """Print one line, cut to the width."""
    text = line.copy() if isinstance(line, Text) else Text(line)
    text.truncate(line_width(console), overflow="ellipsis")
    console.print(text, soft_wrap=True)
