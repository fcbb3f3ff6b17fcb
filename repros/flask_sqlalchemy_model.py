# /// script
# requires-python = ">=3.11"
# dependencies = ["flask-sqlalchemy"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.flask-sqlalchemy]
# good = "3.0.5"
# bad = "3.1.1"
# as-of = "none"
# hold = ["sqlalchemy<2.1"]
#
# [tool.harness.signature]
# exception = "ImportError"
# message = "cannot import name 'Model' from 'flask_sqlalchemy'"
#
# [tool.harness.known]
# kind = "import error"
# upstream = ["https://flask-sqlalchemy.palletsprojects.com/en/stable/changes/"]
# last-good = "3.0.5"
# first-bad = "3.1.0"
# workaround = "Import it from flask_sqlalchemy.model."
# [tool.harness.known.seen]
# release = "3.1.0"
# error = "ImportError: cannot import name 'Model' from 'flask_sqlalchemy' (flask_sqlalchemy/__init__.py)"
# ///
"""`from flask_sqlalchemy import Model` is an ImportError from Flask-SQLAlchemy 3.1.0 on."""

from flask_sqlalchemy import Model

print(Model)
