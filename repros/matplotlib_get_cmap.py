# /// script
# requires-python = ">=3.11"
# dependencies = ["matplotlib"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.matplotlib]
# good = "3.8.4"
# bad = "3.9.0"
# as-of = "none"
# hold = ["numpy<2"]
#
# [tool.harness.signature]
# exception = "AttributeError"
# message = "module 'matplotlib.cm' has no attribute 'get_cmap'"
#
# [tool.harness.known]
# kind = "import error"
# upstream = ["https://matplotlib.org/stable/api/prev_api_changes/api_changes_3.9.0.html"]
# last-good = "3.8.4"
# first-bad = "3.9.0"
# last-bad = "3.9.0"
# fixed-in = "3.9.1.post1"
# good-again = "3.10.0"
# fix = "3.9.1, which is yanked, and 3.9.1.post1 have it again."
# workaround = "matplotlib.colormaps[name], or matplotlib.pyplot.get_cmap(name)."
# [tool.harness.known.seen]
# release = "3.9.0"
# error = "AttributeError: module 'matplotlib.cm' has no attribute 'get_cmap'"
# ///
"""`matplotlib.cm.get_cmap` was an AttributeError in matplotlib 3.9.0."""

import matplotlib.cm

print(matplotlib.cm.get_cmap("viridis").N)
