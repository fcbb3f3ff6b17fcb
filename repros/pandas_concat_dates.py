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
# metric = "sorted"
# below = 1
#
# [tool.harness.known]
# kind = "changed output"
# upstream = ["https://pandas.pydata.org/docs/whatsnew/v2.2.1.html", "https://github.com/pandas-dev/pandas/issues/57006"]
# last-good = "2.1.4"
# first-bad = "2.2.0"
# last-bad = "2.2.0"
# fixed-in = "2.2.1"
# good-again = "2.2.3"
# workaround = "Call sort_index() on the result."
# ///
"""`concat` of pandas 2.2.0 no longer sorted an index of dates along the other axis.

`sorted` is 1 if the dates of two columns, joined side by side, come out in order.
"""

import json
import os
from pathlib import Path

import pandas as pd

dates = pd.date_range("2024-01-01", periods=4)
late = pd.DataFrame({"late": [3, 4]}, index=dates[2:])
early = pd.DataFrame({"early": [1, 2]}, index=dates[:2])
joined = pd.concat([late, early], axis=1)
print(joined)
if path := os.environ.get("HARNESS_METRICS"):
    Path(path).write_text(json.dumps({"sorted": int(joined.index.is_monotonic_increasing)}), encoding="utf-8")
