# /// script
# requires-python = ">=3.11"
# dependencies = ["huggingface-hub"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.huggingface-hub]
# good = "0.25.2"
# bad = "0.27.0"
# as-of = "none"
#
# [tool.harness.signature]
# exception = "ImportError"
# message = "cannot import name 'cached_download' from 'huggingface_hub'"
#
# [tool.harness.known]
# kind = "import error"
# upstream = ["https://github.com/huggingface/huggingface_hub/releases/tag/v0.26.0", "https://github.com/easydiffusion/easydiffusion/issues/1851"]
# last-good = "0.25.2"
# first-bad = "0.26.0"
# file = "huggingface_hub/__init__.py"
# depth = "release"
# workaround = "hf_hub_download replaces it; for an old library hold huggingface-hub<0.26."
# fix = "sentence-transformers 2.3.0 and diffusers 0.26.0 no longer import it."
# [tool.harness.known.seen]
# release = "0.26.0"
# error = "ImportError: cannot import name 'cached_download' from 'huggingface_hub' (huggingface_hub/__init__.py)"
# ///
"""`cached_download` is an ImportError from huggingface-hub 0.26.0 on.

Old releases of diffusers, sentence-transformers and others import it: `import` of them fails with this message.
"""

from huggingface_hub import cached_download

print(cached_download)
