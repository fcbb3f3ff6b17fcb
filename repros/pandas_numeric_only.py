# /// script
# requires-python = ">=3.11"
# dependencies = ["pandas"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.pandas]
# good = "1.5.3"
# bad = "2.1.0"
# as-of = "none"
# hold = ["numpy<2"]
#
# [tool.harness.signature]
# exception = "TypeError"
# message = "Could not convert"
#
# [tool.harness.known]
# kind = "changed default"
# upstream = ["https://pandas.pydata.org/docs/whatsnew/v2.0.0.html", "https://github.com/pandas-dev/pandas/issues/46072"]
# last-good = "1.5.3"
# first-bad = "2.0.0"
# workaround = "Pass numeric_only=True."
# [tool.harness.known.seen]
# release = "2.0.0"
# error = "TypeError: Could not convert ['xy'] to numeric"
# frames = ["pandas/core/internals/managers.py:reduce", "pandas/core/internals/blocks.py:reduce", "pandas/core/frame.py:blk_func", "pandas/core/nanops.py:_f", "pandas/core/nanops.py:f", "pandas/core/nanops.py:new_func", "pandas/core/nanops.py:nanmean", "pandas/core/nanops.py:_ensure_numeric"]
# ///
"""`DataFrame.mean()` with a column of text is a TypeError from pandas 2.0.0 on; before, it left the column out."""

import pandas as pd

print(pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}).mean())
