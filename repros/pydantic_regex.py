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
# exception = "PydanticUserError"
# message = "`regex` is removed. use `pattern` instead"
#
# [tool.harness.known]
# kind = "crash"
# upstream = ["https://docs.pydantic.dev/latest/migration/"]
# last-good = "1.10.27"
# first-bad = "2.0"
# workaround = "The argument is called pattern."
# [tool.harness.known.seen]
# release = "2.0"
# error = "pydantic.errors.PydanticUserError: `regex` is removed. use `pattern` instead"
# frames = ["pydantic/fields.py:Field"]
# ///
"""`Field(regex=...)` raises PydanticUserError from pydantic 2.0 on."""

from pydantic import BaseModel, Field


class Model(BaseModel):
    """One field with a pattern."""

    name: str = Field(regex="^[a-z]+$")


print(Model(name="a"))
