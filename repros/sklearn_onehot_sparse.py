# /// script
# requires-python = ">=3.11"
# dependencies = ["scikit-learn"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.scikit-learn]
# good = "1.3.2"
# bad = "1.5.2"
# as-of = "none"
# hold = ["numpy<2", "scipy<1.14"]
#
# [tool.harness.signature]
# exception = "TypeError"
# message = "got an unexpected keyword argument 'sparse'"
#
# [tool.harness.known]
# kind = "crash"
# upstream = ["https://scikit-learn.org/stable/whats_new/v1.4.html"]
# last-good = "1.3.2"
# first-bad = "1.4.0"
# file = "sklearn/preprocessing/_encoders.py"
# function = "OneHotEncoder.__init__"
# depth = "release"
# workaround = "The argument is called sparse_output since 1.2."
# [tool.harness.known.seen]
# release = "1.4.0"
# error = "TypeError: OneHotEncoder.__init__() got an unexpected keyword argument 'sparse'"
# ///
"""`OneHotEncoder(sparse=...)` is a TypeError from scikit-learn 1.4.0 on."""

from sklearn.preprocessing import OneHotEncoder

print(OneHotEncoder(sparse=False).fit_transform([["a"], ["b"]]))
