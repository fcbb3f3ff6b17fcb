# /// script
# requires-python = ">=3.11"
# dependencies = ["torch", "transformers"]
#
# [tool.harness]
# device = "cpu"
# timeout = 300
#
# [tool.harness.subjects.transformers]
# good = "4.46.3"
# bad = "4.52.4"
# as-of = "none"
# hold = ["torch==2.13.0", "numpy<2.3"]
#
# [tool.harness.signature]
# exception = "ImportError"
# message = "cannot import name 'AdamW' from 'transformers'"
#
# [tool.harness.known]
# kind = "import error"
# upstream = ["https://github.com/huggingface/transformers/issues/36954", "https://github.com/huggingface/transformers/pull/36177"]
# last-good = "4.49.0"
# first-bad = "4.50.0"
# workaround = "torch.optim.AdamW is the same optimizer; pass weight_decay=0.0, the other default."
# [tool.harness.known.seen]
# release = "4.50.0"
# error = "ImportError: cannot import name 'AdamW' from 'transformers' (transformers/__init__.py)"
# ///
"""`from transformers import AdamW` is an ImportError from transformers 4.50.0 on."""

from transformers import AdamW

print(AdamW)
