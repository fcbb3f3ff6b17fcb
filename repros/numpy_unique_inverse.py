# /// script
# requires-python = ">=3.11"
# dependencies = ["numpy"]
#
# [tool.harness]
# device = "cpu"
# timeout = 60
#
# [tool.harness.subjects.numpy]
# good = "1.26.4"
# bad = "2.0.0"
# as-of = "none"
#
# [tool.harness.signature]
# metric = "dimensions"
# above = 1
#
# [tool.harness.known]
# kind = "changed output"
# upstream = ["https://numpy.org/doc/stable/release/2.0.1-notes.html", "https://github.com/numpy/numpy/issues/26738"]
# last-good = "1.26.4"
# first-bad = "2.0.0"
# last-bad = "2.0.0"
# fixed-in = "2.0.1"
# good-again = "2.1.0"
# workaround = "inverse.reshape(-1) works with every release."
# fix = "2.0.1 returns one dimension again if axis is given."
# ///
"""`np.unique(x, axis=0, return_inverse=True)` returned an inverse with an extra dimension in numpy 2.0.

`dimensions` is that of the inverse of a table's rows: it must be 1, so that `rows[inverse]` is the table again.
"""

import json
import os
from pathlib import Path

import numpy as np

rows, inverse = np.unique([[1, 2], [1, 2], [3, 4]], axis=0, return_inverse=True)
print(inverse.shape)
if path := os.environ.get("HARNESS_METRICS"):
    Path(path).write_text(json.dumps({"dimensions": inverse.ndim}), encoding="utf-8")
