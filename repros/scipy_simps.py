# /// script
# requires-python = ">=3.11"
# dependencies = ["scipy"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.scipy]
# good = "1.13.1"
# bad = "1.15.3"
# as-of = "none"
# hold = ["numpy<2.3"]
#
# [tool.harness.signature]
# exception = "ImportError"
# message = "cannot import name 'simps' from 'scipy.integrate'"
#
# [tool.harness.known]
# kind = "import error"
# upstream = ["https://docs.scipy.org/doc/scipy/release/1.14.0-notes.html"]
# last-good = "1.13.1"
# first-bad = "1.14.0"
# workaround = "The same functions are called simpson, trapezoid and cumulative_trapezoid."
# [tool.harness.known.seen]
# release = "1.14.0"
# error = "ImportError: cannot import name 'simps' from 'scipy.integrate' (scipy/integrate/__init__.py)"
# ///
"""`scipy.integrate.simps`, `trapz` and `cumtrapz` are gone from scipy 1.14.0 on."""

from scipy.integrate import simps

print(simps([1.0, 2.0, 3.0]))
