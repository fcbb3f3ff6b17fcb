"""What a person sees: the running search, the answer, tables. All of it goes to stderr but answers."""

from harness.terminal.answer import print_answer, print_observation
from harness.terminal.cells import LiveCells, PlainCells, QuietCells
from harness.terminal.history import print_history
from harness.terminal.running import LiveView, PlainView, QuietView
from harness.terminal.table import print_table
from harness.terminal.told import told_on

__all__ = [
    "LiveCells",
    "LiveView",
    "PlainCells",
    "PlainView",
    "QuietCells",
    "QuietView",
    "print_answer",
    "print_history",
    "print_observation",
    "print_table",
    "told_on",
]
