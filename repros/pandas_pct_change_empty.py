# /// script
# requires-python = ">=3.11"
# dependencies = ["pandas"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.pandas]
# good = "2.0.3"
# bad = "2.2.0"
# as-of = "none"
# hold = ["numpy<2"]
#
# [tool.harness.signature]
# exception = "ValueError"
#
# [tool.harness.known]
# kind = "crash"
# upstream = ["https://pandas.pydata.org/docs/whatsnew/v2.2.1.html", "https://github.com/pandas-dev/pandas/issues/57056"]
# last-good = "2.1.0"
# first-bad = "2.1.1"
# last-bad = "2.2.0"
# fixed-in = "2.2.1"
# good-again = "2.2.3"
# workaround = "Skip empty series."
# [tool.harness.known.seen]
# release = "2.1.1"
# error = "ValueError: attempt to get argmax of an empty sequence"
# frames = ["pandas/core/generic.py:pct_change", "numpy/core/fromnumeric.py:argmax", "numpy/core/fromnumeric.py:_wrapfunc"]
# ///
"""`Series.pct_change` of an empty series was a ValueError from pandas 2.1.1 to 2.2.0."""

import pandas as pd

print(pd.Series([], dtype="float64").pct_change())
