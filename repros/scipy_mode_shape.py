# /// script
# requires-python = ">=3.11"
# dependencies = ["scipy"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.scipy]
# good = "1.10.1"
# bad = "1.12.0"
# as-of = "none"
# hold = ["numpy<2"]
#
# [tool.harness.signature]
# exception = "ValueError"
# message = "the modes of two columns are"
#
# [tool.harness.known]
# kind = "changed default"
# upstream = ["https://docs.scipy.org/doc/scipy/release/1.11.0-notes.html"]
# last-good = "1.10.1"
# first-bad = "1.11.1"
# workaround = "Pass keepdims=True."
# ///
"""`scipy.stats.mode` returns one dimension less from scipy 1.11.0 on (which is yanked).

Code that takes `mode(x).mode[0]` gets an error for a list of numbers, and for a table the mode of the first column
only: here 1 where it was [1, 2].
"""

from scipy.stats import mode

first = mode([[1, 2], [1, 2], [3, 4]]).mode[0]
if getattr(first, "shape", ()) != (2,):
    raise ValueError(f"the modes of two columns are {first}")
