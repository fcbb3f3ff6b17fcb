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
# exception = "AttributeError"
# message = "'DataFrame' object has no attribute 'append'"
#
# [tool.harness.known]
# kind = "import error"
# upstream = ["https://pandas.pydata.org/docs/whatsnew/v2.0.0.html", "https://github.com/pandas-dev/pandas/issues/35407"]
# last-good = "1.5.3"
# first-bad = "2.0.0"
# file = "pandas/core/frame.py"
# workaround = "pd.concat([a, b]) does the same."
# [tool.harness.known.seen]
# release = "2.0.0"
# error = "AttributeError: 'DataFrame' object has no attribute 'append'"
# frames = ["pandas/core/generic.py:__getattr__"]
# ///
"""`DataFrame.append` is an AttributeError from pandas 2.0.0 on."""

import pandas as pd

print(len(pd.DataFrame({"a": [1]}).append(pd.DataFrame({"a": [2]}))))
