# /// script
# requires-python = ">=3.11"
# dependencies = ["flask==2.2.2", "werkzeug"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.werkzeug]
# good = "2.3.8"
# bad = "3.0.6"
# as-of = "none"
#
# [tool.harness.signature]
# exception = "ImportError"
# message = "cannot import name 'url_quote' from 'werkzeug.urls'"
#
# [tool.harness.known]
# kind = "import error"
# upstream = ["https://werkzeug.palletsprojects.com/en/stable/changes/"]
# last-good = "2.3.8"
# first-bad = "3.0.0"
# file = "werkzeug/urls.py"
# depth = "release"
# workaround = "Hold werkzeug<3, or install flask 2.3 or later."
# [tool.harness.known.seen]
# release = "3.0.0"
# error = "ImportError: cannot import name 'url_quote' from 'werkzeug.urls' (werkzeug/urls.py)"
# frames = ["flask/__init__.py:<module>", "flask/app.py:<module>"]
# ///
"""`import flask` (2.2) fails from werkzeug 3.0.0 on, which removed `werkzeug.urls.url_quote`."""

import flask

print(flask.Flask("a"))
