"""Runs commands of the harness in processes forked from one that has imported it, which saves importing it each time.

As a script it is that process: a line of JSON on stdin is a command, a line on stdout its exit code.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import platform
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
# What commands import late: most of them need it here.
LATE = (
    *("harness.api", "harness.bisection.commits", "harness.bisection.evidence", "harness.bisection.releases"),
    *("harness.report.history", "harness.run.devices.cpu", "harness.run.devices.cuda", "harness.run.devices.rocm"),
    *("encodings.ascii", "encodings.utf_8_sig", "markdown_it", "pip_requirements_parser", "psutil", "regex"),
    *("requests", "rich._emoji_codes"),
)


class CommandServer:
    """Starts the process for the first command, and ends it with this one; `path` is the PATH of most commands."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, words: list[str], environ: Mapping[str, str], folder: Path, limit_s: float) -> tuple[int, str, str]:
        """Run a command in a folder to its end; return its exit code, stdout and stderr.

        Raises `TimeoutError` after `limit_s` seconds; the command is ended then.
        """
        outputs = [folder.with_name(f"{folder.name}.{name}") for name in ("out", "err")]
        request = {"words": words, "environ": dict(environ), "folder": str(folder), "outputs": [*map(str, outputs)]}
        process = self._process = self._process or _started(self._path)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        if not select.select([process.stdout], [], [], limit_s)[0]:
            self._process = None
            os.killpg(process.pid, signal.SIGKILL)
            raise TimeoutError(f"{words} ran for more than {limit_s} s")
        code = int(process.stdout.readline())
        return (code, *(path.read_text("utf-8") for path in outputs))


def _started(path: str) -> subprocess.Popen[bytes]:
    words = [sys.executable, __file__]
    environ = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        words, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    atexit.register(process.kill)
    return process


def _serve() -> None:
    _warm_up()
    sys.path.remove(str(Path(__file__).parent))
    gc.freeze()  # else each fork looks through all of it for garbage when it ends
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            _run(**json.loads(line))
        _, status = os.waitpid(pid, 0)
        with contextlib.suppress(BrokenPipeError):
            print(os.waitstatus_to_exitcode(status), file=answers, flush=True)


def _warm_up() -> None:
    """Do what each command would do again.

    It imports, compiles the templates, generates the code for records, and looks at the machine.
    """
    commands = pkgutil.iter_modules([str(ROOT / "harness" / "cli")])
    for module in (*LATE, *(f"harness.cli.{found.name}" for found in commands)):
        importlib.import_module(module)
    from harness import records
    from harness.environment.interpreter import target_of
    from harness.environment.pages import Page
    from harness.events import SILENT
    from harness.model import Observation, Repro
    from harness.report import page
    from harness.report.archive import StoredAnswer
    from harness.run import sandbox
    from harness.run.programs import user_tools
    from harness.store import Resolution

    for kind in (Observation, Page, Repro, Resolution, StoredAnswer):
        records._converter.get_structure_hook(kind)
        records._converter.get_unstructure_hook(kind)
    for ending in (".md.j2", ".html.j2"):
        templates = page._environment(autoescape=ending == ".html.j2")
        for name in templates.list_templates(filter_func=lambda name, ending=ending: name.endswith(ending)):
            templates.get_template(name)
    target_of(platform.python_version())
    user_tools(os.environ["PATH"])
    sandbox.choose(sandbox.SandboxMode.AUTO, network=False, reporter=SILENT)


def _run(words: list[str], environ: dict[str, str], folder: str, outputs: list[str]) -> None:
    """Be the command until this process ends."""
    from harness.cli import main
    from harness.run import process

    if environ.pop("LIMIT_WHEN_PRINTED", ""):
        process.GUARD = ROOT / "tests" / "run" / "at_the_limit" / "guard.py"
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    for number, path in enumerate([os.devnull, *outputs]):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), number)
    sys.argv[:] = ["harness", *words]
    code = 1
    try:
        main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:  # noqa: BLE001 - as the interpreter does
        sys.excepthook(*sys.exc_info())
    # To free what was imported would take a copy of each page of it.
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


if __name__ == "__main__":
    _serve()
