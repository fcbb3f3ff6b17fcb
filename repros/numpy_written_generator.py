# /// script
# requires-python = ">=3.11"
# dependencies = ["numpy==1.26.4"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.made]
# with = ["numpy"]
#
# [tool.harness.made.subjects.numpy]
# good = "1.25.2"
# bad = "2.1.0"
# as-of = "none"
#
# [tool.harness.signature]
# exception = "ValueError"
# message = "is not a known BitGenerator module"
#
# [tool.harness.known]
# kind = "crash"
# upstream = ["https://github.com/numpy/numpy/pull/26260"]
# written = true
# last-good = "1.26.4"
# first-bad = "2.0.0"
# depth = "release"
# pull-request = "https://github.com/numpy/numpy/pull/26293"
# workaround = "Keep generator.bit_generator.state, a dict, in place of the generator."
# [tool.harness.known.seen]
# release = "2.0.0"
# error = "ValueError: <class 'numpy.random._pcg64.PCG64'> is not a known BitGenerator module."
# ///
"""Random generators that numpy 2 pickled can't be read by numpy 1.26."""

import os
import pickle
import tempfile
from pathlib import Path

import numpy as np

step = os.environ.get("HARNESS_STEP")
file = Path(os.environ.get("HARNESS_ARTIFACTS") or tempfile.mkdtemp()) / "kept.pickle"

if step != "use":
    file.write_bytes(pickle.dumps(np.random.default_rng(1)))
if step != "make":
    print(pickle.loads(file.read_bytes()))
