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
# exception = "ValueError"
# message = "Unable to avoid copy while creating an array as requested"
#
# [tool.harness.known]
# kind = "changed default"
# upstream = ["https://numpy.org/doc/stable/release/2.0.0-notes.html", "https://github.com/numpy/numpy/pull/25168"]
# last-good = "1.26.4"
# first-bad = "2.0.0"
# pull-request = "https://github.com/numpy/numpy/pull/25168"
# workaround = "Write np.asarray(x), which copies only if needed, or copy=None with numpy 2."
# [tool.harness.known.seen]
# release = "2.0.0"
# error = "ValueError: Unable to avoid copy while creating an array as requested."
# ///
"""`np.array(x, copy=False)` is a ValueError from numpy 2.0.0 on if a copy is needed."""

import numpy as np

print(np.array([1, 2], copy=False).sum())
