"""Runs untrusted code in a bubblewrap sandbox, if this machine supports it.

The file system is read-only, without home folders, /tmp and /run; only the run's own folders are writable. There is no
network by default, no access to other processes, and no device except harmless ones and GPUs.
See docs/guides/sandbox.md.
"""

from __future__ import annotations

import enum
import shutil
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from harness.errors import UserMistake
from harness.events import Warned
from harness.run.sandbox_view import View, hidden_folders

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.events import Reporter

_STAGE = Path(__file__).with_name("inside") / "stage.py"
_PROGRAM = "bwrap"
_TRIAL_S = 20.0
# Visible below /run: NixOS drivers, NVIDIA's persistence daemon, and name resolution.
_KEPT = ("/run/opengl-driver", "/run/current-system", "/run/nvidia-persistenced", "/run/systemd/resolve")


class SandboxMode(enum.StrEnum):
    """When runs are sandboxed: if the sandbox works, always, or never."""

    AUTO = "auto"
    REQUIRE = "require"
    OFF = "off"

    @classmethod
    def of(cls, machine: Mapping[str, str], asked: str | None = None) -> SandboxMode:
        """Return the mode that a command requested, else the value of HARNESS_SANDBOX, else auto.

        Raises `UserMistake` if the variable has any other value.
        """
        named = asked or machine.get("HARNESS_SANDBOX") or cls.AUTO.value
        try:
            return cls(named)
        except ValueError:
            raise UserMistake(f"HARNESS_SANDBOX is {named!r}", hint="it is auto, require or off") from None


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
    """A working bubblewrap: its path and version, whether runs can use the network, and whether it is required."""

    program: str
    version: str
    network: bool = False
    is_required: bool = False

    @property
    def label(self) -> str:
        """How an observation names it."""
        return f"{self.version}, with network" if self.network else f"{self.version}, no network"

    def command(self, access: FileAccess) -> list[str]:
        """Return the command line to which guard.py appends a file descriptor and the command to run."""
        return [*self.around(access), sys.executable, "-I", "-S", str(_STAGE)]

    def around(self, access: FileAccess) -> list[str]:
        """Return the command line to which the command to run is appended; it reports only an exit code."""
        hidden = hidden_folders()
        view = View(hidden)
        for path in (*access.readable, _STAGE.parent, *(Path(kept) for kept in _KEPT)):
            view.show(path)
        for python in (access.python, Path(sys.executable)):
            view.show_python(python)
        for path in (access.scratch, *access.writable):
            view.show(path, write=True)
        return [
            *self.namespaces(),
            *view.mounts(access.scratch),
            "--chdir",
            str(access.work),
            "--",
        ]

    def namespaces(self) -> list[str]:
        """Return bubblewrap and its options before the mounts."""
        network = [] if self.network else ["--unshare-net"]
        return [
            self.program,
            "--die-with-parent",
            *("--unshare-user-try", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
            *network,
            *("--cap-drop", "ALL"),
        ]


def choose(mode: SandboxMode, *, network: bool, reporter: Reporter) -> Sandbox | None:
    """Return the sandbox for all runs of a command, or None to run without one.

    If the sandbox does not work, warns `reporter`, or raises `UserMistake` if it is required.
    """
    if mode is SandboxMode.OFF:
        return None
    program = shutil.which(_PROGRAM)
    why = _why_not(program, network=network) if program else "bubblewrap (bwrap) is not installed"
    if program and not why:
        return Sandbox(program, _version(program), network, is_required=mode is SandboxMode.REQUIRE)
    if mode is SandboxMode.REQUIRE:
        raise UserMistake(f"no sandbox: {why}", hint="--sandbox off runs repros with all your rights")
    reporter.report(
        Warned(f"no sandbox, repros run with your rights and the network: {why} (--sandbox off hides this)")
    )
    return None


@lru_cache(maxsize=4)
def _why_not(program: str, *, network: bool) -> str:
    """Why a sandbox can't be created on this machine, "" if it can; tried once per process."""
    sandbox = Sandbox(program, "", network)
    view = View(hidden_folders())
    view.show_python(Path(sys.executable))
    words = [*sandbox.namespaces(), *view.mounts(None), "--", sys.executable, "-I", "-S", "-c", ""]
    try:
        tried = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=_TRIAL_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap can't be started: {error}"
    said = tried.stderr.strip().splitlines()
    return "" if tried.returncode == 0 else f"bubblewrap does not work here: {said[-1] if said else 'no error message'}"


@lru_cache(maxsize=4)
def _version(program: str) -> str:
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=_TRIAL_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return _PROGRAM
    return said.stdout.strip() or _PROGRAM
