# /// script
# requires-python = ">=3.11"
# dependencies = ["pandas", "numpy<2"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.made]
# with = ["pandas==1.5.3"]
#
# [tool.harness.subjects.pandas]
# good = "1.5.3"
# bad = "2.0.3"
# as-of = "none"
#
# [tool.harness.signature]
# exception = "ModuleNotFoundError"
# message = "No module named 'pandas.core.indexes.numeric'"
#
# [tool.harness.known]
# kind = "crash"
# upstream = ["https://github.com/pandas-dev/pandas/issues/53300"]
# last-good = "1.5.3"
# first-bad = "2.0.0"
# depth = "release"
# pull-request = "https://github.com/pandas-dev/pandas/pull/51139"
# workaround = "pandas.read_pickle reads them; pickle.load does not."
# [tool.harness.known.seen]
# release = "2.0.0"
# error = "ModuleNotFoundError: No module named 'pandas.core.indexes.numeric'"
# ///
"""Data with a numeric index that pandas 1.5 pickled can't be unpickled with pandas 2."""

import os
import pickle
import tempfile
from pathlib import Path

import pandas as pd

step = os.environ.get("HARNESS_STEP")
file = Path(os.environ.get("HARNESS_ARTIFACTS") or tempfile.mkdtemp()) / "kept.pickle"

if step != "use":
    file.write_bytes(pickle.dumps(pd.Series([3.3, 4.4], index=[2, 4])))
if step != "make":
    print(pickle.loads(file.read_bytes()))
