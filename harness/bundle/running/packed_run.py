"""Runs a packed probe under the guard and keeps its results. Standard library only, Python 3.9 and later.

In a bundle this file is in `harness-run/`, beside the modules that it imports.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import launch  # type: ignore[import-not-found]

_TOOLS = Path(__file__).resolve().parent
_SHORTEST_SECRET = 8


class RunFailed(Exception):
    """There is no result; the message is one sentence that says why."""


def run_under_guard(
    bundle: Path, probe: dict[str, Any], python: Path, part: Path, record: dict[str, Any]
) -> dict[str, Any]:
    """Run a probe as the harness does: the same folders, environment, guard and child driver. Raises `RunFailed`."""
    source = (bundle / "probes" / probe["key"] / probe["script"]).read_bytes()
    limits = launch.Limits(probe["wall_s"], probe["memory"])
    with launch.scratch_folder(Path(tempfile.gettempdir())) as scratch, scratch.log.open("x+b") as log:
        argv = launch.script_command(
            scratch,
            python=python,
            inside=_TOOLS / "inside",
            name=probe["script"],
            source=source.decode(),
            capability=probe["capability"] if probe["device"] == "emulated" else None,
        )
        env = launch.process_environment(
            scratch,
            ours=os.environ,
            python=python,
            pass_env=probe["pass_env"],
            extra={**probe["variables"], "HARNESS_ROOT": str(bundle)},
        )
        started = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
        request = launch.guard_request(
            argv,
            limits,
            env=env,
            cwd=scratch.work,
            output=scratch.log,
            remove_if_orphaned=scratch.root,
        )
        ended = guarded(request)
        launch.keep_log(log, part / "log.gz")
        secrets = [os.environ[name] for name in probe["pass_env"] if len(os.environ.get(name, "")) >= _SHORTEST_SECRET]
        keep(scratch.report, part / "report.json")
        keep(scratch.metrics, part / "metrics.json", limit=launch.METRICS_LIMIT + 1)
        hide(secrets, part)
    files = {path.name: _sha256(path.read_bytes()) for path in sorted(part.iterdir()) if path.is_file()}
    record.update(started=started, ended=ended, memory=limits.bytes, script=_sha256(source), files=files)
    (part / "run.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return ended


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def guarded(line: bytes) -> dict[str, Any]:
    """Let the guard run a probe; returns how it ended. Raises `RunFailed`.

    When its pipe is closed, also on Ctrl-C, the guard ends every process that it started.
    """
    guard = subprocess.Popen(
        [sys.executable, "-I", "-S", str(_TOOLS / "guard.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    said = b""
    try:
        if guard.stdin is not None and guard.stdout is not None:
            guard.stdin.write(line)
            guard.stdin.flush()
            said = guard.stdout.read()
    finally:
        if guard.stdin is not None:
            guard.stdin.close()
        guard.wait()
    try:
        ended: dict[str, Any] = json.loads(said)
    except ValueError:
        raise RunFailed(f"its guard failed: {said.decode(errors='replace').strip() or 'no error message'}") from None
    if "problem" in ended:
        raise RunFailed(f"its interpreter can't be started: {os.strerror(ended['problem'])}")
    return ended


def keep(source: Path, target: Path, limit: int = -1) -> None:
    """Copy a file that a run wrote, at most `limit` bytes (-1: all); anything but a file becomes an empty folder."""
    if source.is_file():
        with source.open("rb") as file:
            target.write_bytes(file.read(limit))
    elif source.exists():
        target.mkdir()


def hide(secrets: list[str], part: Path) -> None:
    """Replace the values of passed variables in the results, since the machine that absorbs them can't know them."""
    forms = {form for secret in secrets for form in (secret, json.dumps(secret)[1:-1])}
    for path in (file for file in part.iterdir() if forms and file.is_file()):
        packed = path.suffix == ".gz"
        content = was = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
        for form in sorted(forms, key=len, reverse=True):
            content = content.replace(form.encode(), b"<secret>")
        if content != was:
            path.write_bytes(gzip.compress(content, mtime=0) if packed else content)
