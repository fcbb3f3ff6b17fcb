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
# exception = "AttributeError"
# message = "module 'numpy' has no attribute 'int'"
#
# [tool.harness.known]
# kind = "import error"
# upstream = ["https://numpy.org/doc/stable/release/1.24.0-notes.html", "https://github.com/numpy/numpy/pull/22607"]
# last-good = "1.23.5"
# first-bad = "1.24.0"
# pull-request = "https://github.com/numpy/numpy/pull/22607"
# workaround = "Write int, or np.int64 for a fixed size."
# [tool.harness.known.seen]
# release = "1.24.0"
# error = "AttributeError: module 'numpy' has no attribute 'int'"
# frames = ["numpy/__init__.py:__getattr__"]
# ///
"""`np.int` is an AttributeError from numpy 1.24.0 on, which removed the aliases of Python's own types."""

import numpy as np

print(np.array([1.5, 2.5]).astype(np.int).sum())
