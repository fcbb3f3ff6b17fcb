"""Imports the modules that no candidate changes, and forks a guarded child for each probe.

Started as `python zygote.py ORDER.json` with a socket as standard input. It imports the modules in the order, reports
the result and the executed files on the socket, and then waits for requests. Each request passes the socket that a
guard uses as standard input and output. The fork becomes that guard: it reads the request of the run, starts the child
driver in another fork instead of a new interpreter, watches it and reports how it ended, like the guard of any other
run. The zygote exits when its socket is closed.
"""

# ruff: noqa: PTH100, PTH115, PTH118, PTH120, PTH123, PTH208

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ANOTHER = b"z"  # the request for another zygote; any other is for a guard

# What imports have left behind besides modules, which a fork must have, too.
_variables: dict[str, tuple[str | None, str | None]] = {}  # of the environment: the former and the new value
_handlers: dict[signal.Signals, Any] = {}  # of signals
# How a new interpreter handles the signals that a zygote or a guard handles otherwise.
_RESET: dict[signal.Signals, Any] = {
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGCHLD: signal.SIG_DFL,
    signal.SIGINT: signal.default_int_handler,
}


def _prepare(order: dict[str, Any], child: Any) -> str:
    """Import the modules in the order; returns what makes it unsafe to fork this process, "" if nothing does."""
    variables, handlers = dict(os.environ), {number: signal.getsignal(number) for number in _RESET}
    if order["emulation"] and "_harness_emulation" not in sys.modules:  # another zygote has it
        child.load_emulation(order["emulation"])
    for name in order["modules"]:
        with contextlib.suppress(BaseException):  # the import will fail again in the fork
            importlib.import_module(name)
    for name in variables.keys() | os.environ.keys():
        former, now = variables.get(name), os.environ.get(name)
        if former != now:
            _variables[name] = (_variables[name][0] if name in _variables else former, now)
    for number, handler in handlers.items():
        if signal.getsignal(number) != handler:
            _handlers[number] = signal.getsignal(number)
    import threading

    # Locks that they hold would stay locked, too.
    if threads := [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]:
        return f"an import started threads ({', '.join(threads[:3])}), which a fork would not have"
    # The stand-in says that CUDA is initialised, and initialises nothing.
    in_use = not order["emulation"] and child.uses_cuda()
    return "an import initialised CUDA, which does not survive a fork" if in_use else ""


def _open_files() -> set[str]:
    """What is open besides devices, such as `socket:[1]`: forks share the place in a file, and what a socket holds."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # that of the folder itself is closed
            found.add(os.readlink(f"/proc/self/fd/{number}"))
    return {name for name in found if not name.startswith("/dev/")}


def _enter_environment(env: dict[str, str], child: Any) -> None:
    """Let this process import from the environment that `env` names, as an interpreter that is started with it would.

    What was imported from the previous environment stays: it is the same in both.
    """
    old, new = sys.prefix, env["VIRTUAL_ENV"]

    def moved(path: str) -> str:
        return new + path[len(old) :] if f"{path}{os.sep}".startswith(old + os.sep) else path

    before, after = (variables.get("PYTHONPATH", "").split(os.pathsep) for variables in (os.environ, env))
    added = [path for path in after if path]
    rest = [moved(path) for path in sys.path[1:] if path not in before or not path]
    sys.path[1:] = [*added, *(path for path in rest if path not in added)]
    sys.pycache_prefix = env.get("PYTHONPYCACHEPREFIX")
    if new != old:
        child.note_environment(sys.path, old)
        sys.prefix = sys.exec_prefix = new
        sys.executable = os.path.join(new, "bin", "python")
        if "sysconfig" in sys.modules:  # it keeps paths below the prefix
            importlib.reload(sys.modules["sysconfig"])
        if "site" in sys.modules:
            sys.modules["site"].PREFIXES[:] = [moved(path) for path in sys.modules["site"].PREFIXES]
    sys.path_importer_cache.clear()
    importlib.invalidate_caches()


def _take_variables(env: dict[str, str]) -> None:
    """Replace the environment variables, and set those again that imports have set."""
    os.environ.clear()
    os.environ.update(env)
    for name, (former, now) in _variables.items():
        if env.get(name) != former:
            continue
        if now is not None:
            os.environ[name] = now
        else:
            os.environ.pop(name, None)


def _prepare_fork(argv: list[str], env: dict[str, str], child: Any) -> None:
    """Make this fork what a new interpreter is that would be started with these arguments and variables."""
    _enter_environment(env, child)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # as an interpreter does when it starts
        signal.signal(number, signal.SIG_IGN)
    for handled, usual in _RESET.items():
        signal.signal(handled, _handlers.get(handled, usual))
    _take_variables(env)
    sys.argv[:] = argv[1:]
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:  # a new process has a random seed; all forks would have the same
        numpy_random.seed()
    if "tempfile" in sys.modules:  # it keeps the first folder that it finds
        vars(sys.modules["tempfile"])["tempdir"] = None


def _run(child: Any, argv: list[str], env: dict[str, str]) -> None:
    """Run the job of the child driver, or a command, and exit as an interpreter does."""
    is_job = argv[1:2] == [os.path.join(os.path.dirname(os.path.abspath(__file__)), "child.py")]
    code = child.main(argv[-1]) if is_job else child.run_command(argv, env)
    import atexit
    import threading

    threading._shutdown()  # type: ignore[attr-defined,unused-ignore]  # noqa: SLF001 - as the interpreter does before it ends
    atexit._run_exitfuncs()  # noqa: SLF001
    sys.modules.pop("__main__", None)
    gc.collect()  # finalizers may print, such as that of a progress bar
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the script may have closed it
            stream.flush()
    os._exit(code & 0xFF)


def _serve(control: socket.socket, guard: Any, child: Any) -> None:
    class ForkingGuard(guard.Guard):  # type: ignore[misc]
        def _execute(self, argv: list[str], env: dict[str, str]) -> None:
            signal.set_wakeup_fd(-1)  # since Python 3.12 asyncio has already done so in each fork
            for end in (self._wake, self._wake_end, self._printed, self._print_end):
                os.close(end)
            control.close()
            _prepare_fork(argv, env, child)
            os.close(self._tell)  # from here on the fork has started
            _run(child, argv, env)

        def _problem(self, error: BaseException) -> str:
            return f"{type(error).__name__}: {error}"

    while True:
        message, sent, _, _ = socket.recv_fds(control, 1, 1)
        if not message:  # the harness has closed the socket
            return
        (channel,) = sent
        if message == ANOTHER:
            if os.fork() == 0:
                control.close()
                _become_another(socket.socket(fileno=channel), guard, child)
            os.close(channel)
            continue
        if os.fork() == 0:
            guard.become(channel, ForkingGuard)
        os.close(channel)


def _become_another(control: socket.socket, guard: Any, child: Any) -> None:
    """Read the path of an order from the socket, and be the zygote of that order until the socket is closed."""
    try:
        with control.makefile() as channel:
            path = channel.readline().strip()
        with open(path, encoding="utf-8") as file:
            order = json.load(file)
        log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        os.chdir(order["work"])
        _enter_environment(order["env"], child)
        _take_variables(order["env"])
        sys.path[0] = order["script_folder"]
        _import_and_serve(order, control, guard, child)
    finally:
        os._exit(0)


def _import_and_serve(order: dict[str, Any], control: socket.socket, guard: Any, child: Any) -> None:
    threshold, files = gc.get_threshold(), _open_files()
    gc.set_threshold(0)  # what imports create stays, so the collector would only take time
    problem = _prepare(order, child)
    gc.freeze()  # nor need the collector of a fork visit it
    if not gc.get_threshold()[0]:  # no import has set another one
        gc.set_threshold(*threshold)
    opened = sorted(_open_files() - files)
    report = {"problem": problem, "executed": sorted(child.used_files()), "opened": opened}
    control.sendall(f"{json.dumps(report)}\n".encode())
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps guards that have ended
    _serve(control, guard, child)


def main(path: str) -> None:
    """Import the modules in the order file at `path`, and serve requests until the socket is closed."""
    with open(path, encoding="utf-8") as file:
        order = json.load(file)
    control = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    import child  # type: ignore[import-not-found]  # beside this file

    sys.modules["_harness_child_driver"] = sys.modules.pop("child")
    sys.path[0] = order["script_folder"]
    guard = child.load("_harness_guard", order["guard"])
    if order["sandboxed"]:
        guard.leave_keyring()
    sys.addaudithook(child.note_use)
    child.note_outside()
    _import_and_serve(order, control, guard, child)
    os._exit(0)  # there is nothing to save, and to tear down the imported modules takes long


if __name__ == "__main__":
    main(sys.argv[1])
