"""Scripts that run with the stand-in for CUDA, in an interpreter of their own."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

PACKAGE = Path(__file__).parents[3] / "harness" / "run" / "inside" / "emulation"
PRELUDE = """\
import importlib.util, json, os, sys
def install(**given):
    spec = importlib.util.spec_from_file_location(
        "_harness_emulation", {init!r}, submodule_search_locations=[{package!r}])
    module = importlib.util.module_from_spec(spec)
    sys.modules["_harness_emulation"] = module
    spec.loader.exec_module(module)
    module.install(**given)
    return module
"""


class Python:
    """An interpreter to run scripts in."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def run(self, script: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a script that can call `install(capability=...)`."""
        prelude = PRELUDE.format(init=str(PACKAGE / "__init__.py"), package=str(PACKAGE))
        script_file = cwd / "script.py"  # a file, since torch.jit.script reads sources
        script_file.write_text(prelude + script, encoding="utf-8")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        return subprocess.run(
            [self.path, script_file],
            cwd=cwd,
            env={**inherited, "OMP_NUM_THREADS": "1", **variables},
            text=True,
            capture_output=True,
            timeout=120,
            check=False,
        )

    def tell(self, script: str, cwd: Path, **variables: str) -> object:
        """The value that a script leaves in `told`, by way of JSON."""
        done = self.run(script + "\nprint('TOLD', json.dumps(told))", cwd, **variables)
        assert done.returncode == 0, done.stderr
        lines = [line for line in done.stdout.splitlines() if line.startswith("TOLD ")]
        return json.loads(lines[-1].removeprefix("TOLD "))
