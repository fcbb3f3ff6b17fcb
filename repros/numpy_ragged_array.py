# /// script
# requires-python = ">=3.11"
# dependencies = ["numpy"]
#
# [tool.harness]
# device = "cpu"
# timeout = 60
#
# [tool.harness.subjects.numpy]
# good = "1.23.5"
# bad = "1.26.4"
# as-of = "none"
#
# [tool.harness.signature]
# exception = "ValueError"
# message = "The requested array has an inhomogeneous shape"
#
# [tool.harness.known]
# kind = "crash"
# upstream = ["https://numpy.org/doc/stable/release/1.24.0-notes.html", "https://github.com/numpy/numpy/pull/22004"]
# last-good = "1.23.5"
# first-bad = "1.24.0"
# pull-request = "https://github.com/numpy/numpy/pull/22004"
# workaround = "Pass dtype=object if the lists really differ in length; else pad them."
# [tool.harness.known.seen]
# release = "1.24.0"
# error = "ValueError: setting an array element with a sequence. The requested array has an inhomogeneous shape after 1 dimensions. The detected shape was (2,) + inhomogeneous part."
# ///
"""An array of lists of different length is a ValueError from numpy 1.24.0 on; before, it was an array of objects."""

import numpy as np

print(len(np.array([[1, 2], [3]])))
