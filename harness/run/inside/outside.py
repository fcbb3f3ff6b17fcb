"""Records what a process uses that is no part of its environment: files, folders and programs, as it happens.

Each is one line of JSON, written at once, so that it survives a crash: `r` a file that was opened, `w` one that was
opened to write, `d` a folder that was listed, `x` a program that was started, `s` the words of a shell.
"""

# Scripts may replace anything, so what is needed later is bound here. Each Python process of a run imports this module,
# so it imports only what starts at once: json would need re, and contextlib or typing would take as long.
# ruff: noqa: PTH100, PTH113, PTH120, PTH123, S110

from __future__ import annotations

import atexit
import os
import sys
from _json import encode_basestring_ascii as _quoted
from os import close as _close
from os import fsdecode as _fsdecode
from os import open as _open
from os import write as _write
from os.path import abspath as _absolute
from os.path import isfile as _is_file
from os.path import realpath as _real

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT
_TO_WRITE = os.O_WRONLY | os.O_RDWR
_MOST = 2000
_WORDS = 100
SYSTEM = ("/usr/", "/lib", "/bin/", "/sbin/", "/etc/", "/proc/", "/sys/", "/dev/", "/run/", "/System/", "/Library/")
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_OF_PYTHON = tuple({one.rstrip("/") + "/" for one in (sys.prefix, sys.base_prefix, _real(sys.base_prefix))})
_PROGRAMS = frozenset({"subprocess.Popen", "os.exec", "os.posix_spawn"})
_LISTED = frozenset({"os.listdir", "os.scandir"})
_SHELLS = ("sh", "bash", "dash", "zsh")

_own: tuple[str, ...] = (*SYSTEM, *_OF_PYTHON, _HERE)
_scratch = ""
_record = ""
_noted: dict[tuple[str, str], None] = {}
_is_installed = False


def end() -> None:
    """Record the files that are mapped into memory: libraries, and data that was not opened by Python."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
            for line in file:
                path = line.partition("/")
                if path[1]:
                    _note_path("r", f"/{path[2].rstrip()}")
    except Exception:  # noqa: BLE001 - as in `_note`
        pass


def begin(job: dict[str, Any] | None = None) -> None:
    """Start to record. A `job` has the path of its `record`, its `scratch` folder, and the folders that are its `own`.

    Without one, the record is written when `begin` is called again with one, as in a fork.
    """
    global _own, _scratch, _record, _is_installed
    if job is not None:
        _own = (*SYSTEM, *_OF_PYTHON, _HERE, *(f"{folder.rstrip('/')}/" for folder in job["own"]))
        _scratch, _record = f"{job['scratch'].rstrip('/')}/", job["record"]
        for kind, text in _noted:
            if not text.startswith((*_own, _scratch)):
                _append(kind, text)
    if not _is_installed:
        _is_installed = True
        sys.addaudithook(_note)
        atexit.register(end)


def _note(event: str, args: tuple[Any, ...]) -> None:
    """Audit hook. It is called very often, and must never fail."""
    try:
        if event == "open":
            _note_file(args[0], args[2])
        elif event in _LISTED:
            # The importer, and we, list the folders of sys.path, where any new file would count.
            caller = sys._getframe(1).f_code.co_filename  # noqa: SLF001 - the only way to know it
            if "importlib" not in caller and not caller.startswith(_HERE):
                _note_path("d", args[0] if args[0] is not None else ".")
        elif event in _PROGRAMS:
            _note_program(args)
        elif event == "os.system":
            _note_shell(_fsdecode(args[0]))
    except Exception:  # noqa: BLE001 - evidence, without which an older result may be taken
        pass


def _note_file(path: Any, flags: Any) -> None:
    if type(path) is str and path.startswith(_own):
        return
    _note_path("w" if type(flags) is int and flags & _TO_WRITE else "r", path)


def _note_path(kind: str, path: Any) -> None:
    if isinstance(path, int):
        return
    place = _absolute(_fsdecode(path))
    if place.startswith(_scratch) and _scratch:
        place = _real(place)  # a link in a copy of a project leads to a file that is not copied
        if place.startswith(_scratch):
            return
    if not place.startswith(_own) and not place.endswith(".pyc"):
        _add(kind, place)


def _note_program(args: tuple[Any, ...]) -> None:
    program = _fsdecode(args[0])
    _add("x", program)
    if not isinstance(args[1], (list, tuple)):
        return
    words = [_fsdecode(word) for word in args[1][1:_WORDS]]
    if program.rpartition("/")[2] in _SHELLS:
        _note_shell(" ".join(words))
    _note_named(word.rpartition("=")[2] for word in words)


def _note_shell(text: str) -> None:
    _add("s", text)
    _note_named(word.strip("\"';()<>|&") for word in text.split())


def _note_named(words: Iterable[str]) -> None:
    """Record the files that are named to another program, which reads them."""
    for word in words:
        if "/" in word and _is_file(word):
            _note_path("r", word)


def _add(kind: str, text: str) -> None:
    if (kind, text) in _noted or len(_noted) >= _MOST:
        return
    _noted[kind, text] = None
    if _record:
        _append(kind, text)


def _append(kind: str, text: str) -> None:
    # Opened for each line: a script may close all files, and its next one would get our number.
    file = _open(_record, _FLAGS, 0o600)
    try:
        _write(file, f'{{"{kind}": {_quoted(text)}}}\n'.encode())
    finally:
        _close(file)
