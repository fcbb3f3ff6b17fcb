# /// script
# requires-python = ">=3.11"
# dependencies = ["numpy"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.made]
# with = ["numpy==2.0.0"]
#
# [tool.harness.subjects.numpy]
# good = "1.26.4"
# bad = "1.25.2"
# as-of = "none"
#
# [tool.harness.signature]
# exception = "ModuleNotFoundError"
# message = "No module named 'numpy._core'"
#
# [tool.harness.known]
# kind = "crash"
# upstream = ["https://github.com/numpy/numpy/issues/28340", "https://github.com/numpy/numpy/pull/24906"]
# never-worked = true
# last-bad = "1.26.0"
# fixed-in = "1.26.1"
# depth = "release"
# fix = "numpy 1.26.1 has numpy._core, so that it reads pickles of numpy 2."
# pull-request = "https://github.com/numpy/numpy/pull/24906"
# workaround = "Read with numpy 1.26.1 or later, or save with numpy.save."
# [tool.harness.known.seen]
# release = "1.26.0"
# error = "ModuleNotFoundError: No module named 'numpy._core'"
# ///
"""Arrays that numpy 2 pickled can't be read by numpy before 1.26.1."""

import os
import pickle
import tempfile
from pathlib import Path

import numpy as np

step = os.environ.get("HARNESS_STEP")
file = Path(os.environ.get("HARNESS_ARTIFACTS") or tempfile.mkdtemp()) / "kept.pickle"

if step != "use":
    file.write_bytes(pickle.dumps(np.arange(3.0), protocol=4))
if step != "make":
    print(pickle.loads(file.read_bytes()))
