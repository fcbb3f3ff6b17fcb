# /// script
# requires-python = ">=3.11"
# dependencies = ["transformers==4.57.6"]
#
# [tool.harness]
# device = "cpu"
# timeout = 300
#
# [tool.harness.made]
# with = ["transformers"]
#
# [tool.harness.made.subjects.transformers]
# good = "4.56.2"
# bad = "5.1.0"
# as-of = "none"
#
# [tool.harness.signature]
# exception = "ValueError"
# message = "Tokenizer class TokenizersBackend does not exist"
#
# [tool.harness.known]
# kind = "crash"
# upstream = ["https://github.com/huggingface/transformers/issues/47553", "https://github.com/Blaizzy/mlx-vlm/issues/612"]
# written = true
# last-good = "4.57.6"
# first-bad = "5.0.0"
# depth = "release"
# workaround = "Load the folder with PreTrainedTokenizerFast.from_pretrained, or write PreTrainedTokenizerFast as tokenizer_class into tokenizer_config.json."
# [tool.harness.known.seen]
# release = "5.0.0"
# error = "ValueError: Tokenizer class TokenizersBackend does not exist or is not currently imported."
# ///
"""A tokenizer folder that transformers 5 saved can't be loaded by transformers 4."""

import os
import tempfile
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import AutoTokenizer, PreTrainedTokenizerFast

step = os.environ.get("HARNESS_STEP")
folder = Path(os.environ.get("HARNESS_ARTIFACTS") or tempfile.mkdtemp()) / "tokenizer"

if step != "use":
    words = Tokenizer(WordLevel({"<unk>": 0, "hello": 1}, unk_token="<unk>"))
    PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>").save_pretrained(str(folder))
if step != "make":
    print(AutoTokenizer.from_pretrained(str(folder)).tokenize("hello"))
