# /// script
# requires-python = ">=3.11"
# dependencies = ["pydantic"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.pydantic]
# good = "1.10.13"
# bad = "2.5.0"
# as-of = "none"
#
# [tool.harness.signature]
# exception = "PydanticImportError"
# message = "`BaseSettings` has been moved to the `pydantic-settings` package"
#
# [tool.harness.known]
# kind = "import error"
# upstream = ["https://docs.pydantic.dev/latest/migration/"]
# last-good = "1.10.27"
# first-bad = "2.0"
# workaround = "It is in the package pydantic-settings, or in pydantic.v1."
# [tool.harness.known.seen]
# release = "2.0"
# error = "pydantic.errors.PydanticImportError: `BaseSettings` has been moved to the `pydantic-settings` package. See https://docs.pydantic.dev/2.0/migration/#basesettings-has-moved-to-pydantic-settings for more details."
# frames = ["pydantic/__init__.py:__getattr__", "pydantic/_migration.py:wrapper"]
# ///
"""`from pydantic import BaseSettings` raises PydanticImportError from pydantic 2.0 on."""

from pydantic import BaseSettings

print(BaseSettings)
