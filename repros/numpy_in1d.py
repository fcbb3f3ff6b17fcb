# /// script
# requires-python = ">=3.11"
# dependencies = ["numpy"]
#
# [tool.harness]
# device = "cpu"
# timeout = 60
#
# [tool.harness.subjects.numpy]
# good = "2.2.6"
# bad = "2.4.0"
# as-of = "none"
#
# [tool.harness.signature]
# exception = "AttributeError"
# message = "has no attribute 'in1d'"
#
# [tool.harness.known]
# kind = "import error"
# upstream = ["https://numpy.org/doc/stable/release/2.4.0-notes.html"]
# last-good = "2.3.5"
# first-bad = "2.4.0"
# workaround = "np.isin does the same for every shape."
# [tool.harness.known.seen]
# release = "2.4.0"
# error = "AttributeError: module 'numpy' has no attribute 'in1d'"
# frames = ["numpy/__init__.py:__getattr__"]
# ///
"""`np.in1d` is gone from numpy 2.4.0 on; it was deprecated in 2.0."""

import numpy as np

print(np.in1d([1, 2], [2]).sum())
