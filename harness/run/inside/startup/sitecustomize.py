"""Records what a process of a command uses besides its environment; `site` imports it.

`HARNESS_OUTSIDE` is the file that says where (`outside.py`). In a traced command, also which installed files it used
and what ran in them: `HARNESS_TRACED` is the folder that says which files to trace, to which each process adds its
record when it ends. `HARNESS_IMPORTS` is the file to which the first process writes the graph of its imports. A
sitecustomize that the environment has is imported as well.
"""

# Importing pathlib takes time.
# ruff: noqa: PTH100, PTH118, PTH119, PTH120, PTH123

from __future__ import annotations

import atexit
import contextlib
import importlib
import importlib.util
import json
import os
import sys
from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))


def _load(name: str, *path: str) -> Any:
    """Load a module of the folder above this one, under a name that no package has."""
    spec = importlib.util.spec_from_file_location(name, os.path.join(os.path.dirname(_HERE), *path))
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _begin(folder: str) -> None:
    """Start the trace, and have the record written at the end of this process, but not by its forked children."""
    with open(os.path.join(folder, "traced.json"), encoding="utf-8") as file:
        traced = json.load(file)
    facts, tracing = _load("_harness_report", "collect", "_harness_report.py"), _load("_harness_trace", "trace.py")
    roots = [one for one in sys.path if os.path.basename(one) in ("site-packages", "dist-packages")]
    tracer, process = tracing.Tracer(traced["files"], roots, counts=traced["counts"]), os.getpid()

    def end() -> None:
        tracer.stop()
        if os.getpid() != process:
            return
        owners = facts.owners(facts.used_files((), roots), facts.distributions(roots), roots)
        record = {"loaded": facts.by_distribution(owners), "trace": tracer.report()}
        with open(os.path.join(folder, f"process-{process}.json"), "x", encoding="utf-8") as file:
            json.dump(record, file)

    atexit.register(end)
    tracer.start()


def _record_imports(path: str) -> None:
    """Record the imports of this process if it is the first one, and write them when it ends."""
    os.close(os.open(f"{path}.claimed", os.O_CREAT | os.O_EXCL))
    graph, process = _load("_harness_trace", "trace.py").ImportGraph(), os.getpid()

    def end() -> None:
        if os.getpid() == process:
            with open(path, "x", encoding="utf-8") as file:
                json.dump(graph.described(), file)

    atexit.register(end)
    graph.install()


def _note_outside(path: str) -> None:
    with open(path, encoding="utf-8") as file:
        _load("_harness_outside", "outside.py").begin(json.load(file))


def _import_next() -> None:
    """Import the sitecustomize that this one hides, if there is one."""
    own = sys.modules.pop("sitecustomize")
    sys.path[:] = [one for one in sys.path if os.path.abspath(one) != _HERE]
    try:
        importlib.import_module("sitecustomize")
    except ImportError:
        sys.modules["sitecustomize"] = own


if __name__ == "sitecustomize":
    with contextlib.suppress(Exception):  # the record is evidence, without which the search takes longer
        _begin(os.environ["HARNESS_TRACED"])
    with contextlib.suppress(Exception):  # without it, nothing is forked
        _record_imports(os.environ.pop("HARNESS_IMPORTS"))
    with contextlib.suppress(Exception):  # without it, an older result may be taken
        _note_outside(os.environ["HARNESS_OUTSIDE"])
    _import_next()
