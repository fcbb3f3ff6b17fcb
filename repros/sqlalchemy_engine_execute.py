# /// script
# requires-python = ">=3.11"
# dependencies = ["sqlalchemy"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.sqlalchemy]
# good = "1.4.49"
# bad = "2.0.20"
# as-of = "none"
# hold = ["greenlet<4"]
#
# [tool.harness.signature]
# exception = "AttributeError"
# message = "'Engine' object has no attribute 'execute'"
#
# [tool.harness.known]
# kind = "import error"
# upstream = ["https://docs.sqlalchemy.org/en/20/changelog/migration_20.html"]
# last-good = "1.4.54"
# first-bad = "2.0.0"
# workaround = "with engine.connect() as connection: connection.execute(text(...))"
# [tool.harness.known.seen]
# release = "2.0.0"
# error = "AttributeError: 'Engine' object has no attribute 'execute'"
# ///
"""`Engine.execute` is an AttributeError from SQLAlchemy 2.0.0 on."""

from sqlalchemy import create_engine

print(create_engine("sqlite://").execute("select 1").fetchone())
