# /// script
# requires-python = ">=3.11"
# dependencies = ["marshmallow"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.marshmallow]
# good = "3.26.1"
# bad = "4.1.0"
# as-of = "none"
#
# [tool.harness.signature]
# exception = "AttributeError"
# message = "module 'marshmallow' has no attribute '__version__'"
#
# [tool.harness.known]
# kind = "import error"
# upstream = ["https://marshmallow.readthedocs.io/en/stable/changelog.html"]
# last-good = "3.26.2"
# first-bad = "4.0.0"
# file = "marshmallow/__init__.py"
# depth = "release"
# workaround = "importlib.metadata.version(\"marshmallow\") works with every release."
# [tool.harness.known.seen]
# release = "4.0.0"
# error = "AttributeError: module 'marshmallow' has no attribute '__version__'"
# ///
"""`marshmallow.__version__` is an AttributeError from marshmallow 4.0.0 on."""

import marshmallow

print(marshmallow.__version__)
