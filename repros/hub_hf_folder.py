# /// script
# requires-python = ">=3.11"
# dependencies = ["huggingface-hub"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.huggingface-hub]
# good = "0.34.0"
# bad = "1.2.0"
# as-of = "none"
#
# [tool.harness.signature]
# exception = "ImportError"
# message = "cannot import name 'HfFolder' from 'huggingface_hub'"
#
# [tool.harness.known]
# kind = "import error"
# upstream = ["https://github.com/huggingface/huggingface_hub/releases/tag/v1.0.0", "https://huggingface.co/docs/huggingface_hub/concepts/migration"]
# last-good = "0.36.2"
# first-bad = "1.0.0"
# workaround = "get_token, login and logout replace it."
# [tool.harness.known.seen]
# release = "1.0.0"
# error = "ImportError: cannot import name 'HfFolder' from 'huggingface_hub' (huggingface_hub/__init__.py)"
# ///
"""`HfFolder` is an ImportError from huggingface-hub 1.0.0 on."""

from huggingface_hub import HfFolder

print(HfFolder.get_token())
