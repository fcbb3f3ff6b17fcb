# /// script
# requires-python = ">=3.11"
# dependencies = ["scikit-learn", "numpy<2"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.made]
# with = ["scikit-learn==1.2.2"]
#
# [tool.harness.subjects.scikit-learn]
# good = "1.2.2"
# bad = "1.4.2"
# as-of = "none"
#
# [tool.harness.signature]
# exception = "ValueError"
# message = "node array from the pickle has an incompatible dtype"
#
# [tool.harness.known]
# kind = "crash"
# upstream = ["https://scikit-learn.org/stable/whats_new/v1.3.html", "https://github.com/yzhao062/pyod/issues/519"]
# last-good = "1.2.2"
# first-bad = "1.3.0"
# depth = "release"
# workaround = "Fit the model again, or predict with the scikit-learn that fitted it."
# [tool.harness.known.seen]
# release = "1.3.0"
# error = "ValueError: node array from the pickle has an incompatible dtype:"
# ///
"""A decision tree that scikit-learn 1.2 pickled can't be read by scikit-learn 1.3."""

import os
import pickle
import tempfile
from pathlib import Path

from sklearn.tree import DecisionTreeClassifier

step = os.environ.get("HARNESS_STEP")
file = Path(os.environ.get("HARNESS_ARTIFACTS") or tempfile.mkdtemp()) / "kept.pickle"

if step != "use":
    file.write_bytes(pickle.dumps(DecisionTreeClassifier(random_state=0).fit([[0], [1]], [0, 1])))
if step != "make":
    print(pickle.loads(file.read_bytes()).predict([[1]]))
