# /// script
# requires-python = ">=3.11"
# dependencies = ["gensim==4.3.2", "scipy"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.scipy]
# good = "1.11.4"
# bad = "1.13.1"
# as-of = "none"
# hold = ["numpy<2"]
#
# [tool.harness.signature]
# exception = "ImportError"
# message = "cannot import name 'triu' from 'scipy.linalg'"
#
# [tool.harness.known]
# kind = "import error"
# upstream = ["https://github.com/piskvorky/gensim/issues/3525"]
# last-good = "1.12.0"
# first-bad = "1.13.0"
# workaround = "Install gensim 4.3.3 or later, or hold scipy<1.13."
# fix = "gensim 4.3.3 takes it from numpy."
# [tool.harness.known.seen]
# release = "1.13.0"
# error = "ImportError: cannot import name 'triu' from 'scipy.linalg' (scipy/linalg/__init__.py)"
# frames = ["gensim/__init__.py:<module>", "gensim/corpora/__init__.py:<module>", "gensim/corpora/indexedcorpus.py:<module>", "gensim/interfaces.py:<module>", "gensim/matutils.py:<module>"]
# ///
"""`import gensim` (4.3.2) fails from scipy 1.13.0 on, which removed `scipy.linalg.triu`."""

import gensim

print(gensim.__version__)
