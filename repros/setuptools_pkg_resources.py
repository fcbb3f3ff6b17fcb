# /// script
# requires-python = ">=3.11"
# dependencies = ["setuptools"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.setuptools]
# good = "80.9.0"
# bad = "82.0.0"
# as-of = "none"
#
# [tool.harness.signature]
# exception = "ModuleNotFoundError"
# message = "No module named 'pkg_resources'"
#
# [tool.harness.known]
# kind = "import error"
# upstream = ["https://setuptools.pypa.io/en/stable/history.html", "https://github.com/sktime/sktime/issues/9383"]
# last-good = "81.0.0"
# first-bad = "82.0.0"
# workaround = "Hold setuptools<82; new code uses importlib.metadata and importlib.resources."
# [tool.harness.known.seen]
# release = "82.0.0"
# error = "ModuleNotFoundError: No module named 'pkg_resources'"
# ///
"""`import pkg_resources` fails from setuptools 82.0.0 on."""

import pkg_resources

print(pkg_resources.get_distribution("setuptools"))
