"""Searches: each decides only which candidate to try next. Pure, without I/O or clock."""

from harness.search.bisection import Bisection
from harness.search.bisection_result import BisectionResult, BisectionStatus, MovedEnd, Trial
from harness.search.delta import DeltaDebugging, DeltaResult
from harness.search.fewest import FewestChanges, FewestResult
from harness.search.grid import Grid
from harness.search.narrowing import Narrowing
from harness.search.protocol import Search
from harness.search.states import PositionState
from harness.search.windows import Window, WindowScan, WindowsResult

__all__ = [
    "Bisection",
    "BisectionResult",
    "BisectionStatus",
    "DeltaDebugging",
    "DeltaResult",
    "FewestChanges",
    "FewestResult",
    "Grid",
    "MovedEnd",
    "Narrowing",
    "PositionState",
    "Search",
    "Trial",
    "Window",
    "WindowScan",
    "WindowsResult",
]
