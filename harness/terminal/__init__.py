"""Prints for people: the running search, the answer, tables. Only answers go to stdout."""

from harness.terminal.answer import print_answer, print_history, print_observation, print_table
from harness.terminal.live import LiveView, PlainView, reporting
