"""What the parts below tell a user while they work, as single lines between those of a view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console


def told_on(console: Console) -> Callable[[str], None]:
    """Prints each sentence on a console, above a picture that is being drawn there; any thread may call it."""

    def tell(words: str) -> None:
        console.print(Text(f"  {words}", style="dim"), soft_wrap=True)

    return tell
