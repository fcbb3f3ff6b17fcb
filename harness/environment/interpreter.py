"""The Python that a repro runs with: its path, its wheel tags, and its installed packages."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
import sysconfig
from functools import lru_cache
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from attrs import frozen
from packaging import tags as wheel_tags
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from harness.errors import UserMistake
from harness.model import Lock, Pin, Target, normalized_name
from harness.run.result import valid

if TYPE_CHECKING:
    from harness.environment.uv import Uv

OLDEST_PYTHON = Version("3.9")  # the code inside a run needs audit hooks and newer syntax
_LONGEST_S = 60.0
_Printed = TypeVar("_Printed")
_QUESTIONS = (
    "import json,platform,sys,sysconfig;"
    "print(json.dumps([platform.python_version(),sys.implementation.cache_tag,sysconfig.get_path('stdlib')]))"
)
# The folders of packages below a prefix: importing `site` runs nothing, unlike a start without -S.
_FOLDERS = (
    "import json,platform,site,sys;own=sys.prefix,sys.exec_prefix;folders=[]\n"
    "for prefix in sys.argv[1:]:\n"
    " sys.prefix,sys.exec_prefix=(prefix,prefix) if prefix else own;folders+=site.getsitepackages([sys.prefix])\n"
    "print(json.dumps([platform.python_version(),folders]))"
)


@frozen
class Interpreter:
    """A Python on this machine.

    `version` is full ("3.11.7"), `cache_tag` names its bytecode format, `stdlib` is the folder of its standard library.
    """

    path: Path
    version: str
    cache_tag: str
    stdlib: Path

    @property
    def platform(self) -> str:
        """Operating system and processor, as in every lock ("linux-x86_64")."""
        return f"{platform.system().lower()}-{platform.machine().lower()}"

    @property
    def minor(self) -> str:
        """The version without its patch level ("3.11")."""
        return ".".join(self.version.split(".")[:2])

    @property
    def libraries(self) -> tuple[Path, ...]:
        """The standard library, and Python's own shared libraries beside it."""
        return (self.stdlib, *self.stdlib.parent.glob("libpython*"))

    @property
    def target(self) -> Target:
        """What a release must support to be installed for it."""
        return target_of(self.version)

    def wheel_tags(self) -> tuple[wheel_tags.Tag, ...]:
        """The tags of wheels that it can install, best first (PEP 425)."""
        return accepted_tags(self.version)


def find_interpreter(named: str | None, uv: Uv, *, needs: str | None = None) -> Interpreter:
    """The interpreter for a version ("3.12") or a path; None: the one that runs the harness.

    `needs` is the `requires-python` of a repro: if the user names no interpreter and the harness's own does not meet
    it, another one on this machine is used. Raises `UserMistake` if there is none, or if the named one does not meet
    it.
    """
    path = Path(named) if named and ("/" in named or named.startswith("~")) else uv.find_python(named)
    interpreter = _interpreter_at(path.expanduser())
    if meets(needs, interpreter.version):
        return interpreter
    if named is not None:
        raise UserMistake(
            f"the repro requires Python {needs}, and --python {named} is {interpreter.version}",
            hint="--python takes a version or a path; without it the harness looks for one that fits",
        )
    return _interpreter_at(uv.find_python(needs))


def meets(needs: str | None, version: str) -> bool:
    """Whether this Python version meets a `requires-python`; every version meets None."""
    return needs is None or SpecifierSet(needs).contains(version, prereleases=True)


def _interpreter_at(path: Path) -> Interpreter:
    try:
        version, cache_tag, stdlib = _own(path) or _printed_by(path, _QUESTIONS, tuple[str, str, str])
        is_old = Version(version) < OLDEST_PYTHON
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        hint = "--python takes a version or a path"
        raise UserMistake(f"{path} is not a Python that can be run", hint=hint) from error
    if is_old:
        raise UserMistake(f"{path} is Python {version}, and runs need Python {OLDEST_PYTHON} or later")
    return Interpreter(path.absolute(), version, cache_tag, Path(stdlib))


def _own(path: Path) -> tuple[str, str, str] | None:
    """What the interpreter that runs the harness would print, without starting it again; None for another one."""
    if str(path) not in (sys.executable, getattr(sys, "_base_executable", None)):
        return None
    return platform.python_version(), sys.implementation.cache_tag or "", sysconfig.get_path("stdlib")


def _printed_by(python: Path, code: str, kind: type[_Printed], *words: str) -> _Printed:
    """What a Python prints as JSON, a value of this kind. Raises `OSError`, `SubprocessError` and `ValueError`."""
    argv = [str(python), "-I", "-S", "-c", code, *words]
    output = subprocess.check_output(argv, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=_LONGEST_S)
    printed: _Printed | None = valid(json.loads(output), kind)
    if printed is None:
        raise ValueError(f"it prints {output[:80]!r}")
    return printed


@lru_cache(maxsize=64)
def accepted_tags(python: str) -> tuple[wheel_tags.Tag, ...]:
    """The tags of wheels that a CPython of a version ("3.11") can install on this machine, best first (PEP 425)."""
    major, minor = (int(part) for part in python.split(".")[:2])
    platforms = list(wheel_tags.platform_tags())
    return (
        *wheel_tags.cpython_tags(python_version=(major, minor), platforms=platforms),
        *wheel_tags.compatible_tags(
            python_version=(major, minor), interpreter=f"cp{major}{minor}", platforms=platforms
        ),
    )


@lru_cache(maxsize=64)
def target_of(python: str) -> Target:
    """What a release must support to be installed for a CPython of a version on this machine."""
    return Target(python, frozenset(accepted_tags(python)))


@frozen
class Installed:
    """What is installed for a Python of `version`: name, release and direct URL (each may be "") of each project."""

    version: str
    packages: tuple[tuple[str, str, str], ...]


def installed_in(python: Path) -> Installed:
    """List the packages of an environment without running any code of them, such as that of its `.pth` files.

    Raises `UserMistake` if its Python can't be run.
    """
    python = python.expanduser().absolute()
    settings = python.parent.parent / "pyvenv.cfg"
    prefixes = [""]
    if settings.is_file():
        text = settings.read_text(encoding="utf-8", errors="replace")
        shares = re.search(r"^include-system-site-packages\s*=\s*true", text, re.MULTILINE | re.IGNORECASE)
        prefixes = [str(settings.parent), *([""] if shares else [])]
    try:
        version, folders = _printed_by(python, _FOLDERS, tuple[str, list[str]], *prefixes)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise UserMistake(f"{python} can't list its installed packages", hint="name an environment's folder") from error
    packages: dict[str, tuple[str, str, str]] = {}
    for distribution in distributions(path=folders):
        name, release = (
            str(distribution.metadata[key]) if key in distribution.metadata else "" for key in ("Name", "Version")
        )
        # pip renames what it could not remove to "~ame".
        if name and not getattr(getattr(distribution, "_path", None), "name", "").startswith("~"):
            url = direct_url(distribution.read_text("direct_url.json") or "{}")
            packages.setdefault(normalized_name(name), (name, release, url))
    return Installed(version, tuple(packages[name] for name in sorted(packages)))


def direct_url(text: str) -> str:
    """Return the address in a `direct_url.json` (PEP 610), "" if there is none."""
    try:
        origin = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    return str(origin.get("url", "")) if isinstance(origin, dict) else ""


def foreign_lock(interpreter: Interpreter) -> Lock:
    """The packages of an interpreter that the harness did not set up; its pins have no hashes."""
    packages = installed_in(interpreter.path).packages
    pins = [Pin(normalized_name(name), version) for name, version, _ in packages]
    return Lock(python=interpreter.version, platform=interpreter.platform, pins=pins)
