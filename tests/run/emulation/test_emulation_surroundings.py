"""What a package can do to the process, and what is blocked."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import os
from harness.run.inside.emulation.installing import prepare
prepare()
assert os.system("ldconfig /usr/local") == 0
assert os.system("sudo /sbin/ldconfig") == 0
assert os.system("touch other") == 0
assert os.system("exit 3") != 0
print(os.environ["TORCHDYNAMO_DISABLE"], os.environ.get("UNSLOTH_COMPILE_DISABLE"))
"""


def test_ldconfig_is_blocked_and_other_commands_run(tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    ldconfig = tools / "ldconfig"
    ldconfig.write_text("#!/bin/sh\ntouch linked\n", encoding="utf-8")
    ldconfig.chmod(ldconfig.stat().st_mode | stat.S_IXUSR)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path,
        env={
            **os.environ,
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(Path(__file__).parents[3]),
        },
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.stdout == "1 None\n", done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin", "other"]
