"""A repro without a sandbox does not see the user's variables in its parent processes."""

from __future__ import annotations

import gzip
import json
import sys

import pytest

BODY = """
import json, os
pid, seen = os.getppid(), []
for _ in range(2):  # the guard, and the harness
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        line = file.read().decode()
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environ = file.read().decode()
    except PermissionError:
        environ = ""
    seen.append(["guard.py" in line, "harness" in line, "hush" in environ])
    with open(f"/proc/{pid}/stat") as file:
        pid = int(file.read().rpartition(")")[2].split()[1])
print(json.dumps(seen))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is no /proc")
def test_a_repro_finds_no_secrets_in_parent_processes(harness, write_repro):
    repro = write_repro("brittle", body=BODY)
    process = harness.start("probe", repro, "--with", "brittle==1.0", "--json", HF_TOKEN="hush", HARNESS_SANDBOX="off")
    stdout, stderr = process.communicate()
    seen = json.loads(stdout)
    assert seen["outcome"] == "completed", (seen, stderr)
    told = json.loads(gzip.decompress((harness.folder / "results" / seen["log"]).read_bytes()))
    assert told == [[True, True, False], [False, True, False]]
