# /// script
# requires-python = ">=3.11"
# dependencies = ["tokenizers"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.tokenizers]
# good = "0.14.1"
# bad = "0.20.3"
# as-of = "none"
#
# [tool.harness.signature]
# exception = "TypeError"
# message = "got an unexpected keyword argument 'add_prefix_space'"
#
# [tool.harness.known]
# kind = "crash"
# upstream = ["https://github.com/huggingface/tokenizers/pull/1357"]
# last-good = "0.15.2"
# first-bad = "0.19.0"
# workaround = "The argument is prepend_scheme=\"always\", or \"never\", from 0.15.1 on."
# [tool.harness.known.seen]
# release = "0.19.0"
# error = "TypeError: Metaspace.__new__() got an unexpected keyword argument 'add_prefix_space'"
# ///
"""`Metaspace(add_prefix_space=...)` is a TypeError from tokenizers 0.19 on."""

from tokenizers.pre_tokenizers import Metaspace

print(Metaspace(replacement="▁", add_prefix_space=True).pre_tokenize_str("a b"))
