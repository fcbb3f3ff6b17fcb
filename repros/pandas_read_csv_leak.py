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
# metric = "grown"
# above = 20
#
# [tool.harness.known]
# kind = "more memory"
# upstream = ["https://pandas.pydata.org/docs/whatsnew/v2.2.1.html", "https://github.com/pandas-dev/pandas/issues/57039"]
# last-good = "2.1.4"
# first-bad = "2.2.0"
# last-bad = "2.2.0"
# fixed-in = "2.2.1"
# good-again = "2.2.3"
# workaround = "Read with engine=\"pyarrow\", or in processes of their own."
# ///
"""`read_csv` of pandas 2.2.0 leaked memory at each call.

`grown` are the megabytes that the process grew by while it read the same 2 MB of text 20 times, after 5 times to
warm up.
"""

import io
import json
import os
import re
from pathlib import Path

import pandas as pd

TEXT = "\n".join(["a,b,c", *(f"{number},text {number},{number / 7}" for number in range(60_000))])


def resident():
    """The memory of this process in MB."""
    return int(re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text(encoding="utf-8"))[1]) / 1024


def read(times):
    """Read the same text that many times."""
    for _ in range(times):
        pd.read_csv(io.StringIO(TEXT))


read(5)
before = resident()
read(20)
grown = resident() - before
print(grown)
if path := os.environ.get("HARNESS_METRICS"):
    Path(path).write_text(json.dumps({"grown": grown}), encoding="utf-8")
