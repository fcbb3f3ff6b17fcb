"""One probe: from a combination to an observation, wherever it runs. All searches use it."""

from harness.probing.judge import Judge
from harness.probing.probe import Prepared, Probe, next_attempt, observation_of, probe_key, seed_of
from harness.probing.prober import Prober
from harness.run.process import Cancelled
