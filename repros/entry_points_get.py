# /// script
# requires-python = ">=3.11"
# dependencies = ["importlib-metadata"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.importlib-metadata]
# good = "4.13.0"
# bad = "6.0.0"
# as-of = "none"
#
# [tool.harness.signature]
# exception = "AttributeError"
# message = "'EntryPoints' object has no attribute 'get'"
#
# [tool.harness.known]
# kind = "import error"
# upstream = ["https://github.com/python/importlib_metadata/issues/409", "https://importlib-metadata.readthedocs.io/en/latest/history.html"]
# last-good = "4.13.0"
# first-bad = "5.0.0"
# file = "importlib_metadata/__init__.py"
# depth = "release"
# workaround = "entry_points(group=...) works with every release from 3.6 on."
# [tool.harness.known.seen]
# release = "5.0.0"
# error = "AttributeError: 'EntryPoints' object has no attribute 'get'"
# ///
"""`entry_points().get(...)` is an AttributeError from importlib-metadata 5.0.0 on."""

from importlib_metadata import entry_points

print(len(entry_points().get("console_scripts", [])))
