"""What a run used besides its packages and its project, by hash: a result holds as long as all of it is the same.

These are the files that it read and the folders that it listed, by their absolute path (a folder's ends with a slash),
and the programs that it found on the PATH, by their name. Files that it wrote itself do not count, nor do the system's
own. The processes of the run record them (`inside/outside.py`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import stat
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.atomic import sha256_of
from harness.run.inside.outside import SYSTEM
from harness.run.launch import user_path
from harness.run.programs import user_tools
from harness.run.result import Unreadable, content_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_RECORD_LIMIT = 16 * 1024 * 1024
_HASHED = 256 * 1024  # of larger files the size and the time of the last change are compared
_SCRIPT = 64 * 1024
_MOST = 2000
_WORD = re.compile(r"[A-Za-z0-9_][\w.+-]*")
_PATH = re.compile(r"(?<![\w.:/-])/[\w./+-]+")


def outside_of(job: Mapping[str, Any], argv: Sequence[str], root: Path, environment: Path) -> dict[str, str]:
    """Return what a run used, with the state of each now; `job` said how its processes record it.

    `argv` is its command (empty for a script), whose relative paths start at `root`. Programs in the folder
    `environment` are those of the environment.
    """
    own = (job["scratch"], *job["own"], str(environment))
    noted: dict[str, dict[str, None]] = {kind: {} for kind in "rwdxs"}
    for kind, text in _lines(Path(job["record"])):
        noted.get(kind, {})[text] = None
    programs = dict.fromkeys((*argv[:1], *noted["x"], *(word for text in noted["s"] for word in _WORD.findall(text))))
    scripts = [root / word for word in argv] + [Path(path) for name in programs if (path := _program_path(name))]
    texts = [*argv[1:], *filter(None, map(_script, scripts))]
    programs |= dict.fromkeys(word for text in texts for word in _WORD.findall(text) if _program_path(word))
    hidden = {name for name, _ in user_tools(user_path(os.environ))}  # tools in Python, which no run gets to see
    names = [name for name in programs if "/" not in name and name not in hidden and not (environment / name).exists()]
    files = [name for name in noted["r"] if name not in noted["w"]]
    named = (name for text in texts for name in _PATH.findall(text) if not name.startswith((*SYSTEM, *own)))
    files += [name for name in named if Path(name).is_file()]
    folders = [f"{name.rstrip('/')}/" for name in noted["d"]]
    return {name: state_of(name) for name in (*names, *files, *folders)[:_MOST]}


def is_unchanged(outside: Mapping[str, str]) -> bool:
    """Whether all that a run used is still the same."""
    return all(state_of(name) == state for name, state in outside.items())


def state_of(name: str) -> str:
    """Return a hash of the file, the folder's names or the program that a name means now, "" if there is none."""
    path = name if "/" in name else _program_path(name)
    try:
        if path.endswith("/"):
            names = (entry.name for entry in Path(path).iterdir())
            shown = sorted(name for name in names if not name.startswith(("__pycache__", ".")))
            return hashlib.sha256(json.dumps(shown).encode()).hexdigest()[:16]
        known = Path(path).stat()
        if not path or not stat.S_ISREG(known.st_mode):
            return ""
        return _hash(path, known.st_size, known.st_mtime_ns)
    except (OSError, ValueError):
        return ""


@lru_cache(maxsize=10_000)
def _hash(path: str, size: int, changed: int) -> str:
    # A run may name any file. A short secret could be guessed from its hash.
    may_be_secret = any(part.startswith(".") for part in Path(path).parts)
    return f"{size} {changed}" if size > _HASHED or may_be_secret else sha256_of(Path(path))[:16]


def _program_path(program: str) -> str:
    return shutil.which(program, path=user_path(os.environ)) or ""


def _script(path: Path) -> str:
    """The text of a small script that is not Python, whose words may be programs; "" for any other file."""
    with contextlib.suppress(OSError, ValueError):
        if path.suffix != ".py" and path.is_file() and path.stat().st_size <= _SCRIPT:
            return path.read_text(encoding="utf-8")
    return ""


def _lines(record: Path) -> Iterator[tuple[str, str]]:
    """What the processes of a run noted; they may have written anything."""
    try:
        content = content_of(record, _RECORD_LIMIT) or b""
    except Unreadable:
        return
    for line in content.splitlines():
        with contextlib.suppress(ValueError, RecursionError):
            entry = json.loads(line)
            if isinstance(entry, dict):
                yield from ((kind, text) for kind, text in entry.items() if isinstance(text, str) and "\0" not in text)
