"""The history of a bug over the releases of one project: every window of broken releases."""

from harness.history.answer import BrokenWindow, History, HistoryStatus, ReleaseRow, Unseen
from harness.history.plan import HistoryPlan, make_history_plan
from harness.history.scan import Scanning

__all__ = [
    "BrokenWindow",
    "History",
    "HistoryPlan",
    "HistoryStatus",
    "ReleaseRow",
    "Scanning",
    "Unseen",
    "make_history_plan",
]
