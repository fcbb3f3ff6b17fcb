"""Prepares a run: a scratch folder, an environment without secrets, its limits, its request, and at the end its log."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import marshal
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, NamedTuple

from harness.atomic import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_PASSED = re.compile(
    r"""LANG | LANGUAGE | TZ | USER | LOGNAME
    | LC_(ALL|ADDRESS|COLLATE|CTYPE|IDENTIFICATION|MEASUREMENT|MESSAGES|MONETARY|NAME|NUMERIC|PAPER|TELEPHONE|TIME)
    | SSL_CERT_(FILE|DIR) | REQUESTS_CA_BUNDLE | CURL_CA_BUNDLE
    | (DY)?LD_LIBRARY_PATH | CUDA_(VISIBLE_DEVICES|DEVICE_ORDER|HOME|PATH)
    | NVIDIA_(VISIBLE_DEVICES|DRIVER_CAPABILITIES|DISABLE_REQUIRE|REQUIRE_\w+|TF32_OVERRIDE)
    | (OMP|MKL|OPENBLAS|NUMEXPR)_NUM_THREADS | OMP_WAIT_POLICY
    """,
    re.VERBOSE,
)
_OF_THIS_MACHINE = re.compile(r"USER|LOGNAME|SSL_|REQUESTS_|CURL_|CUDA_|NVIDIA_")
_OF_LOCALE = ("LANG", "LC_")
_C_LOCALES = ("", "C", "POSIX", "C.UTF-8", "C.utf8")
_PROXIES = re.compile(r"(https?|all|ftp)_proxy", re.IGNORECASE)
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH")
# All other caches are below HOME, XDG_CACHE_HOME or TMPDIR; Numba's would be beside the installed files.
_CACHES = {"NUMBA_CACHE_DIR": "numba", "XDG_CACHE_HOME": "xdg-cache"}
# Threads of OpenMP that wait sleep instead of spinning, which would take CPU time from runs on other lanes. It changes
# no result, unlike fewer threads, which may add numbers in another order.
_SHARED_CPUS = {"OMP_WAIT_POLICY": "PASSIVE"}
_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
METRICS_LIMIT = 8 * 1024 * 1024
LOG_KEPT = 16 * 1024 * 1024
OUTPUT_LIMIT = 1024 * 1024 * 1024  # a run that prints more is killed
_GZIP_LEVEL = 3  # logs compress well at any level, and higher levels take seconds
_SHARE_OF_MEMORY = 0.9
_GUARD_ENDS_WITHIN_S = 20.0  # also what it is forked from
_FORKS_WITHIN_S = 10.0
_PID_BYTES = 32
_GUARD_NEEDS = frozenset({"LANG", "LC_ALL", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"})
_QUERY_S = 20.0
_MARSHAL = 2  # the format that each Python reads, also that of an environment
LOG_TAIL = 64 * 1024  # as much as the harness inspects after a run
_LOG_READ = LOG_KEPT + (1 << 16)  # a few kilobytes can decompress to terabytes


class ScratchFolder:
    """The folders of one run; `root` contains the others and is removed after the run."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.work = root / "work"  # the working directory, empty at the start
        self.script = root / "script"  # apart from the working directory
        self.home = root / "home"
        self.temporary = root / "tmp"
        self.artifacts = root / "artifacts"  # the first step of a repro writes its files there
        self.metrics = root / "metrics.json"  # the repro writes it
        self.stubs = root / "not-in-the-environment"  # they replace the user's Python tools on the PATH
        ours = root / "harness"  # scripts don't use it
        self.report = ours / "report.json"  # of the child driver
        self.imports = ours / "imports.json"  # the import graph of a traced run
        self.order = ours / "order"  # for the child driver, or for each Python process of a command
        self.outside = ours / "outside.jsonl"  # what the run uses besides its environment
        self.log = ours / "log"  # stdout and stderr

    def variables(self) -> dict[str, str]:
        """The environment variables that point a process to these folders."""
        places = {name: str(self.root / "cache" / folder) for name, folder in _CACHES.items()}
        return {**places, "HOME": str(self.home), "TMPDIR": str(self.temporary), "HARNESS_METRICS": str(self.metrics)}


@contextlib.contextmanager
def scratch_folder(scratch_root: Path) -> Iterator[ScratchFolder]:
    """Create a folder below `scratch_root` and remove it when the context ends."""
    scratch_root.mkdir(parents=True, exist_ok=True)
    # Keep the path short: paths of sockets, such as those of multiprocessing below TMPDIR, have at most 108 characters.
    scratch = ScratchFolder(Path(tempfile.mkdtemp(prefix="r", dir=scratch_root)).resolve())
    try:
        for folder in (scratch.work, scratch.script, scratch.home, scratch.temporary, scratch.report.parent):
            folder.mkdir()
        for cache in _CACHES.values():
            (scratch.root / "cache" / cache).mkdir(parents=True, mode=0o700)
        yield scratch
    finally:
        remove_tree(scratch.root)


def remove_tree(folder: Path) -> None:
    """Remove a folder and all in it, even if read-only. Ignores what can't be removed, and a link."""
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.is_dir() or folder.is_symlink():
        return
    for parent, names, _ in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            if not path.is_symlink():
                with contextlib.suppress(OSError):
                    path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def process_environment(
    scratch: ScratchFolder,
    *,
    ours: Mapping[str, str],
    python: Path,
    pass_env: Sequence[str] = (),
    extra: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return all environment variables of a probe, made from the harness's own (`ours`).

    Only variables known to be harmless and those in `pass_env` are passed on; `extra` is added last. The folder of
    `python` comes first on PATH.
    """
    environment = dict(_SHARED_CPUS)
    environment |= {name: value for name, value in ours.items() if name in pass_env or _is_harmless(name, value)}
    environment |= scratch.variables()
    if hub := _hub_cache(ours):
        environment["HF_HUB_CACHE"] = str(hub)
    environment |= {
        "PATH": os.pathsep.join([str(python.parent), user_path(ours)]),
        "VIRTUAL_ENV": str(python.parent.parent),
        "PYTHONNOUSERSITE": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONFAULTHANDLER": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    return environment | dict(extra or {})


def cpu_limit() -> int | None:
    """Return how many CPUs this process may use, None if all: libraries start as many threads."""
    usable = usable_cpus()
    return usable if usable != os.cpu_count() else None


def usable_cpus() -> int | None:
    """Return how many CPUs this process may use, None if that is not known."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def digest_of_variables(ours: Mapping[str, str], pass_env: Sequence[str], cpus: int | None = None) -> str:
    """Return a hash of the user's variables that reach a run and may change its outcome, "" without any.

    Those that say who the user is, or where this machine has certificates and GPUs, are left out. A limit of `cpus`
    counts as such a variable.
    """
    given = {
        name: value
        for name, value in ours.items()
        if name in pass_env or (_PASSED.fullmatch(name) and not _OF_THIS_MACHINE.match(name))
    }
    # Python takes these for UTF-8, as it does without a locale, for which it sets LC_CTYPE itself (PEP 538, PEP 540).
    given = {name: value for name, value in given.items() if not name.startswith(_OF_LOCALE) or value not in _C_LOCALES}
    given |= {"cpus": str(cpus)} if cpus is not None else {}
    return hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()[:12] if given else ""


def user_path(ours: Mapping[str, str]) -> str:
    """Return the user's own PATH."""
    return ours.get("PATH") or _SYSTEM_PATH


def _is_harmless(name: str, value: str) -> bool:
    if _PROXIES.fullmatch(name):
        return "@" not in value  # it has no password
    return _PASSED.fullmatch(name) is not None and _SECRET.search(name) is None


def _hub_cache(ours: Mapping[str, str]) -> Path | None:
    """The user's download cache of model files. It is addressed by content, so it is safe to share."""
    home = Path(ours.get("HOME", "/nonexistent"))
    for folder in (
        ours.get("HF_HUB_CACHE"),
        ours.get("HUGGINGFACE_HUB_CACHE"),
        ours.get("HF_HOME") and Path(ours["HF_HOME"], "hub"),
        Path(ours.get("XDG_CACHE_HOME") or home / ".cache", "huggingface", "hub"),
    ):
        if folder and Path(folder).is_dir():
            return Path(folder).absolute()
    return None


def repro_variables(params: Mapping[str, Any], device: str, hash_seed: int) -> dict[str, str]:
    """Return the environment variables for a repro: its parameters, its device and the seed of its hashes."""
    variables = {"HARNESS_PARAMS": json.dumps(params), "HARNESS_DEVICE": device, "PYTHONHASHSEED": str(hash_seed)}
    # A verdict on the CPU must not come from a GPU.
    return {**variables, "CUDA_VISIBLE_DEVICES": ""} if device == "cpu" else variables


class Limits(NamedTuple):
    """The limits of a process tree: wall time in seconds, memory (None: 90 % of the machine's) and output in bytes."""

    wall_s: float
    memory: int | None = None
    output: int = OUTPUT_LIMIT

    @property
    def bytes(self) -> int:
        """The effective memory limit."""
        return self.memory if self.memory is not None else int(physical_memory() * _SHARE_OF_MEMORY)


def guard_request(
    argv: Sequence[str],
    limits: Limits,
    *,
    env: Mapping[str, str],
    cwd: Path,
    output: Path,
    sandbox: Sequence[str] = (),
) -> bytes:
    """Return the request for the guard (guard.py): what to start, and within which limits."""
    request = {
        "argv": list(argv),
        "env": dict(env),
        "cwd": str(cwd),
        "wall_s": limits.wall_s,
        "memory": limits.bytes,
        "output": str(output),
        "output_limit": limits.output,
        "sandbox": list(sandbox),
    }
    written = marshalled(request)
    return b"%d\n%b" % (len(written), written)


def marshalled(value: Any) -> bytes:
    """Return plain data for a process of a run, which reads it without an import that takes time."""
    return marshal.dumps(value, _MARSHAL)


# A module is compiled once, a script each time it is started.
_IMPORT_GUARD = "import sys; sys.path.append(sys.argv[1]); import guard; guard.serve()"
_GUARD = b"g"  # the request for a guard; see inside/zygote.py


class GuardServer:
    """A process that has imported the guard, of which guards are forks; `control` is its socket."""

    def __init__(self, program: Path) -> None:
        options = ["-I", "-S", *(["-B"] if sys.dont_write_bytecode else [])]
        self.control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, *options, "-c", _IMPORT_GUARD, str(program.parent)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # so that Ctrl-C in a terminal reaches only the harness
                # The children of the guard could read its environment under /proc.
                env={name: value for name, value in os.environ.items() if name in _GUARD_NEEDS},
            )

    def end(self) -> None:
        """End it, but none of its guards."""
        self.control.close()
        with contextlib.suppress(subprocess.TimeoutExpired):  # a run has stopped it
            self._process.wait(_GUARD_ENDS_WITHIN_S)
        self._process.kill()
        self._process.wait()


class ForkedGuard(NamedTuple):
    """A guard that waits for its request: the socket that is its stdin and stdout, and its process id.

    In a sandbox the process id is that in the sandbox.
    """

    channel: socket.socket
    pid: int

    def end(self) -> None:
        """Let it kill its process tree, and wait until it has ended; not for one in a sandbox."""
        try:
            self.channel.shutdown(socket.SHUT_WR)
            self.channel.settimeout(_GUARD_ENDS_WITHIN_S)
            while self.channel.recv(1 << 16):
                pass
        except TimeoutError:
            self.kill()
        except OSError:  # it has ended
            pass

    def kill(self) -> None:
        """Kill it; not one in a sandbox."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


def fork_guard(control: socket.socket) -> ForkedGuard:
    """Fork a guard from the process that has the other end of `control`.

    Raises `TimeoutError` if the fork does not start, `EOFError` if it died before, and another `OSError` if that
    process has ended.
    """
    ours, theirs = socket.socketpair()
    with contextlib.ExitStack() as unless_forked:
        unless_forked.enter_context(ours)
        with theirs:
            socket.send_fds(control, [_GUARD], [theirs.fileno()])
        ours.settimeout(_FORKS_WITHIN_S)
        if not (pid := ours.recv(_PID_BYTES)):
            raise EOFError
        ours.settimeout(None)
        unless_forked.pop_all()
    return ForkedGuard(ours, int(pid))


def output_of(query: Sequence[str]) -> str | None:
    """Return what a vendor's tool prints; None if it is missing, fails, or takes too long."""
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=_QUERY_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout if answer.returncode == 0 else None


def physical_memory() -> int:
    """Return the memory of this machine, or of its container, in bytes."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            memory = min(memory, int(Path(limit).read_text()))
        except (OSError, ValueError):  # no such control group, or "max"
            continue
    return memory


def keep_log(log: BinaryIO, target: Path) -> None:
    """Compress a log to `target` atomically, of a long one what `bounded` returns."""
    write_whole(target, gzip.compress(bounded(log), _GZIP_LEVEL, mtime=0), mode=0o600)


def bounded(log: IO[bytes]) -> bytes:
    """Return a log; of one with more than `LOG_KEPT` bytes the head and the tail, and how much is left out."""
    left_out = log.seek(0, os.SEEK_END) - LOG_KEPT
    log.seek(0)
    if left_out <= 0:
        return log.read()
    head = log.read(LOG_KEPT // 2)
    log.seek(-(LOG_KEPT // 2), os.SEEK_END)
    return head + b"\n[harness: %d bytes of output left out here]\n" % left_out + log.read(LOG_KEPT // 2)


def read_log(path: Path) -> str:
    """Return the stored output of a run, "" if there is no log."""
    return _read(path)[0].decode("utf-8", "replace")


def is_whole(path: Path) -> bool:
    """Whether a stored log is intact, and not longer than a run can write."""
    return _read(path)[1]


def _read(path: Path) -> tuple[bytes, bool]:
    unpacked = zlib.decompressobj(wbits=31)
    try:
        return unpacked.decompress(path.read_bytes(), _LOG_READ), unpacked.eof
    except (OSError, zlib.error):
        return b"", False
