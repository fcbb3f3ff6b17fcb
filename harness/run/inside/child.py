"""Runs one script inside the probed environment, as `python script.py` would, and reports what happened.

Started as `python child.py JOB`. It writes the report file completely or not at all. Output, traceback and exit
code are the same as without it.
"""

# Each run starts it, so it imports only what starts at once: json would need re, and pathlib, importlib.util or typing
# would take as long as all the rest of this module.
# ruff: noqa: PTH100, PTH103, PTH105, PTH109, PTH118, PTH119, PTH120, PTH123, PTH208

from __future__ import annotations

import importlib.machinery
import io
import marshal
import os
import sys
from _json import encode_basestring_ascii, make_encoder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_Module = type(sys)
_ACCESS_MODE = os.O_WRONLY | os.O_RDWR
_INTERRUPTED = 130

_used_files: set[str] = set()
_former_packages: list[str] = []  # of the environments from which this process imported before it was forked
_forks = [0]


def note_use(event: str, args: tuple[Any, ...]) -> None:
    """Audit hook: record which installed files are executed or read as data. It is called very often.

    Sources that are only read do not count: transformers scans all of its sources for their exports.
    """
    if event == "open":
        path, flags = args[0], args[-1]
        to_write = type(flags) is int and flags & _ACCESS_MODE
        if type(path) is str and "-packages" in path and not to_write and not path.endswith((".py", ".pyc")):
            _used_files.add(path)
    elif event == "exec":
        path = getattr(args[0], "co_filename", "")
        if "-packages" in path:
            _used_files.add(path)


def used_files() -> set[str]:
    """The installed files that were executed or read as data until now."""
    return set(_used_files)


def uses_cuda() -> bool:
    """Whether CUDA is initialised here. Any other query would initialise it, which takes seconds and memory."""
    torch: Any = sys.modules.get("torch")
    try:
        return bool(torch.cuda.is_initialized())
    except Exception:  # noqa: BLE001 - no torch, or an incomplete one
        return False


def _note_fork() -> None:
    """Count a fork by the script, whose child continues the script. Called in the parent after each fork.

    Forks by multiprocessing do not count, because their children never return to the script.
    """
    frame: Any = sys._getframe(1)  # noqa: SLF001 - the only way to know the caller
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith(("multiprocessing.", "concurrent.futures.")):
            return
        frame = frame.f_back
    _forks[0] += 1


def _is_forked_copy_running() -> bool:
    """Whether a forked child of the script still runs this program, that is, has the same command line."""
    try:
        with open("/proc/self/cmdline", "rb") as file:
            own = file.read()
        children: list[str] = []
        for thread in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{thread}/children", encoding="ascii") as file:
                children += file.read().split()
        for child in children:
            with open(f"/proc/{child}/cmdline", "rb") as file:
                if file.read() == own:
                    return True
    except Exception:  # noqa: BLE001 - no /proc, or the script replaced `open`; a zombie has no command line
        return False
    return False


def load(name: str, path: str) -> Any:
    """Import a file, or a package by its `__init__.py`, as `name`, which no installed package can have."""
    loader = importlib.machinery.SourceFileLoader(name, path)
    spec = importlib.machinery.ModuleSpec(name, loader, origin=path, is_package=path.endswith("__init__.py"))
    module = _Module(name)
    module.__spec__, module.__loader__, module.__package__, module.__file__ = spec, loader, spec.parent, path
    if spec.submodule_search_locations is not None:
        module.__path__ = spec.submodule_search_locations
        module.__path__.append(os.path.dirname(path))
    sys.modules[name] = module
    loader.exec_module(module)
    return module


def _run_script(path: str) -> None:
    """Execute the file as `__main__`. The module stays until the interpreter ends, because threads need it."""
    with io.open_code(path) as file:
        source = file.read()
    main = _Module("__main__")
    main.__dict__.update(
        __file__=path,
        __builtins__=sys.modules["builtins"],
        __loader__=importlib.machinery.SourceFileLoader("__main__", path),
        __cached__=None,
    )
    sys.modules["_harness_child"], sys.modules["__main__"] = sys.modules["__main__"], main
    exec(compile(source, path, "exec", dont_inherit=True), main.__dict__)  # noqa: S102 - the purpose of this module


def note_outside(job: dict[str, Any] | None = None) -> None:
    """Record what is used besides the environment; see `outside.py`."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "outside.py")
    (sys.modules.get("_harness_outside") or load("_harness_outside", path)).begin(job)


def load_inside() -> None:
    """Import the package of this file as `_harness_inside`."""
    load("_harness_inside", os.path.join(os.path.dirname(os.path.abspath(__file__)), "__init__.py"))


def load_emulation(emulation: dict[str, str]) -> None:
    """Import the stand-in for CUDA, and install it."""
    package = load("_harness_emulation", os.path.join(emulation["package"], "__init__.py"))
    package.install(capability=emulation["capability"])


def _attempt(job: dict[str, Any], trace: Any) -> tuple[dict[str, Any], BaseException | None, int]:
    """Run the script; returns how it ended, the exception that ended it, and the exit code."""
    stage = "emulation"
    try:
        if job["emulation"] and "_harness_emulation" not in sys.modules:  # a fork has it
            load_emulation(job["emulation"])
        stage = "script"
        if trace is not None:
            trace.start()
        _run_script(job["script"])
    except SystemExit as stop:
        code = stop.code
        if code is None or isinstance(code, int):
            status = int(code or 0)
            return {"stage": stage, "end": "exit" if status else "completed"}, None, status
        _write_to_stderr(f"{code}\n")
        return {"stage": stage, "end": "exit", "message": str(code)}, None, 1
    except BaseException as error:  # noqa: BLE001 - every exception must be reported
        _show(error)
        code = _INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
        return {"stage": stage, "end": "raised"}, error, code
    finally:
        if trace is not None:
            trace.stop()
    return {"stage": stage, "end": "completed"}, None, 0


def run_command(argv: list[str], env: dict[str, str]) -> int:
    """Run a module that Python runs, or a Python script below `bin`, in a fork; return the exit code of the command."""
    here = os.path.dirname(os.path.abspath(__file__))
    if "HARNESS_OUTSIDE" in env:
        with open(env["HARNESS_OUTSIDE"], "rb") as file:
            note_outside(marshal.load(file))  # noqa: S302 - the harness has written it
    sys.path[:] = [folder for folder in sys.path if folder != os.path.join(here, "startup")]
    try:
        if argv[1:2] == ["-m"]:
            sys.argv[:] = argv[1:2] + argv[3:]
            sys.path[0] = os.getcwd()
            _run_module(argv[2])
        else:
            sys.argv[:] = [os.path.join(env["VIRTUAL_ENV"], "bin", argv[0]), *argv[1:]]
            sys.path[0] = os.path.dirname(sys.argv[0])
            _run_script(sys.argv[0])
    except SystemExit as stop:
        if stop.code is None or isinstance(stop.code, int):
            return int(stop.code or 0)
        _write_to_stderr(f"{stop.code}\n")
        return 1
    except BaseException as error:  # noqa: BLE001 - as the interpreter does
        _show(error)
        return _INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _run_module(name: str) -> None:
    """Execute a module as `__main__`, as `python -m` does."""
    import runpy

    sys.modules["_harness_child"], sys.modules["__main__"] = sys.modules["__main__"], _Module("__main__")
    sys.modules["__main__"].__dict__["__builtins__"] = sys.modules["builtins"]
    runpy._run_module_as_main(name)  # type: ignore[attr-defined]  # noqa: SLF001 - what the interpreter calls


def former_packages() -> list[str]:
    """The folders of packages from which this process imported before it was forked."""
    return list(_former_packages)


def _show(error: BaseException) -> None:
    """Print the traceback as Python does, without the frames of this file."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    error.__traceback__ = trace
    try:
        sys.excepthook(type(error), error, trace)
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001, S110 - the script may have closed stderr or replaced the hook
        pass


def _write_to_stderr(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except Exception:  # noqa: BLE001, S110 - the script may have closed it
        pass


def _write_whole(path: str, report: dict[str, Any]) -> None:
    """Write the report atomically, with os.write because the script may have replaced `open`."""
    as_json = make_encoder(None, str, encode_basestring_ascii, None, ": ", ", ", False, False, True)
    data = "".join(as_json(report, 0)).encode()
    os.makedirs(os.path.dirname(path), exist_ok=True)
    part = f"{path}.part"
    file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        while data:
            data = data[os.write(file, data) :]
    finally:
        os.close(file)
    os.replace(part, path)


def note_environment(path: list[str], former: str) -> None:
    """Note that a fork leaves the environment with the prefix `former` for the one that `path` imports from."""
    for folder in _packages(path):
        name = folder.rpartition(os.sep + "lib" + os.sep)[2]
        _former_packages.append(os.path.join(former, "lib", name))


def _packages(path: list[str]) -> list[str]:
    return [folder for folder in path if os.path.basename(folder) in ("site-packages", "dist-packages")]


def _report(
    job: dict[str, Any], report: dict[str, Any], error: BaseException | None, start_path: list[str], trace: Any
) -> None:
    """Write the report, the most important first. What fails is noted, and what would follow it is left out."""
    report["python"] = "%d.%d.%d" % sys.version_info[:3]  # noqa: UP031 - a tuple
    machine = report["machine"] = {}
    noted, script_path = list(_used_files), sys.path[:]
    roots = [*_packages(start_path), *_former_packages]
    try:
        # The script may have cleared sys.path, or shadowed the standard library.
        sys.path[:] = start_path
        load_inside()
        from _harness_inside.collect import _harness_report as facts  # type: ignore[import-not-found]

        if error is not None:
            places = facts.Places(roots, job["script"], job["emulation"] and job["emulation"]["package"])
            report["exception"] = facts.described(error, places)
            report["chain"] = facts.chain(error)
        distributions = facts.distributions([*start_path, *script_path])
        report["installed"] = [[found.name, found.version] for found in distributions]
        used = {*facts.used_files(noted, roots), *facts.installed_files(report.get("exception"))}
        owners = facts.owners(used, distributions, roots)
        facts.name_packages(report.get("exception"), owners)
        report["loaded"] = facts.by_distribution(owners)
        if trace is not None:
            report["trace"] = trace.report()
        machine.update(facts.device_of_process())
    except BaseException as problem:  # noqa: BLE001 - report at least the outcome
        machine["problems"] = f"{type(problem).__name__}: {problem}"
    finally:
        sys.path[:] = script_path
    _write_whole(job["report"], report)


def _as_rank(job: dict[str, Any], rank: str) -> None:
    """Let each process of a launched script report for itself, and the first one record the imports."""
    job["report"] += f".{rank}"
    if rank != "0":
        job["imports"] = None


def main(job_path: str) -> int:
    """Run the job and return the exit code of the script."""
    with open(job_path, "rb") as file:
        job = marshal.load(file)  # noqa: S302 - the harness has written it
    pid = os.getpid()
    if job.get("launched"):
        _as_rank(job, os.environ.get("RANK", "0"))
    start_path = sys.path[1:]
    trace = graph = None
    traced, imports = job.get("trace"), job.get("imports")
    if traced is not None or imports is not None:
        load_inside()
        from _harness_inside import trace as tracing  # type: ignore[import-not-found]

        if traced is not None:
            trace = tracing.Tracer(traced["files"], _packages(start_path), counts=traced["counts"])
            trace.pause_imports()
        if imports is not None:
            graph = tracing.ImportGraph()
            graph.install()
    sys.argv[:] = [job["script"]]
    sys.path[0] = os.path.dirname(job["script"])
    sys.addaudithook(note_use)
    note_outside(job.get("outside"))
    os.register_at_fork(after_in_parent=_note_fork)
    report, error, code = _attempt(job, trace)
    if graph is not None and os.getpid() == pid:
        _write_whole(imports, graph.described())
    if os.getpid() == pid and report["end"] == "completed" and _forks[0] and _is_forked_copy_running():
        report["end"] = "forked"
    # A forked child of the script that returned here must not report.
    if os.getpid() == pid:
        try:
            _report(job, report, error, start_path, trace)
        except BaseException as problem:  # noqa: BLE001 - the exit code must stay that of the script
            _write_to_stderr(f"harness: no report: {type(problem).__name__}: {problem}\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
