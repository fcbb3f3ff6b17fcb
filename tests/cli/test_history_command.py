"""`harness history` on tiny releases: what it writes."""

from __future__ import annotations

import json
import re

BODY = """
import os, wavering
print(os.environ["PLACE"])
try:
    wavering.step()
except RuntimeError as error:
    raise RuntimeError(f"{error} at {os.environ['PLACE']}")
"""


def test_pages_and_a_record_are_written_without_the_value_of_a_passed_variable(harness, write_repro):
    write_repro("wavering", body=BODY)
    words = ("wavering", "--from", "1.1", "--to", "1.5", "--max-gap", "1", "--pass-env", "PLACE")
    ended = harness("history", *words, PLACE="an unlucky place")
    paths = [harness.folder / path for path in re.findall(r"report: (\S+)", ended.stdout)]
    assert [path.suffix for path in paths] == [".md", ".html"]
    page = paths[1].read_text(encoding="utf-8")
    assert "broken 1.2 to 1.4, good from 1.5." in page
    assert "the step is broken" in page
    (record,) = (harness.folder / "results" / "histories").iterdir()
    kept = json.loads(record.read_text(encoding="utf-8"))
    assert (kept["schema"], kept["id"], kept["status"]) == (1, record.stem, "broken")
    assert record.stem in paths[1].name
    for text in (page, paths[0].read_text(encoding="utf-8"), record.read_text(encoding="utf-8")):
        assert str(harness.folder) not in text
        assert "an unlucky place" not in text
