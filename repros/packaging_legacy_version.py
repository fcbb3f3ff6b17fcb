# /// script
# requires-python = ">=3.11"
# dependencies = ["packaging"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.packaging]
# good = "21.3"
# bad = "23.0"
# as-of = "none"
#
# [tool.harness.signature]
# exception = "InvalidVersion"
#
# [tool.harness.known]
# kind = "crash"
# upstream = ["https://packaging.pypa.io/en/stable/changelog.html", "https://github.com/pypa/packaging/pull/407"]
# last-good = "21.3"
# first-bad = "22.0"
# file = "packaging/version.py"
# function = "parse"
# depth = "release"
# workaround = "Hold packaging<22 until the version is a valid one."
# [tool.harness.known.seen]
# release = "22.0"
# error = "packaging.version.InvalidVersion: Invalid version: '1.0-custom_build.x'"
# frames = ["packaging/version.py:parse", "packaging/version.py:__init__"]
# ///
"""A text that is not a version, such as `1.0-custom_build`, raises InvalidVersion from packaging 22.0 on."""

from packaging.version import parse

print(parse("1.0-custom_build.x"))
