"""Search algorithms: each only decides which candidate to try next. Pure, without I/O or clock."""

from harness.search.line import LineSearch
from harness.search.narrowing import Narrowing, NarrowingResult, fewest
from harness.search.numbers import PATIENT, ByNumber, Gauges, Reading, Readings, TwoEnds, bound_between, readings_of
from harness.search.posterior import CONFIDENCE, MOST_PASSES, Noise, passes_needed
from harness.search.protocol import Grid, LineResult, LineStatus, MovedEnd, PositionState, Search, Trial
from harness.search.windows import CoarseGrid, Scan
