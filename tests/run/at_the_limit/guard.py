"""The guard with a time limit that comes when the command prints `LIMIT`, however slow the machine is.

It runs instead of the real one where `probes.limit_when_printed` says so.
"""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path

LIMIT = "at the limit"
_FILE = Path(__file__).parents[3] / "harness" / "run" / "guard.py"
_SPEC = importlib.util.spec_from_file_location("guard_itself", _FILE)
itself = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(itself)


class Guard(itself.Guard):
    """The guard of a command that says when its time is over."""

    def _watch(self, deadline, limit):
        while True:
            reason = super()._watch(min(deadline, time.monotonic() + 0.02), limit)
            if reason != "timeout" or LIMIT.encode() in Path(self._request["output"]).read_bytes():
                return reason
            if time.monotonic() >= deadline:
                return reason


def serve():
    """As that of the guard."""
    itself.serve(Guard)
