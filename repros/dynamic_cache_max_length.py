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
# bad = "4.51.3"
# as-of = "none"
# hold = ["torch==2.13.0", "numpy<2.3"]
#
# [tool.harness.signature]
# exception = "AttributeError"
# message = "'DynamicCache' object has no attribute 'get_max_length'"
#
# [tool.harness.known]
# kind = "import error"
# upstream = ["https://github.com/deepseek-ai/DeepSeek-Coder-V2/issues/81"]
# last-good = "4.48.3"
# first-bad = "4.49.0"
# workaround = "Write get_max_cache_shape(); for code that is not yours, hold transformers<4.49."
# file = "transformers/cache_utils.py"
# depth = "release"
# [tool.harness.known.seen]
# release = "4.49.0"
# error = "AttributeError: 'DynamicCache' object has no attribute 'get_max_length'"
# frames = ["torch/nn/modules/module.py:__getattr__"]
# ///
"""`DynamicCache.get_max_length` is an AttributeError from transformers 4.49.0 on.

The code that is shipped with the weights of Phi-3, DeepSeek and others calls it while it generates.
"""

from transformers import DynamicCache

print(DynamicCache().get_max_length())
