"""A write is whole or did not happen, and a killed one leaves nothing."""

from __future__ import annotations

import subprocess
import sys

from harness.atomic import remove_partial, write_whole

WRITES = """
import sys, time
from pathlib import Path
from harness.atomic import write_whole

class Slow(str):
    def encode(self):
        print("writing", flush=True)
        time.sleep(600)

write_whole(Path(sys.argv[1]), Slow())
"""


def test_the_temporary_file_of_a_killed_process_is_removed_and_that_of_a_living_one_is_kept(tmp_path):
    target = tmp_path / "record.json"
    with subprocess.Popen([sys.executable, "-c", WRITES, target], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"writing\n"
        partial = list(tmp_path.iterdir())
        remove_partial([tmp_path, tmp_path / "missing"])
        assert len(partial) == 1
        assert list(tmp_path.iterdir()) == partial
        process.kill()
    write_whole(target, "whole")
    remove_partial([tmp_path])
    assert list(tmp_path.iterdir()) == [target]
    assert target.read_text() == "whole"
