"""Prints for people: the running search, the answer, tables. Only answers go to stdout."""

from harness.terminal.answer import print_answer, print_observation
from harness.terminal.history import print_history
from harness.terminal.live import LiveView, PlainView, reporting
from harness.terminal.table import print_table

__all__ = ["LiveView", "PlainView", "print_answer", "print_history", "print_observation", "print_table", "reporting"]
