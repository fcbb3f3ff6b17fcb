# /// script
# requires-python = ">=3.11"
# dependencies = ["itsdangerous"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.itsdangerous]
# good = "2.0.0"
# bad = "2.1.2"
# as-of = "none"
#
# [tool.harness.signature]
# exception = "ImportError"
# message = "cannot import name 'json' from 'itsdangerous'"
#
# [tool.harness.known]
# kind = "import error"
# upstream = ["https://itsdangerous.palletsprojects.com/en/stable/changes/"]
# last-good = "2.0.1"
# first-bad = "2.1.0"
# workaround = "Hold itsdangerous<2.1, or install flask 2."
# [tool.harness.known.seen]
# release = "2.1.0"
# error = "ImportError: cannot import name 'json' from 'itsdangerous' (itsdangerous/__init__.py)"
# ///
"""`from itsdangerous import json` fails from itsdangerous 2.1.0 on; flask 1.1 does it when it is imported."""

from itsdangerous import json

print(json.dumps([1]))
