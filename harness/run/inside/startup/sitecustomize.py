"""Records what a process of a command uses besides its environment; `site` imports it.

`HARNESS_OUTSIDE` is the file that says where (`outside.py`). In a traced command, also which installed files it used
and what ran in them: `HARNESS_TRACED` is the folder that says which files to trace, to which each process adds its
record when it ends. `HARNESS_IMPORTS` is the file to which the first process writes the graph of its imports. A
sitecustomize that the environment has is imported as well.
"""

# Each Python process of a command imports this module, so it imports only what starts at once, and the rest late: json
# would need re, and importlib.util, contextlib or typing would take as long.
# ruff: noqa: PTH100, PTH118, PTH119, PTH120, PTH123, S110

from __future__ import annotations

import marshal
import os
import sys
from importlib.machinery import SourceFileLoader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))


def _load(name: str, *path: str) -> Any:
    """Load a module of the folder above this one, under a name that no package has."""
    module = type(sys)(name)
    module.__file__ = os.path.join(os.path.dirname(_HERE), *path)
    SourceFileLoader(name, module.__file__).exec_module(module)
    return module


def _begin(folder: str) -> None:
    """Start the trace, and have the record written at the end of this process, but not by its forked children."""
    import atexit
    import json

    with open(os.path.join(folder, "traced.json"), encoding="utf-8") as file:
        traced = json.load(file)
    facts, tracing = _load("_harness_report", "collect", "_harness_report.py"), _load("_harness_trace", "trace.py")
    roots = [one for one in sys.path if os.path.basename(one) in ("site-packages", "dist-packages")]
    tracer, process = tracing.Tracer(traced["files"], roots, counts=traced["counts"]), os.getpid()
    tracer.pause_imports()

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
    import atexit
    import json

    os.close(os.open(f"{path}.claimed", os.O_CREAT | os.O_EXCL))
    graph, process = _load("_harness_trace", "trace.py").ImportGraph(), os.getpid()

    def end() -> None:
        if os.getpid() == process:
            with open(path, "x", encoding="utf-8") as file:
                json.dump(graph.described(), file)

    atexit.register(end)
    graph.install()


def _note_outside(path: str) -> None:
    with open(path, "rb") as file:
        _load("_harness_outside", "outside.py").begin(marshal.load(file))  # noqa: S302 - the harness has written it


def _import_next() -> None:
    """Import the sitecustomize that this one hides, if there is one."""
    own = sys.modules.pop("sitecustomize")
    sys.path[:] = [one for one in sys.path if os.path.abspath(one) != _HERE]
    try:
        __import__("sitecustomize")
    except ImportError:
        sys.modules["sitecustomize"] = own


def _try(record: Callable[[str], None], value: str | None) -> None:
    """Start to record if a variable says where to. What fails is left out, and must not end the process."""
    try:
        if value is not None:
            record(value)
    except Exception:  # noqa: BLE001 - see the calls
        pass


if __name__ == "sitecustomize":
    # Evidence, without which the search takes longer.
    _try(_begin, os.environ.get("HARNESS_TRACED"))
    # Without it, nothing is forked.
    _try(_record_imports, os.environ.pop("HARNESS_IMPORTS", None))
    # Without it, an older result may be taken.
    _try(_note_outside, os.environ.get("HARNESS_OUTSIDE"))
    _import_next()
