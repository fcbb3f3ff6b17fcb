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
# exception = "AttributeError"
# message = "object has no attribute 'get_feature_names'"
#
# [tool.harness.known]
# kind = "import error"
# upstream = ["https://scikit-learn.org/stable/whats_new/v1.2.html"]
# last-good = "1.1.3"
# first-bad = "1.2.0"
# workaround = "get_feature_names_out() returns them as an array."
# [tool.harness.known.seen]
# release = "1.2.0"
# error = "AttributeError: 'CountVectorizer' object has no attribute 'get_feature_names'"
# ///
"""`CountVectorizer.get_feature_names` is an AttributeError from scikit-learn 1.2.0 on."""

from sklearn.feature_extraction.text import CountVectorizer

print(CountVectorizer().fit(["one two"]).get_feature_names())
