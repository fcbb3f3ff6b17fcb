"""Search algorithms: each only decides which candidate to try next. Pure, without I/O or clock."""

from harness.search.bisection import Bisection
from harness.search.bisection_result import BisectionResult, BisectionStatus, MovedEnd, Trial
from harness.search.by_number import ByNumber
from harness.search.delta import DeltaDebugging, DeltaResult
from harness.search.effect import Effect
from harness.search.fewest import FewestChanges, FewestResult
from harness.search.grid import Grid
from harness.search.measured import Gauges
from harness.search.narrowing import Narrowing
from harness.search.noise import Noise
from harness.search.noisy import NoisySearch
from harness.search.posterior import Counts
from harness.search.protocol import Search
from harness.search.readings import Reading, Readings, readings_of
from harness.search.states import PositionState
from harness.search.sure import SureBisection
from harness.search.windows import Window, WindowScan, WindowsResult

__all__ = [
    "Bisection",
    "BisectionResult",
    "BisectionStatus",
    "ByNumber",
    "Counts",
    "DeltaDebugging",
    "DeltaResult",
    "Effect",
    "FewestChanges",
    "FewestResult",
    "Gauges",
    "Grid",
    "MovedEnd",
    "Narrowing",
    "Noise",
    "NoisySearch",
    "PositionState",
    "Reading",
    "Readings",
    "Search",
    "SureBisection",
    "Trial",
    "Window",
    "WindowScan",
    "WindowsResult",
    "readings_of",
]
