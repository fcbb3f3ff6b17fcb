# /// script
# requires-python = ">=3.11"
# dependencies = ["tokenizers"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.tokenizers]
# good = "0.21.0"
# bad = "0.15.2"
# as-of = "none"
#
# [tool.harness.signature]
# exception = "Exception"
# message = "data did not match any variant of untagged enum ModelWrapper"
#
# [tool.harness.known]
# kind = "crash"
# upstream = ["https://github.com/allenai/open-instruct/issues/738", "https://github.com/huggingface/tokenizers/releases/tag/v0.20.0"]
# never-worked = true
# last-bad = "0.19.1"
# fixed-in = "0.20.0"
# pull-request = "https://github.com/huggingface/tokenizers/pull/909"
# workaround = "Install tokenizers 0.20 or later (transformers 4.45), or save the tokenizer with the older release."
# fix = "0.20.0 reads both forms."
# [tool.harness.known.seen]
# release = "0.19.1"
# error = "Exception: data did not match any variant of untagged enum ModelWrapper at line 1 column 123"
# ///
"""A tokenizer.json whose merges are pairs, as tokenizers 0.20.0 and later write it, can't be read by earlier releases.

No earlier release can, so there is only a fix to find.
"""

import json

from tokenizers import Tokenizer

MODEL = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}
print(Tokenizer.from_str(json.dumps({"version": "1.0", "added_tokens": [], "model": MODEL})).encode("ab").ids)
