"""What a person sees: the running search, the answer, tables. All of it goes to stderr but answers."""

from harness.terminal.answer import print_answer, print_observation
from harness.terminal.running import LiveView, PlainView, QuietView
from harness.terminal.told import told_on

__all__ = ["LiveView", "PlainView", "QuietView", "print_answer", "print_observation", "told_on"]
