# /// script
# requires-python = ">=3.11"
# dependencies = ["pandas"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.pandas]
# good = "2.1.4"
# bad = "2.2.0"
# as-of = "none"
# hold = ["numpy<2"]
#
# [tool.harness.signature]
# exception = "TypeError"
#
# [tool.harness.known]
# kind = "crash"
# upstream = ["https://pandas.pydata.org/docs/whatsnew/v2.2.1.html", "https://github.com/pandas-dev/pandas/issues/57010"]
# last-good = "2.1.4"
# first-bad = "2.2.0"
# last-bad = "2.2.0"
# fixed-in = "2.2.1"
# good-again = "2.2.3"
# file = "pandas/core/reshape/merge.py"
# workaround = "Merge with merge_ordered(..., how=\"left\") and call ffill() on the result."
# [tool.harness.known.seen]
# release = "2.2.0"
# error = "TypeError: left_indexer cannot be None"
# frames = ["pandas/core/reshape/merge.py:merge_ordered", "pandas/core/reshape/merge.py:_merger", "pandas/core/reshape/merge.py:get_result"]
# ///
"""`merge_ordered` with fill_method="ffill" and how="left" was a TypeError in pandas 2.2.0."""

import pandas as pd

left = pd.DataFrame({"key": ["a", "c"], "x": [1, 2]})
right = pd.DataFrame({"key": ["b", "c"], "y": [3, 4]})
print(pd.merge_ordered(left, right, fill_method="ffill", how="left"))
