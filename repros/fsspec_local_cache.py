# /// script
# requires-python = ">=3.11"
# dependencies = ["datasets==2.14.4", "fsspec"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.fsspec]
# good = "2023.6.0"
# bad = "2023.12.2"
# as-of = "none"
# hold = ["numpy<2", "pandas<2.2", "pyarrow<15", "huggingface-hub<0.20"]
#
# [tool.harness.signature]
# exception = "NotImplementedError"
# message = "Loading a dataset cached in a LocalFileSystem is not supported"
#
# [tool.harness.known]
# kind = "crash"
# upstream = ["https://github.com/huggingface/datasets/issues/6352"]
# last-good = "2023.9.2"
# first-bad = "2023.10.0"
# file = "fsspec/implementations/local.py"
# depth = "release"
# workaround = "Install datasets 2.14.6 or later, or hold fsspec<2023.10."
# fix = "datasets 2.14.6 asks for the class of the file system."
# [tool.harness.known.seen]
# release = "2023.10.0"
# error = "NotImplementedError: Loading a dataset cached in a LocalFileSystem is not supported."
# frames = ["datasets/load.py:load_dataset", "datasets/builder.py:as_dataset"]
# ///
"""Every data set is a NotImplementedError with datasets 2.14.4 and fsspec 2023.10.0 or later.

datasets asked whether the protocol of a file system is "file"; since then it is ("file", "local").
"""

from pathlib import Path

from datasets import load_dataset

Path("rows.json").write_text('{"a": 1}', encoding="utf-8")
print(load_dataset("json", data_files="rows.json", split="train")[0])
