# /// script
# requires-python = ">=3.11"
# dependencies = ["pandas"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.pandas]
# good = "2.3.3"
# bad = "3.0.0"
# as-of = "none"
#
# [tool.harness.signature]
# metric = "changed"
# below = 9
#
# [tool.harness.known]
# kind = "wrong number"
# upstream = ["https://pandas.pydata.org/docs/whatsnew/v3.0.0.html", "https://pandas.pydata.org/pdeps/0007-copy-on-write.html"]
# last-good = "2.3.3"
# first-bad = "3.0.0"
# workaround = "frame.loc[rows, \"a\"] = value works with every release."
# ///
"""`frame["a"][rows] = value` no longer changes the frame from pandas 3.0.0 on, and nothing is raised.

With copy on write, `frame["a"]` is a copy for whoever writes to it. `changed` is what the frame holds afterwards.
"""

import json
import os
from pathlib import Path

import pandas as pd

frame = pd.DataFrame({"a": [1, 2], "b": [True, False]})
frame["a"][frame["b"]] = 9
print(frame)
if path := os.environ.get("HARNESS_METRICS"):
    Path(path).write_text(json.dumps({"changed": int(frame["a"][0])}), encoding="utf-8")
