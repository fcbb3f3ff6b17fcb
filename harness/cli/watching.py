"""What the commands that search have in common: who watches, and words that are typed or shown again."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from harness.terminal import LiveView, PlainView, QuietView

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console


@contextlib.contextmanager
def watching(console: Console, *, quiet: bool) -> Iterator[QuietView | LiveView | PlainView]:
    """Who is told of a search: nobody, a terminal, or a log."""
    if quiet:
        yield QuietView()
    elif console.is_terminal:
        with LiveView(console) as view:
            yield view
    else:
        yield PlainView(console)


def typed_words(repro: str | None, run: str | None, params: tuple[str, ...]) -> tuple[str, ...]:
    """The words that name the repro, to be typed again."""
    words = ["--repro", repro] if repro else ["--run", run] if run else []
    words += [word for param in params for word in ("--param", param)]
    return tuple(map(shlex.quote, words))


def short(path: Path) -> Path:
    """A path as seen from the working directory, where it lies below it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
