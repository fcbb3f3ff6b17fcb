# /// script
# requires-python = ">=3.11"
# dependencies = ["datasets==3.6.0"]
#
# [tool.harness]
# device = "cpu"
# timeout = 300
#
# [tool.harness.made]
# with = ["datasets"]
#
# [tool.harness.made.subjects.datasets]
# good = "3.5.1"
# bad = "4.1.1"
# as-of = "none"
#
# [tool.harness.signature]
# exception = "ValueError"
# message = "Feature type 'List' not found"
#
# [tool.harness.known]
# kind = "crash"
# upstream = ["https://github.com/huggingface/datasets/issues/7739", "https://github.com/huggingface/datasets/issues/7676"]
# written = true
# last-good = "3.6.0"
# first-bad = "4.0.0"
# depth = "release"
# pull-request = "https://github.com/huggingface/datasets/pull/7634"
# workaround = "Read with datasets 4, or save as parquet."
# [tool.harness.known.seen]
# release = "4.0.0"
# error = "ValueError: Feature type 'List' not found. Available feature types: ['Value', 'ClassLabel', 'Translation']"
# ///
"""A data set with a list column that datasets 4 saved can't be loaded by datasets 3."""

import os
import tempfile
from pathlib import Path

from datasets import Dataset, load_from_disk

step = os.environ.get("HARNESS_STEP")
folder = Path(os.environ.get("HARNESS_ARTIFACTS") or tempfile.mkdtemp()) / "numbers"

if step != "use":
    Dataset.from_dict({"numbers": [[1, 2], [3]]}).save_to_disk(str(folder))
if step != "make":
    print(load_from_disk(str(folder))[0])
