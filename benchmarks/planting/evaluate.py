"""Evaluates expressions with the modules of a tree of files, each in a forked process."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from attrs import define, field, frozen

from planting.text import Tree

_SERVER = r"""
import json, os, sys
def answer(job, out):
    sys.path.insert(0, job["folder"]); lines = {}
    def enter(frame, event, arg):
        name = frame.f_code.co_filename
        if not name.startswith(job["folder"]): return None
        seen = lines.setdefault(name[len(job["folder"]) + 1:], set())
        def inside(frame, event, arg):
            if event == "line": seen.add(frame.f_lineno)
            return inside
        return inside
    space = {}
    try:
        exec(job["setup"], space)
        if job["trace"]: sys.settrace(enter)
        value = repr(eval(job["expression"], space)); raised = ""
    except BaseException as error:
        value, raised = str(error)[:300], type(error).__name__
    finally:
        sys.settrace(None)
    told = {"value": value[:5000], "raised": raised, "lines": {k: sorted(v) for k, v in lines.items()}}
    os.write(out, json.dumps(told).encode())
for line in sys.stdin:
    job = json.loads(line); ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        import signal
        signal.alarm(5); os.close(ours); null = os.open(os.devnull, os.O_RDWR); os.dup2(null, 1); os.dup2(null, 2)
        answer(job, theirs); os._exit(0)
    os.close(theirs); parts = []
    while part := os.read(ours, 65536): parts.append(part)
    os.close(ours); os.waitpid(pid, 0)
    print(b"".join(parts).decode() or '{"value": "", "raised": "died", "lines": {}}', flush=True)
"""


@frozen
class Ran:
    """The result of an expression: `value` is its repr or an exception's message; `lines` are those that ran."""

    value: str
    raised: str
    lines: dict[str, list[int]] = field(factory=dict, eq=False)


@define
class Runner:
    """Evaluates expressions in processes forked from one server; trees are written below `folder`."""

    folder: Path
    _process: subprocess.Popen[str] | None = None

    def __call__(self, tree: Tree, setup: str, expression: str, *, trace: bool = False) -> Ran:
        """Write the tree to a temporary folder and evaluate the expression; with `trace`, record the lines that ran."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-B", "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        place = Path(tempfile.mkdtemp(dir=self.folder))
        for path, text in tree.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_text(text, encoding="utf-8")
        job = {"folder": str(place), "setup": setup, "expression": expression, "trace": trace}
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("no pipes")
        stdin.write(json.dumps(job) + "\n")
        stdin.flush()
        told = json.loads(stdout.readline())
        shutil.rmtree(place)
        return Ran(told["value"], told["raised"], told["lines"])

    def close(self) -> None:
        """End the server process."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait()
