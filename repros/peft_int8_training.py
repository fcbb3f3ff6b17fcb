# /// script
# requires-python = ">=3.11"
# dependencies = ["torch", "transformers", "peft"]
#
# [tool.harness]
# device = "cpu"
# timeout = 300
#
# [tool.harness.subjects.peft]
# good = "0.7.1"
# bad = "0.12.0"
# as-of = "none"
# hold = ["torch==2.13.0", "numpy<2.3", "transformers==4.45.2", "accelerate==1.8.1"]
#
# [tool.harness.signature]
# exception = "ImportError"
# message = "cannot import name 'prepare_model_for_int8_training' from 'peft'"
#
# [tool.harness.known]
# kind = "import error"
# upstream = ["https://github.com/huggingface/peft/releases/tag/v0.10.0"]
# last-good = "0.9.0"
# first-bad = "0.10.0"
# workaround = "prepare_model_for_kbit_training replaces it."
# [tool.harness.known.seen]
# release = "0.10.0"
# error = "ImportError: cannot import name 'prepare_model_for_int8_training' from 'peft' (peft/__init__.py)"
# ///
"""`prepare_model_for_int8_training` is an ImportError from peft 0.10.0 on."""

from peft import prepare_model_for_int8_training

print(prepare_model_for_int8_training)
