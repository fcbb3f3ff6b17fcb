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
# bad = "2.0.0"
# as-of = "none"
# hold = ["numpy<2"]
#
# [tool.harness.signature]
# exception = "TypeError"
#
# [tool.harness.known]
# kind = "crash"
# upstream = ["https://pandas.pydata.org/docs/whatsnew/v2.0.1.html", "https://github.com/pandas-dev/pandas/issues/52568"]
# last-good = "1.5.3"
# first-bad = "2.0.0"
# last-bad = "2.0.0"
# fixed-in = "2.0.1"
# good-again = "2.1.0"
# workaround = "Pass a list."
# [tool.harness.known.seen]
# release = "2.0.0"
# error = "TypeError: object of type 'generator' has no len()"
# frames = ["pandas/core/indexes/multi.py:isin"]
# ///
"""`MultiIndex.isin` of a generator was a TypeError in pandas 2.0.0."""

import pandas as pd

index = pd.MultiIndex.from_tuples([(1, 2), (3, 4)])
print(index.isin(pair for pair in [(1, 2)]))
