"""Describes how a process ended, as plain data: its exception, the installed files it used, and its device."""

# Each run imports it, so it imports only what starts at once: pathlib, re or typing would take as long as all the rest
# of this module.
# ruff: noqa: PTH100, PTH109, PTH113, PTH118, PTH119, PTH120, PTH123, PTH208

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType
    from typing import Any

_INSIDE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # of the child driver
_MESSAGE_LIMIT = 20_000
_OUTERMOST, _INNERMOST = 50, 150  # frames to keep of an endless recursion
_CHAIN_LIMIT = 50
_HEAD = 4096  # both fields are at the top of the file; the description follows the first empty line
_METADATA = (".dist-info", ".egg-info")


class Places:
    """Names files by the known folders that they are in, so that the names are the same on every machine.

    These are the folder where the run started, if it is known, and the working directory, which a run may change.
    """

    def __init__(self, roots: list[str], script: str = "", emulation: str | None = None, start: str = "") -> None:
        self._roots = [root + os.sep for root in {*roots, *map(os.path.realpath, roots)}]
        self._script = script
        self._emulation = emulation + os.sep if emulation else ""
        self._start = start

    def name(self, path: str) -> tuple[str, bool]:
        """Return the path to show, and whether it is relative to site-packages."""
        for root in self._roots:
            if path.startswith(root):
                return path[len(root) :], True
        if path == self._script:
            return os.path.basename(path), False
        if self._emulation and path.startswith(self._emulation):
            return "<emulation>/" + path[len(self._emulation) :], False
        try:
            folders = [self._start, os.getcwd()]
        except OSError:  # the script removed it
            folders = [self._start]
        folder = next((one + os.sep for one in folders if one and path.startswith(one + os.sep)), "")
        return path[len(folder) :], False


def described(error: BaseException, places: Places, depth: int = 0) -> dict[str, Any]:
    """Return the exception with, nested, the exceptions in its `raise ... from` chain."""
    kind = type(error)
    cause = error.__cause__
    return {
        "type": _qualified(kind),
        "message": _message(error),
        "bases": [_qualified(base) for base in kind.__mro__[1:] if base is not object],
        "frames": list(_frames(error.__traceback__, places)),
        "cause": described(cause, places, depth + 1) if cause is not None and depth < _CHAIN_LIMIT else None,
    }


def chain(error: BaseException) -> list[list[str]]:
    """Return the type and message of every exception in the chain, even of those that a traceback does not show."""
    found: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting and len(found) < _CHAIN_LIMIT:
        one = waiting.pop()
        if one is not None and not any(one is other for other in found):
            found.append(one)
            waiting += [one.__context__, one.__cause__]
    return [[_qualified(type(one)), _message(one)] for one in found]


def installed_files(exception: dict[str, Any] | None) -> set[str]:
    """Return the files below site-packages in the frames."""
    return {frame["file"] for one in _nested(exception) for frame in one["frames"] if frame["installed"]}


def name_packages(exception: dict[str, Any] | None, owners: dict[str, str]) -> None:
    """Add the distribution to each frame, or the top-level name if no distribution owns the file."""
    for one in _nested(exception):
        for frame in one["frames"]:
            if frame.pop("installed"):
                frame["package"] = owners.get(frame["file"]) or frame["file"].split("/")[0]


def _nested(exception: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    while exception is not None:
        yield exception
        exception = exception["cause"]


def _qualified(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _message(error: BaseException) -> str:
    try:
        return str(error)[:_MESSAGE_LIMIT]
    except BaseException as problem:  # noqa: BLE001 - Python prints similar text in a traceback
        return f"<exception str() failed: {type(problem).__name__}>"


def _frames(trace: TracebackType | None, places: Places) -> Iterator[dict[str, Any]]:
    steps = []
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if not (path.startswith(_INSIDE) and os.sep not in path[len(_INSIDE) :]):
            steps.append((trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    if len(steps) > _OUTERMOST + _INNERMOST:
        steps = steps[:_OUTERMOST] + steps[-_INNERMOST:]
    for frame, line in steps:
        code = frame.f_code
        file, installed = places.name(code.co_filename)
        yield {
            "file": file,
            "line": line or 0,
            "function": code.co_name,
            "package": "",
            "text": _text(code.co_filename, line or 0, frame.f_globals),
            "installed": installed,
        }


def _text(path: str, line: int, names: dict[str, Any]) -> str:
    try:
        import linecache  # which takes long, and which runs that end well don't need

        return linecache.getline(path, line, names).strip()
    except Exception:  # noqa: BLE001 - keep the frames even if the script replaced `open`
        return ""


class Distribution:
    """An installed distribution; `folder` holds its RECORD, if it has one."""

    def __init__(self, name: str, version: str, folder: str) -> None:
        self.name = name
        self.version = version
        self.folder = folder


def used_files(noted: Iterable[str], roots: list[str]) -> list[str]:
    """Return the files that were imported, mapped, or seen by the audit hook, relative to site-packages.

    `noted` are the paths that the hook saw. Metadata and `.pth` files of distributions are left out, because every
    interpreter reads them at startup.
    """
    paths = {os.path.abspath(path) for path in noted}
    for module in list(sys.modules.values()):
        file = getattr(module, "__dict__", {}).get("__file__")
        if type(file) is str:
            paths.add(file)
    paths.update(_mapped_files())
    below = tuple({root + os.sep for root in (*roots, *map(os.path.realpath, roots))})
    used = set()
    for path in paths:
        root = next((root for root in below if path.startswith(root)), None)
        # Attempts to open missing files are recorded too.
        if root is not None and not _is_metadata(path[len(root) :]) and os.path.isfile(path):
            used.add(path[len(root) :].replace(os.sep, "/"))
    return sorted(used)


def distributions(path: Iterable[str]) -> list[Distribution]:
    """Return the distributions in these folders. Of two with the same name the first counts, as for imports."""
    found: dict[str, Distribution] = {}
    for folder in dict.fromkeys(path):
        try:
            entries = sorted(os.listdir(folder or "."))
        except OSError:
            continue
        for entry in entries:
            if entry.endswith(_METADATA):
                one = _distribution(os.path.join(folder, entry))
                if one is not None:
                    found.setdefault(one.name, one)
    return [found[name] for name in sorted(found)]


def owners(used: Iterable[str], installed: Iterable[Distribution], roots: list[str]) -> dict[str, str]:
    """Return the distribution of each file from the RECORD files, else from its neighbours, else its top-level name."""
    wanted = set(used)
    owner: dict[str, str] = {}
    by_top: dict[str, str] = {}
    for one in installed:
        if os.path.dirname(one.folder) not in roots:
            continue
        try:
            with open(os.path.join(one.folder, "RECORD"), encoding="utf-8") as file:
                lines = file.read().splitlines()
        except OSError:
            continue
        for line in lines:
            name = line[1:].split('"', 1)[0] if line.startswith('"') else line.split(",", 1)[0]
            if name in wanted:
                owner.setdefault(name, one.name)
                by_top.setdefault(_top(name), one.name)
    for name in wanted:
        owner.setdefault(name, by_top.get(_top(name), _top(name)))
    return owner


def by_distribution(owner: dict[str, str]) -> dict[str, list[str]]:
    """Return the files of each distribution, sorted: the inverse of `owners`."""
    files: dict[str, list[str]] = {}
    for name in sorted(owner):
        files.setdefault(owner[name], []).append(name)
    return files


def _distribution(folder: str) -> Distribution | None:
    for name in ("METADATA", "PKG-INFO", ""):  # an old .egg-info may be a file itself
        path = os.path.join(folder, name) if name else folder
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                lines = file.read(_HEAD).partition("\n\n")[0].split("\n")
        except OSError:
            continue
        fields = {name: text.split() for name, _, text in (line.partition(":") for line in lines)}
        if fields.get("Name") and fields.get("Version"):
            words = fields["Name"][0].replace("_", "-").replace(".", "-").lower().split("-")
            return Distribution("-".join(filter(None, words)), fields["Version"][0], folder)
    return None


def _mapped_files() -> set[str]:
    """The shared libraries of this process, which the linker opens without calling any hook of Python."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return set()
    return {line[line.index("/") :] for line in lines if "-packages" in line and "/" in line}


def _is_metadata(name: str) -> bool:
    return name.split(os.sep, 1)[0].endswith(_METADATA) or name.endswith(".pth")


def _top(name: str) -> str:
    top = name.split("/", 1)[0]
    return top.split(".", 1)[0] if top == name else top


def device_of_process() -> dict[str, Any]:
    """Return the platform, and the build of torch. Any question to CUDA itself may hang on a broken device."""
    facts: dict[str, Any] = {"platform": f"{sys.platform}-{os.uname().machine}"}
    torch = sys.modules.get("torch")
    version = getattr(torch, "version", None)
    if version is not None:
        facts["torch"] = str(getattr(torch, "__version__", ""))
        facts["torch_cuda"] = getattr(version, "cuda", None)
        # Builds for other vendors set one of these: hip for AMD, xpu for Intel.
        others = {f"torch_{name}": getattr(version, name, None) for name in ("hip", "xpu")}
        facts.update({name: value for name, value in others.items() if value})
    return facts
