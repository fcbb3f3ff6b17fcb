# /// script
# requires-python = ">=3.11"
# dependencies = ["pillow"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.pillow]
# good = "9.5.0"
# bad = "10.2.0"
# as-of = "none"
#
# [tool.harness.signature]
# exception = "AttributeError"
# message = "module 'PIL.Image' has no attribute 'ANTIALIAS'"
#
# [tool.harness.known]
# kind = "import error"
# upstream = ["https://pillow.readthedocs.io/en/stable/releasenotes/10.0.0.html"]
# last-good = "9.5.0"
# first-bad = "10.0.0"
# workaround = "Image.LANCZOS is the same filter."
# [tool.harness.known.seen]
# release = "10.0.0"
# error = "AttributeError: module 'PIL.Image' has no attribute 'ANTIALIAS'"
# ///
"""`Image.ANTIALIAS` is an AttributeError from pillow 10.0.0 on."""

from PIL import Image

print(Image.new("RGB", (4, 4)).resize((2, 2), Image.ANTIALIAS).size)
