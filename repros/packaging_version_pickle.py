# /// script
# requires-python = ">=3.8"
# dependencies = ["packaging"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.made]
# with = ["packaging==26.0"]
#
# [tool.harness.subjects.packaging]
# good = "26.0"
# bad = "26.1"
# as-of = "none"
#
# [tool.harness.signature]
# exception = "ModuleNotFoundError"
# message = "No module named 'packaging._structures'"
#
# [tool.harness.known]
# kind = "crash"
# upstream = ["https://github.com/pypa/packaging/issues/1162"]
# last-good = "26.0"
# first-bad = "26.1"
# last-bad = "26.1"
# fixed-in = "26.2"
# depth = "release"
# fix = "packaging 26.2 reads the pickles of all earlier releases."
# pull-request = "https://github.com/pypa/packaging/pull/1116"
# workaround = "Pickle str(version), or read with packaging 26.2."
# [tool.harness.known.seen]
# release = "26.1"
# error = "ModuleNotFoundError: No module named 'packaging._structures'"
# ///
"""A `Version` that packaging 26.0 pickled can't be read by packaging 26.1."""

import os
import pickle
import tempfile
from pathlib import Path

from packaging.version import Version

step = os.environ.get("HARNESS_STEP")
file = Path(os.environ.get("HARNESS_ARTIFACTS") or tempfile.mkdtemp()) / "kept.pickle"

if step != "use":
    version = Version("1.2.3")
    hash(version)  # fills the cache that is pickled too
    file.write_bytes(pickle.dumps(version))
if step != "make":
    print(pickle.loads(file.read_bytes()))
