# /// script
# requires-python = ">=3.11"
# dependencies = ["datasets"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.datasets]
# good = "3.6.0"
# bad = "4.1.0"
# as-of = "none"
# hold = ["numpy<2", "pandas<2.3", "pyarrow<20"]
#
# [tool.harness.signature]
# exception = "TypeError"
# message = "Object of type Column is not JSON serializable"
#
# [tool.harness.known]
# kind = "changed output"
# upstream = ["https://github.com/huggingface/datasets/releases/tag/4.0.0", "https://github.com/huggingface/datasets/pull/7614"]
# last-good = "3.6.0"
# first-bad = "4.0.0"
# workaround = "list(dataset[\"column\"]) or dataset[:][\"column\"] is a list with every release."
# file = "datasets/arrow_dataset.py"
# depth = "release"
# [tool.harness.known.seen]
# release = "4.0.0"
# error = "TypeError: Object of type Column is not JSON serializable"
# ///
"""`dataset["column"]` is no list any more from datasets 4.0.0 on, but an object that reads lazily.

Whatever needs a list, here JSON, refuses it.
"""

import json

from datasets import Dataset

print(json.dumps(Dataset.from_dict({"a": [1, 2]})["a"]))
