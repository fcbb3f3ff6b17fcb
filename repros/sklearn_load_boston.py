# /// script
# requires-python = ">=3.11"
# dependencies = ["scikit-learn"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.scikit-learn]
# good = "1.1.3"
# bad = "1.3.2"
# as-of = "none"
# hold = ["numpy<2", "scipy<1.12"]
#
# [tool.harness.signature]
# exception = "ImportError"
# message = "`load_boston` has been removed from scikit-learn since version 1.2"
#
# [tool.harness.known]
# kind = "import error"
# upstream = ["https://scikit-learn.org/stable/whats_new/v1.2.html"]
# last-good = "1.1.3"
# first-bad = "1.2.0"
# workaround = "Its data is fetch_openml(name=\"boston\", version=1); fetch_california_housing is the data set to use instead."
# [tool.harness.known.seen]
# release = "1.2.0"
# error = "ImportError: `load_boston` has been removed from scikit-learn since version 1.2."
# frames = ["sklearn/datasets/__init__.py:__getattr__"]
# ///
"""`load_boston` is an ImportError from scikit-learn 1.2.0 on."""

from sklearn.datasets import load_boston

print(load_boston().data.shape)
