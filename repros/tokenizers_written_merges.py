# /// script
# requires-python = ">=3.11"
# dependencies = ["tokenizers==0.19.1"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.made]
# with = ["tokenizers"]
#
# [tool.harness.made.subjects.tokenizers]
# good = "0.15.2"
# bad = "0.21.4"
# as-of = "none"
#
# [tool.harness.signature]
# exception = "Exception"
# message = "data did not match any variant of untagged enum ModelWrapper"
#
# [tool.harness.known]
# kind = "crash"
# upstream = ["https://github.com/huggingface/tokenizers/pull/909", "https://github.com/huggingface/swift-transformers/pull/131"]
# written = true
# last-good = "0.19.1"
# first-bad = "0.20.0"
# depth = "release"
# pull-request = "https://github.com/huggingface/tokenizers/pull/909"
# workaround = "Read with tokenizers 0.20 or later."
# [tool.harness.known.seen]
# release = "0.20.0"
# error = "Exception: data did not match any variant of untagged enum ModelWrapper at line 23 column 3"
# ///
"""A `tokenizer.json` with merges that tokenizers 0.20 wrote can't be read by tokenizers 0.19."""

import os
import tempfile
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import BPE

step = os.environ.get("HARNESS_STEP")
file = Path(os.environ.get("HARNESS_ARTIFACTS") or tempfile.mkdtemp()) / "tokenizer.json"

if step != "use":
    Tokenizer(BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")])).save(str(file))
if step != "make":
    print(Tokenizer.from_file(str(file)).encode("ab").tokens)
