"""Search algorithms: each only decides which candidate to try next. Pure, without I/O or clock."""

from harness.search.bisection import Bisection, BisectionResult, BisectionStatus, MovedEnd
from harness.search.measured import ByNumber, Gauges, Reading, Readings, readings_of
from harness.search.narrowing import DeltaResult, Narrowing
from harness.search.noisy import NoisySearch
from harness.search.protocol import Grid, PositionState, Search, Trial
from harness.search.rates import Noise
from harness.search.sure import SureBisection
from harness.search.windows import SureScan, Window, WindowScan, WindowsResult
