# /// script
# requires-python = ">=3.11"
# dependencies = ["numpy==1.23.5"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.made]
# with = ["numpy"]
#
# [tool.harness.made.subjects.numpy]
# good = "1.23.3"
# bad = "1.25.2"
# as-of = "none"
#
# [tool.harness.signature]
# exception = "TypeError"
# message = "takes from 0 to 1 positional arguments but 2 were given"
#
# [tool.harness.known]
# kind = "crash"
# upstream = ["https://github.com/numpy/numpy/pull/22014"]
# written = true
# last-good = "1.23.5"
# first-bad = "1.24.0"
# depth = "release"
# pull-request = "https://github.com/numpy/numpy/pull/22014"
# workaround = "Keep state.get_state() in place of the RandomState."
# [tool.harness.known.seen]
# release = "1.24.0"
# error = "TypeError: __randomstate_ctor() takes from 0 to 1 positional arguments but 2 were given"
# ///
"""A `RandomState` that numpy 1.24 pickled can't be read by numpy 1.23."""

import os
import pickle
import tempfile
from pathlib import Path

import numpy as np

step = os.environ.get("HARNESS_STEP")
file = Path(os.environ.get("HARNESS_ARTIFACTS") or tempfile.mkdtemp()) / "kept.pickle"

if step != "use":
    file.write_bytes(pickle.dumps(np.random.RandomState(1)))
if step != "make":
    print(pickle.loads(file.read_bytes()))
