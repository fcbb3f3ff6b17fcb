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
# exception = "AttributeError"
# message = "asfarray"
#
# [tool.harness.known]
# kind = "import error"
# upstream = ["https://numpy.org/doc/stable/release/2.0.0-notes.html", "https://github.com/Gunnstein/fatpack"]
# last-good = "1.26.4"
# first-bad = "2.0.0"
# removed = "numpy.asfarray"
# file = "numpy/lib/type_check.py"
# workaround = "np.asarray(x, dtype=float) works with every release."
# [tool.harness.known.seen]
# release = "2.0.0"
# error = "AttributeError: `np.asfarray` was removed in the NumPy 2.0 release. Use `np.asarray` with a proper dtype instead."
# frames = ["numpy/__init__.py:__getattr__"]
# ///
"""`numpy.asfarray` is gone from numpy 2.0.0 on, which removed about a hundred names."""

import numpy as np

print(np.asfarray([1, 2]).sum())
