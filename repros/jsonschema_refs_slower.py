# /// script
# requires-python = ">=3.11"
# dependencies = ["jsonschema"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.jsonschema]
# good = "4.17.3"
# bad = "4.19.2"
# as-of = "none"
#
# [tool.harness.signature]
# metric = "ratio"
# above = 1.7
#
# [tool.harness.known]
# kind = "slower"
# upstream = ["https://github.com/python-jsonschema/referencing/issues/178", "https://github.com/Benchling-Open-Source/allotropy/pull/669"]
# last-good = "4.17.3"
# first-bad = "4.18.0"
# workaround = "Hold jsonschema<4.18 where a schema has many references, or resolve them before validating."
# ///
"""A schema with many `$ref` takes about twice as long to validate from jsonschema 4.18.0 on.

`ratio` is the CPU time of validating through a chain of eight references, over that of a schema without references but
with as many keywords, nested with `allOf`. Both run in this process, so that a busy machine changes both alike.
"""

import json
import os
import time
from pathlib import Path

import jsonschema

DEPTH = 8
CHAIN = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "items": {"$ref": "#/definitions/s0"},
    "definitions": {f"s{i}": {"allOf": [{"$ref": f"#/definitions/s{i + 1}"}]} for i in range(DEPTH)}
    | {f"s{DEPTH}": {"type": "integer"}},
}
NESTED = {"type": "integer"}
for _ in range(2 * DEPTH):
    NESTED = {"allOf": [NESTED]}
PLAIN = {"$schema": CHAIN["$schema"], "items": NESTED}


def seconds(schema):
    """The best CPU time of five validations of the same list."""
    validator = jsonschema.Draft7Validator(schema)
    times = []
    for _ in range(5):
        began = time.process_time()
        assert not list(validator.iter_errors(list(range(500))))
        times.append(time.process_time() - began)
    return min(times)


ratio = seconds(CHAIN) / seconds(PLAIN)
print(ratio)
if path := os.environ.get("HARNESS_METRICS"):
    Path(path).write_text(json.dumps({"ratio": ratio}), encoding="utf-8")
