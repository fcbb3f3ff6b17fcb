# /// script
# requires-python = ">=3.11"
# dependencies = ["numpy"]
#
# [tool.harness]
# device = "cpu"
# timeout = 60
#
# [tool.harness.subjects.numpy]
# good = "1.26.4"
# bad = "2.1.0"
# as-of = "none"
#
# [tool.harness.signature]
# exception = "ValueError"
# message = "a list with one float64 is shown as"
#
# [tool.harness.known]
# kind = "changed output"
# upstream = ["https://numpy.org/neps/nep-0051-scalar-representation.html", "https://github.com/numpy/numpy/pull/22449"]
# last-good = "1.26.4"
# first-bad = "2.0.0"
# pull-request = "https://github.com/numpy/numpy/pull/22449"
# workaround = "Convert with float(x) or x.item() before, or np.set_printoptions(legacy=\"1.25\")."
# ///
"""The repr of a numpy scalar is `np.float64(3.0)` from numpy 2.0.0 on, where it was `3.0`.

Whatever writes it into a file, a query or a prompt, such as f"{value!r}" or the repr of a list, has other text.
"""

import numpy as np

text = repr([np.float64(3.0)])
print(text)
if text != "[3.0]":
    raise ValueError(f"a list with one float64 is shown as {text}")
