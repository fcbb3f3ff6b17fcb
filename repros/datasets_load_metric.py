# /// script
# requires-python = ">=3.11"
# dependencies = ["datasets"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.datasets]
# good = "2.21.0"
# bad = "3.2.0"
# as-of = "none"
# hold = ["numpy<2", "pandas<2.3", "pyarrow<20"]
#
# [tool.harness.signature]
# exception = "ImportError"
# message = "cannot import name 'load_metric' from 'datasets'"
#
# [tool.harness.known]
# kind = "import error"
# upstream = ["https://github.com/huggingface/datasets/releases/tag/3.0.0", "https://github.com/huggingface/datasets/pull/6983"]
# last-good = "2.21.0"
# first-bad = "3.0.0"
# workaround = "evaluate.load replaces it."
# [tool.harness.known.seen]
# release = "3.0.0"
# error = "ImportError: cannot import name 'load_metric' from 'datasets' (datasets/__init__.py)"
# ///
"""`datasets.load_metric` is an ImportError from datasets 3.0.0 on."""

from datasets import load_metric

print(load_metric)
