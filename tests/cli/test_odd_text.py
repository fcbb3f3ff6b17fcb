"""A repro with odd output is shown completely: in the terminal, as JSON and in the store."""

from __future__ import annotations

import json

BODY = """
import json, os
json.dump({"lo[/x]ss\\ud800": float("inf"), "nan": float("nan"), "\\x1b[2J[red]": 1},
          open(os.environ["HARNESS_METRICS"], "w"))
raise RuntimeError("the step is broken \\ud800 \\x1b]8;;http://x\\x07 \\u202e")
"""


def test_odd_text_of_a_repro_is_shown_everywhere(harness, write_repro):
    repro = write_repro("brittle", body=BODY)
    for more in ((), ("--json",)):
        ended = harness("probe", repro, "--with", "brittle==1.0", *more)
        assert ended.code == 1, (ended.stdout, ended.stderr)
        assert not any(code in ended.stdout for code in ("\x1b]", "\x1b[2J", "\u202e"))
        ended.stdout.encode()
    told = json.loads(ended.stdout, parse_constant=lambda word: 1 / 0)
    assert told["metrics"]["nan"] is None
    assert told["metrics"]["[red]"] == 1.0


def test_many_metrics_are_shown_at_once(harness, write_repro):
    body = "import json, os\nnumbers = {f'm{i}': i for i in range(200_000)}\n"
    body += "json.dump(numbers, open(os.environ['HARNESS_METRICS'], 'w'))\n"
    ended = harness("probe", write_repro("brittle", name="many", body=body), "--with", "brittle==1.0")
    assert ended.stdout.count("\n") < 1100
    assert "1000 of 200000" in ended.stdout, ended.stdout[:3000]
