"""From a user's question to an answer that names the release."""

from harness.investigation.answer import Answer, Status, Step
from harness.investigation.bisect import Bisecting
from harness.investigation.culprit import Culprit, Finding, Level, Proof, Region
from harness.investigation.investigate import Watcher, investigate
from harness.investigation.plan import Plan, make_plan
from harness.investigation.question import Question
from harness.investigation.repros import find_repro, list_repros

__all__ = [
    "Answer",
    "Bisecting",
    "Culprit",
    "Finding",
    "Level",
    "Plan",
    "Proof",
    "Question",
    "Region",
    "Status",
    "Step",
    "Watcher",
    "find_repro",
    "investigate",
    "list_repros",
    "make_plan",
]
