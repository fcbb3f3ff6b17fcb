# /// script
# requires-python = ">=3.11"
# dependencies = ["torch", "transformers", "peft==0.17.1"]
#
# [tool.harness]
# device = "cpu"
# timeout = 300
#
# [tool.harness.subjects.transformers]
# good = "4.56.2"
# bad = "5.1.0"
# as-of = "none"
# hold = ["torch==2.13.0", "numpy<2.3", "accelerate==1.8.1"]
#
# [tool.harness.signature]
# exception = "ImportError"
# message = "cannot import name 'HybridCache' from 'transformers'"
#
# [tool.harness.known]
# kind = "import error"
# upstream = ["https://github.com/huggingface/peft/issues/3333", "https://github.com/huggingface/peft/pull/2735"]
# last-good = "4.57.6"
# first-bad = "5.0.0"
# workaround = "Install peft 0.18 or later, or hold transformers<5."
# fix = "peft 0.18.0 imports it only if it is there."
# [tool.harness.known.seen]
# release = "5.0.0"
# error = "ImportError: cannot import name 'HybridCache' from 'transformers' (transformers/__init__.py)"
# frames = ["peft/__init__.py:<module>", "peft/auto.py:<module>", "peft/peft_model.py:<module>"]
# ///
"""`import peft` (0.17) fails from transformers 5.0.0 on, which removed `HybridCache`."""

import peft

print(peft.__version__)
