"""Runs untrusted code in a bubblewrap sandbox, if this machine supports it.

The file system is read-only, without home folders, /tmp and /run; only the run's own folders are writable. There is no
network by default, no access to other processes, and no device except harmless ones and GPUs.
See docs/guides/sandbox.md.
"""

from __future__ import annotations

import contextlib
import enum
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path

from attrs import evolve, frozen

from harness.errors import UserMistake
from harness.events import Reporter, Warned

_INSIDE = Path(__file__).with_name("inside")
_PROGRAM = "bwrap"
_TRIAL_S = 20.0
_RESTRICTED = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
# Visible below /run: NixOS drivers, NVIDIA's persistence daemon, and name resolution.
_KEPT = ("/run/opengl-driver", "/run/current-system", "/run/nvidia-persistenced", "/run/systemd/resolve")
# Sockets that stay: those of the services above, and that by which SSSD names users.
_SOCKETS_KEPT = (*(f"{path}/" for path in _KEPT), "/var/lib/sss/pipes/nss")
_EMPTIED = ("/home", "/root", "/run", "/tmp", "/var/tmp")  # noqa: S108 - hidden, not used
_SCRATCH = {Path("/tmp"): "tmp-in-sandbox", Path("/var/tmp"): "var-tmp-in-sandbox"}  # noqa: S108 - as above
_SECRET_FILES = ("/etc/shadow", "/etc/gshadow", "/etc/pip.conf", "/etc/netrc", "/etc/krb5.keytab")
_SECRET_FOLDERS = ("/etc/ssh", "/etc/ssl/private", "/etc/uv", "/etc/xdg/pip")
_GPUS = ("nvidia*", "dri", "kfd", "dxg")
# Settings of the kernel and of devices, which root may write even without capabilities.
_SETTINGS = tuple(f"/proc/{name}" for name in ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "mtrr"))
_HOMES = (Path("/home"), Path("/Users"))
_OF_A_HOME = (".ssh", ".gnupg", ".netrc", ".git-credentials", ".profile", ".bashrc", ".zshrc", ".bash_history")


class SandboxMode(enum.StrEnum):
    """When runs are sandboxed: if the sandbox works, always, or never."""

    AUTO = "auto"
    REQUIRE = "require"
    OFF = "off"

    @classmethod
    def of(cls, machine: Mapping[str, str], requested: str | None = None) -> SandboxMode:
        """Return the mode that a command requested, else the value of HARNESS_SANDBOX, else auto.

        Raises `UserMistake` if the variable has any other value.
        """
        named = requested or machine.get("HARNESS_SANDBOX") or cls.AUTO.value
        try:
            return cls(named)
        except ValueError:
            raise UserMistake(f"HARNESS_SANDBOX is {named!r}", hint="it is auto, require or off") from None


DIE_WITH_PARENT = "--die-with-parent"


@frozen
class FileAccess:
    """Paths that one run must read (`readable`) and may write (`writable`); `work` is its working directory."""

    scratch: Path
    work: Path
    python: Path
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()


@frozen
class Sandbox:
    """A working bubblewrap: its path and version, whether runs can use the network, and whether it is required.

    `hidden` is empty in the sandbox but for what a run needs, like homes: the cache, which has copies of projects.
    """

    program: str
    version: str
    network: bool = False
    is_required: bool = False
    hidden: tuple[Path, ...] = ()

    @property
    def label(self) -> str:
        """How an observation names it."""
        return f"{self.version}, with network" if self.network else f"{self.version}, no network"

    def around(self, access: FileAccess) -> list[str]:
        """Return the command line of bubblewrap, to which the command to run is appended."""
        view = View(hidden_folders(*self.hidden))
        for path in (*access.readable, _INSIDE, *(Path(name) for name in _KEPT)):
            view.show(path)
        view.show_python(access.python)
        for path in (access.scratch, *access.writable):
            view.show(path, write=True)
        return [
            self.program,
            DIE_WITH_PARENT,
            *("--unshare-user-try", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
            *([] if self.network else ["--unshare-net"]),
            *("--cap-drop", "ALL"),
            *view.mounts(access.scratch),
            *(word for path in socket_files() if view.shows(path) for word in ("--ro-bind", "/dev/null", str(path))),
            *("--chdir", str(access.work), "--"),
        ]


def choose(mode: SandboxMode, *, network: bool, reporter: Reporter, hidden: tuple[Path, ...] = ()) -> Sandbox | None:
    """Return the sandbox for all runs of a command, or None to run without one; `hidden` is as in `Sandbox`.

    If the sandbox does not work, warns `reporter`, or raises `UserMistake` if it is required.
    """
    if mode is SandboxMode.OFF:
        return None
    program = shutil.which(_PROGRAM)
    trial = _tried(program, network=network) if program else "bubblewrap (bwrap) is not installed"
    if isinstance(trial, Sandbox):
        return evolve(trial, is_required=mode is SandboxMode.REQUIRE, hidden=hidden)
    if mode is SandboxMode.REQUIRE:
        raise UserMistake(f"no sandbox: {trial}", hint="--sandbox off runs repros with all your rights")
    sentence = f"no sandbox, repros run with your rights and the network: {trial} (--sandbox off hides this)"
    reporter.report(Warned(sentence, is_daily=True))
    return None


@lru_cache(maxsize=4)
def _tried(program: str, *, network: bool) -> Sandbox | str:
    """Return the sandbox, or why it can't be created on this machine; tried once per process."""
    run = partial(subprocess.run, capture_output=True, text=True, errors="replace", timeout=_TRIAL_S, check=False)
    try:
        sandbox = Sandbox(program, run([program, "--version"]).stdout.strip() or _PROGRAM, network)
        with tempfile.TemporaryDirectory(prefix="harness-sandbox-") as folder:
            access = FileAccess(Path(folder), Path(folder), Path(sys.executable))
            tried = run([*sandbox.around(access), sys.executable, "-I", "-S", "-c", ""])
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap can't be started: {error}"
    words = tried.stderr.strip().splitlines() or ["no error message"]
    if tried.returncode == 0:
        return sandbox
    return f"bubblewrap does not work here: {words[-1]}{_advice()}"


def _advice() -> str:
    """Say what allows bubblewrap to work on Ubuntu 24.04 and later; "" if its AppArmor does not forbid it."""
    with contextlib.suppress(OSError):
        if _RESTRICTED.read_text(encoding="ascii").strip() == "1":
            return "; AppArmor forbids it: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0 allows it"
    return ""


def hidden_folders(*hidden: Path) -> list[Path]:
    """Return the empty folders of the sandbox: homes, folders for temporary and runtime files, and `hidden`."""
    names = [*_EMPTIED, *_homes(), *map(str, hidden)]
    folders = {Path(os.path.realpath(name)) for name in names if name.startswith("/")}
    return sorted(folder for folder in folders if folder.is_dir() and folder != Path("/"))


def _homes() -> Iterator[str]:
    """The homes of this user, by HOME and by the system, and the one that the harness was started from."""
    yield os.environ.get("HOME", "")
    with contextlib.suppress(KeyError):
        yield pwd.getpwuid(os.getuid()).pw_dir
    with contextlib.suppress(OSError):
        with contextlib.suppress(KeyError):
            own = pwd.getpwuid(Path.cwd().stat().st_uid).pw_dir
            yield own if Path.cwd().is_relative_to(own) else ""
        here = Path.cwd()
        for folder in (here, *here.parents):
            if folder.parent in _HOMES or any(os.path.exists(f"{folder}/{name}") for name in _OF_A_HOME):  # noqa: PTH110 - for speed
                yield str(folder)


def socket_files() -> list[Path]:
    """Return the files of sockets to which a process of this machine listens, but those that runs need.

    A connection needs no permission to write to the file system, so a read-only one does not prevent it.
    """
    try:
        rows = Path("/proc/net/unix").read_text(errors="surrogateescape").splitlines()[1:]
    except OSError:
        return []
    names = {words[-1] for row in rows if len(words := row.split(maxsplit=7)) == 8}
    whole = (name for name in names if name.startswith("/") and not name.startswith(_SOCKETS_KEPT))
    paths = {Path(os.path.realpath(name)) for name in whole}
    relative = [name for name in names if not name.startswith(("/", "@"))]
    paths |= {folder / name for folder in (_working_folders() if relative else ()) for name in relative}
    return sorted(path for path in paths if path.is_socket())


def _working_folders() -> set[Path]:
    """The working directories of the processes that this user can see: the name of a socket may be relative to it."""
    folders = set()
    for entry in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            folders.add(Path(os.readlink(entry)))  # noqa: PTH115 - only the text
    return folders


class View:
    """The file system in a sandbox, as arguments of bubblewrap: read-only, without the hidden folders.

    Collects the paths to make visible although they are in hidden folders.
    """

    def __init__(self, hidden: Sequence[Path]) -> None:
        self._hidden = hidden
        self._hidden_folders = tuple(f"{folder}/" for folder in hidden)
        self._folders: set[str] = set()  # that are no links
        self._binds: dict[Path, bool] = {}
        self._links: dict[Path, str] = {}

    def show(self, path: Path, *, write: bool = False) -> None:
        """Make a path visible, including the symlinks that lead to it. A hidden folder itself stays hidden."""
        real = self._followed(path)
        if real in self._hidden or not real.exists():
            return
        if write or self._is_hidden(real):
            self._binds[real] = self._binds.get(real, False) or write

    def show_python(self, python: Path) -> None:
        """Make an interpreter visible, with its libraries and its virtual environment if it has one.

        Its `pyvenv.cfg` is not read: a package may have written it.
        """
        self._show_prefix(python.parent.parent)
        self._show_prefix(self._followed(python).parent.parent)

    def _show_prefix(self, prefix: Path) -> None:
        """Make a folder with an interpreter visible; a Python in ~/bin or ~/.local/bin does not expose the rest."""
        if prefix in self._hidden or prefix.name == ".local":
            for part in ("bin", "lib", "lib64"):
                self.show(prefix / part)
        else:
            self.show(prefix)

    def shows(self, path: Path) -> bool:
        """Whether a path without links is visible."""
        hidden = max((len(folder.parts) for folder in self._hidden if path.is_relative_to(folder)), default=0)
        shown = max((len(bound.parts) for bound in self._binds if path.is_relative_to(bound)), default=0)
        return not hidden or shown > hidden

    def mounts(self, scratch: Path) -> Iterator[str]:
        """Yield the arguments of bubblewrap, outer folders first."""
        yield from _of_every_run()
        steps = [(path, 0, _emptied(path, scratch)) for path in self._hidden]
        for path, write in self._binds.items():
            if not write and any(self._binds.get(parent) for parent in path.parents):
                continue  # visible already through an outer folder, with the same access
            steps.append((path, 1, ["--bind" if write else "--ro-bind", str(path), str(path)]))
        for link, target in self._links.items():
            if not any(link.is_relative_to(bound) for bound in self._binds):
                steps.append((link, 2, ["--symlink", target, str(link)]))
        for _, _, words in sorted(steps, key=lambda step: (len(step[0].parts), step[1], step[0])):
            yield from words
        for path in self._hidden:
            if path not in _SCRATCH:
                yield from ("--remount-ro", str(path))

    def _is_hidden(self, path: Path) -> bool:
        return f"{path}/".startswith(self._hidden_folders)

    def _followed(self, path: Path) -> Path:
        """Return the real path, and note the symlinks in hidden folders that lead to it, to recreate them."""
        # As text: of many paths each run follows each part.
        text = str(path.absolute())
        at = text.find("/", 1) if os.path.exists(text) else 0  # noqa: PTH110 - links in a circle lead nowhere
        while at:
            part, rest = (text[:at], text[at + 1 :]) if at > 0 else (text, "")
            if part not in self._folders and os.path.islink(part):  # noqa: PTH114
                link, target = Path(os.path.normpath(part)), os.readlink(part)  # noqa: PTH115 - the target as written
                if self._is_hidden(link):
                    self._links[link] = target
                return self._followed(Path(part).parent / target / rest)
            self._folders.add(part)
            at = text.find("/", at + 1) if at > 0 else 0
        return Path(os.path.normpath(text))  # no part of it is a link


def _emptied(path: Path, scratch: Path) -> list[str]:
    """The arguments that hide a folder: a folder for temporary files becomes one of the run's own."""
    if path not in _SCRATCH:
        return ["--tmpfs", str(path)]
    own = scratch / _SCRATCH[path]
    own.mkdir(exist_ok=True)
    return ["--bind", str(own), str(path)]


def _of_every_run() -> Iterator[str]:
    """The arguments for every run: the system read-only with its GPUs, without the usual files with secrets."""
    yield from ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
    for pattern in _GPUS:
        for device in sorted(Path("/dev").glob(pattern)):
            yield from ("--dev-bind", str(device), str(device))
    for name in filter(os.path.exists, _SETTINGS):
        yield from ("--ro-bind", name, name)
    for name in _SECRET_FILES:
        if os.path.isfile(name):  # noqa: PTH113
            yield from ("--ro-bind", "/dev/null", name)
    for name in _SECRET_FOLDERS:
        if os.path.isdir(name):  # noqa: PTH112
            yield from ("--tmpfs", name)
