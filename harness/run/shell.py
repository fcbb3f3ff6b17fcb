"""Starts a shell, a Python or a command for a person in an environment; its prompt says which one it is."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_OURS = (
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONPYCACHEPREFIX",
    "PYTHONDONTWRITEBYTECODE",
    "__PYVENV_LAUNCHER__",
)
_BASH = """\
[ -f ~/.bashrc ] && . ~/.bashrc
export PATH="$HARNESS_SHELL_PATH" VIRTUAL_ENV="$HARNESS_SHELL_ENV"
PS1="($HARNESS_SHELL) $PS1"
"""
_ZSH = """\
ZDOTDIR="$HARNESS_SHELL_ZDOTDIR"
[ -f "$ZDOTDIR/.zshrc" ] && . "$ZDOTDIR/.zshrc"
export PATH="$HARNESS_SHELL_PATH" VIRTUAL_ENV="$HARNESS_SHELL_ENV"
PS1="($HARNESS_SHELL) $PS1"
"""
_PYTHON = """\
import os, sys
sys.ps1, sys.ps2 = f"{os.environ['HARNESS_SHELL']} >>> ", "... "
"""


def shell_environment(
    ours: Mapping[str, str], python: Path, label: str, *, search_path: Sequence[Path], more: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables of a person's shell in an environment: their own, with its programs and modules first.

    `search_path` are folders with modules, and with programs in their `bin`; `label` is what the prompt says.
    """
    env = {name: value for name, value in ours.items() if name not in _OURS}
    programs = [folder / "bin" for folder in search_path if (folder / "bin").is_dir()]
    env["PATH"] = os.pathsep.join(map(str, [*programs, python.parent, ours.get("PATH", os.defpath)]))
    env |= {"VIRTUAL_ENV": str(python.parent.parent), "HARNESS_SHELL": label, "PYTHONNOUSERSITE": "1", **more}
    env |= {"HARNESS_SHELL_PATH": env["PATH"], "HARNESS_SHELL_ENV": env["VIRTUAL_ENV"]}
    if search_path:
        env["PYTHONPATH"] = os.pathsep.join(map(str, search_path))
    return env


def run_for_person(argv: Sequence[str], env: Mapping[str, str], folder: Path) -> int:
    """Run a program with this process's terminal, and return its exit status, 128 + N after signal N.

    Ctrl-C is for the program alone. Raises `OSError` if it can't be started.
    """
    is_main = threading.current_thread() is threading.main_thread()
    # A handler, unlike SIG_IGN, does not reach the program.
    before = signal.signal(signal.SIGINT, lambda *_: None) if is_main else None
    try:
        code = subprocess.Popen(argv, env=dict(env), cwd=folder).wait()
    finally:
        if is_main:
            signal.signal(signal.SIGINT, before)
    return code if code >= 0 else 128 - code


def interactive_python(python: Path, settings: Path, env: dict[str, str]) -> list[str]:
    """Return the command of an interactive Python whose prompt has the label; `settings` is an empty folder."""
    startup = settings / "startup.py"
    startup.write_text(_PYTHON, encoding="utf-8")
    env["PYTHONSTARTUP"] = str(startup)
    return [str(python), "-q"]


def interactive_shell(shell: str, settings: Path, env: dict[str, str]) -> list[str]:
    """Return the command of a shell whose prompt has the label; `settings` is an empty folder for its settings.

    bash and zsh read the user's own settings first, and PATH is set again after these. Other shells get PS1.
    """
    return list(_interactive(shell, settings, env))


def _interactive(shell: str, settings: Path, env: dict[str, str]) -> Iterator[str]:
    yield shell
    kind = Path(shell).name
    if kind == "bash":
        (settings / "bashrc").write_text(_BASH, encoding="utf-8")
        yield from ("--rcfile", str(settings / "bashrc"), "-i")
    elif kind == "zsh":
        (settings / ".zshrc").write_text(_ZSH, encoding="utf-8")
        env |= {"HARNESS_SHELL_ZDOTDIR": env.get("ZDOTDIR", env.get("HOME", "")), "ZDOTDIR": str(settings)}
        yield "-i"
    else:
        env["PS1"] = f"({env['HARNESS_SHELL']}) $ "
