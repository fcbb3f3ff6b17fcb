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
# message = "object has no attribute 'getsize'"
#
# [tool.harness.known]
# kind = "import error"
# upstream = ["https://pillow.readthedocs.io/en/stable/releasenotes/10.0.0.html"]
# last-good = "9.5.0"
# first-bad = "10.0.0"
# file = "PIL/ImageFont.py"
# depth = "release"
# workaround = "font.getbbox(text) has the size in its last two numbers; font.getlength(text) is the width."
# [tool.harness.known.seen]
# release = "10.0.0"
# error = "AttributeError: 'ImageFont' object has no attribute 'getsize'"
# ///
"""`ImageFont.getsize` is an AttributeError from pillow 10.0.0 on."""

from PIL import ImageFont

print(ImageFont.load_default().getsize("text"))
