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
# exception = "ValidationError"
# message = "Field required"
#
# [tool.harness.known]
# kind = "changed default"
# upstream = ["https://docs.pydantic.dev/latest/migration/"]
# last-good = "1.10.27"
# first-bad = "2.0"
# workaround = "Give the default: size: Optional[int] = None."
# [tool.harness.known.seen]
# release = "2.0"
# error = "pydantic_core._pydantic_core.ValidationError: 1 validation error for Model"
# frames = ["pydantic/main.py:__init__"]
# ///
"""A field of type `Optional[int]` without a default is required from pydantic 2.0 on; before, it was None."""

from pydantic import BaseModel


class Model(BaseModel):
    """One field that may be None."""

    size: int | None


print(Model())
