# /// script
# requires-python = ">=3.8"
# dependencies = ["attrs"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.made]
# with = ["attrs==22.1.0"]
#
# [tool.harness.subjects.attrs]
# good = "22.1.0"
# bad = "22.2.0"
# as-of = "none"
#
# [tool.harness.signature]
# exception = "AttributeError"
# message = "'Point' object has no attribute 'x'"
#
# [tool.harness.known]
# kind = "crash"
# upstream = ["https://github.com/python-attrs/attrs/pull/1085", "https://github.com/requests-cache/aiohttp-client-cache/issues/140"]
# last-good = "22.1.0"
# first-bad = "22.2.0"
# last-bad = "22.2.0"
# fixed-in = "23.1.0"
# file = "attr/_make.py"
# pull-request = "https://github.com/python-attrs/attrs/pull/1009"
# workaround = "attrs 23.1 reads both; with 22.2, pickle the instances again."
# [tool.harness.known.seen]
# release = "22.2.0"
# error = "AttributeError: 'Point' object has no attribute 'x'"
# ///
"""Instances with slots that attrs 22.1 pickled have no fields when attrs 22.2 reads them."""

import os
import pickle
import tempfile
from pathlib import Path

import attr

step = os.environ.get("HARNESS_STEP")
file = Path(os.environ.get("HARNESS_ARTIFACTS") or tempfile.mkdtemp()) / "kept.pickle"


@attr.s(slots=True)
class Point:
    """What is pickled."""

    x = attr.ib()
    y = attr.ib()


if step != "use":
    file.write_bytes(pickle.dumps(Point(1, 2)))
if step != "make":
    print(pickle.loads(file.read_bytes()))
