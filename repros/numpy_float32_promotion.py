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
# bad = "2.1.0"
# as-of = "none"
#
# [tool.harness.signature]
# metric = "error"
# above = 0.01
#
# [tool.harness.known]
# kind = "wrong number"
# upstream = ["https://numpy.org/neps/nep-0050-scalar-promotion.html", "https://numpy.org/doc/stable/release/2.0.0-notes.html"]
# last-good = "1.26.4"
# first-bad = "2.0.0"
# workaround = "Convert to np.float64 first."
# ///
"""A float32 scalar with a Python float stays float32 from numpy 2.0.0 on, so that the sum loses digits.

Up to 1.26 the value of a scalar decided, and the result was float64. `error` is how far 0.1 added to 1e8 is away from
the sum in float64.
"""

import json
import os
from pathlib import Path

import numpy as np

error = abs(float(np.float32(1e8) + 0.1) - (1e8 + 0.1))
print(error)
if path := os.environ.get("HARNESS_METRICS"):
    Path(path).write_text(json.dumps({"error": error}), encoding="utf-8")
