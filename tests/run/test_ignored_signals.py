"""The tests themselves work with Ctrl-C ignored from the start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path


def test_children_receive_ctrl_c_even_if_tests_run_in_the_background():
    source = (
        "import support, subprocess, sys\n"
        "told = [sys.executable, '-c', 'import signal; print(signal.getsignal(signal.SIGINT))']\n"
        "print(subprocess.run(told, capture_output=True, text=True).stdout)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", source],
        cwd=Path(__file__).parents[1],
        env={"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": os.environ["PATH"]},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "default_int_handler" in ended.stdout
