"""What a person sees: the running search, the answer, tables. All of it goes to stderr but answers."""

from harness.terminal.answer import print_answer, print_observation
from harness.terminal.history import print_history
from harness.terminal.running import LiveView, PlainView, QuietView

__all__ = ["LiveView", "PlainView", "QuietView", "print_answer", "print_history", "print_observation"]
