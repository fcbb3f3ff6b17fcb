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
# bad = "2.1.0"
# as-of = "none"
# hold = ["numpy<2"]
#
# [tool.harness.signature]
# exception = "ValueError"
# message = "asked for b and a"
#
# [tool.harness.known]
# kind = "changed output"
# upstream = ["https://pandas.pydata.org/docs/whatsnew/v2.1.1.html", "https://github.com/pandas-dev/pandas/issues/54980"]
# last-good = "2.0.3"
# first-bad = "2.1.0"
# last-bad = "2.1.0"
# fixed-in = "2.1.1"
# good-again = "2.2.0"
# file = "pandas/core/generic.py"
# function = "NDFrame.filter"
# depth = "release"
# workaround = "frame[[\"b\", \"a\"]] keeps the order."
# fix = "2.1.1 keeps the order again."
# ///
"""`DataFrame.filter(items=...)` ignored the order of the items in pandas 2.1.0.

Columns came out in the order of the frame: a model that takes them by position got them swapped.
"""

import pandas as pd

frame = pd.DataFrame({"a": [1], "b": [2]})
columns = list(frame.filter(items=["b", "a"]).columns)
if columns != ["b", "a"]:
    raise ValueError(f"asked for b and a, got {columns}")
