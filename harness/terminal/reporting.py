"""Which view a command reports to: a terminal, a log, or, with `--json`, warnings alone."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from harness.terminal.live import LiveView
from harness.terminal.plain import PlainView, WarningsOnly

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.events import Reporter
    from harness.terminal.console import Console


@contextlib.contextmanager
def reporting(console: Console, *, quiet: bool) -> Iterator[Reporter]:
    """The reporter for a console; what is drawn in place is gone once the context ends."""
    if quiet:
        yield WarningsOnly(console)
    elif console.is_terminal:
        with LiveView(console) as view:
            yield view
    else:
        yield PlainView(console)
