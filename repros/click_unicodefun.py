# /// script
# requires-python = ">=3.11"
# dependencies = ["black==22.1.0", "click"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.click]
# good = "8.0.4"
# bad = "8.1.3"
# as-of = "none"
#
# [tool.harness.signature]
# exception = "ImportError"
# message = "cannot import name '_unicodefun' from 'click'"
#
# [tool.harness.known]
# kind = "import error"
# upstream = ["https://github.com/psf/black/issues/2964"]
# last-good = "8.0.4"
# first-bad = "8.1.0"
# workaround = "Install black 22.3.0 or later, or hold click<8.1."
# fix = "black 22.3.0 looks whether the module is there."
# [tool.harness.known.seen]
# release = "8.1.0"
# error = "ImportError: cannot import name '_unicodefun' from 'click' (click/__init__.py)"
# frames = ["black/__init__.py:patch_click"]
# ///
"""black 22.1.0 cannot start from click 8.1.0 on, which removed the module `_unicodefun`."""

import black

black.patch_click()
print(black.__version__)
