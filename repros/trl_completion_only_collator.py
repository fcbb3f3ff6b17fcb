# /// script
# requires-python = ">=3.11"
# dependencies = ["torch", "transformers", "trl"]
#
# [tool.harness]
# device = "cpu"
# timeout = 300
#
# [tool.harness.subjects.trl]
# good = "0.17.0"
# bad = "0.21.0"
# as-of = "none"
# hold = ["torch==2.13.0", "numpy<2.3", "transformers==4.53.3", "accelerate==1.8.1", "datasets==3.6.0", "peft==0.15.2"]
#
# [tool.harness.signature]
# exception = "ImportError"
# message = "cannot import name 'DataCollatorForCompletionOnlyLM' from 'trl'"
#
# [tool.harness.known]
# kind = "import error"
# upstream = ["https://github.com/huggingface/trl/releases/tag/v0.20.0", "https://github.com/huggingface/trl/issues/3827"]
# last-good = "0.19.1"
# first-bad = "0.20.0"
# workaround = "Give prompts and completions as columns of the data set, and SFTConfig(completion_only_loss=True)."
# [tool.harness.known.seen]
# release = "0.20.0"
# error = "ImportError: cannot import name 'DataCollatorForCompletionOnlyLM' from 'trl' (trl/__init__.py)"
# ///
"""`DataCollatorForCompletionOnlyLM` is an ImportError from trl 0.20.0 on."""

from trl import DataCollatorForCompletionOnlyLM

print(DataCollatorForCompletionOnlyLM)
