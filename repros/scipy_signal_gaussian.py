# /// script
# requires-python = ">=3.11"
# dependencies = ["scipy"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.scipy]
# good = "1.11.4"
# bad = "1.14.1"
# as-of = "none"
# hold = ["numpy<2"]
#
# [tool.harness.signature]
# exception = "ImportError"
# message = "cannot import name 'gaussian' from 'scipy.signal'"
#
# [tool.harness.known]
# kind = "import error"
# upstream = ["https://docs.scipy.org/doc/scipy/release/1.13.0-notes.html"]
# last-good = "1.12.0"
# first-bad = "1.13.0"
# workaround = "They are in scipy.signal.windows."
# [tool.harness.known.seen]
# release = "1.13.0"
# error = "ImportError: cannot import name 'gaussian' from 'scipy.signal' (scipy/signal/__init__.py)"
# ///
"""Windows such as `scipy.signal.gaussian` are gone from scipy 1.13.0 on."""

from scipy.signal import gaussian

print(gaussian(5, 1.0))
