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
# exception = "RuntimeError"
# message = "Dataset scripts are no longer supported"
#
# [tool.harness.known]
# kind = "crash"
# upstream = ["https://github.com/huggingface/datasets/releases/tag/4.0.0", "https://github.com/huggingface/datasets/issues/7693", "https://github.com/huggingface/datasets/pull/7592"]
# last-good = "3.6.0"
# first-bad = "4.0.0"
# file = "datasets/load.py"
# depth = "release"
# workaround = "Hold datasets<4, or load the converted files: many data sets have them on the branch refs/convert/parquet."
# [tool.harness.known.seen]
# release = "4.0.0"
# error = "RuntimeError: Dataset scripts are no longer supported, but found numbers_of_one.py"
# frames = ["datasets/load.py:load_dataset", "datasets/load.py:load_dataset_builder", "datasets/load.py:dataset_module_factory"]
# ///
"""A data set with a loading script is a RuntimeError from datasets 4.0.0 on."""

from pathlib import Path

from datasets import load_dataset

SCRIPT = """
import datasets


class Numbers(datasets.GeneratorBasedBuilder):
    def _info(self):
        return datasets.DatasetInfo(features=datasets.Features({"number": datasets.Value("int64")}))

    def _split_generators(self, manager):
        return [datasets.SplitGenerator(name="train")]

    def _generate_examples(self):
        yield 0, {"number": 1}
"""
Path("numbers_of_one.py").write_text(SCRIPT, encoding="utf-8")
print(load_dataset("./numbers_of_one.py", split="train", trust_remote_code=True)[0])
