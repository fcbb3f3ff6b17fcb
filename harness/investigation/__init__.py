"""From a user's question to an answer that names the release."""

from harness.investigation.answer import Answer, Status, Step
from harness.investigation.bisect import Bisecting
from harness.investigation.plan import Plan, make_plan
from harness.investigation.question import Question
from harness.investigation.repros import find_repro, list_repros

__all__ = [
    "Answer",
    "Bisecting",
    "Plan",
    "Question",
    "Status",
    "Step",
    "find_repro",
    "list_repros",
    "make_plan",
]
