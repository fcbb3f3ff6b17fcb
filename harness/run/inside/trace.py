"""Records what a run did in some installed files, and which module imported which.

A trace has the functions called and the lines run. It is evidence, never a proof, so it is bounded: a function whose
calls run no new lines is no longer traced. A profile counts calls, which are the same in every run. The graph of
imports shows which modules a later process can preload. A trace pauses while modules load that can't call what is
traced.
"""

# ruff: noqa: SLF001 - frames have no public way to the caller

from __future__ import annotations

import builtins
import contextlib
import os
import sys
import threading
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import CodeType, FrameType

_MOST_QUIET = 40  # calls of one function without a new line, after which its lines are no longer traced
_MODULE = "<module>"
_IMPORTLIB = "<frozen importlib._bootstrap>"
_OURS = "_harness_"  # how modules of the harness are named: that they are held, or imported, says nothing
_COLLECTIONS = (dict, list, tuple, set, frozenset)
_PLAIN = frozenset({str, bytes, int, float, complex, bool, type(None)})  # they come from no module that can change
_WRAPPERS = (staticmethod, classmethod, types.MethodType)
_MOST_VALUES = 1000  # of a collection


class Tracer:
    """Records what runs in `files`, which are paths relative to one of `roots`, and with `counts` how many calls."""

    def __init__(self, files: Iterable[str], roots: Iterable[str], *, counts: bool = False) -> None:
        self._roots = tuple({root + os.sep for root in (*roots, *map(os.path.realpath, roots))})
        self._files = frozenset(files)
        self._by_file: dict[str, bool] = {}
        self._called: dict[CodeType, None] = {}
        self._lines: dict[CodeType, set[int]] = {}
        self._quiet: dict[CodeType, int] = {}
        self._profile = _profile() if counts else None
        self._pauses: _Pauses | None = None

    def pause_imports(self) -> None:
        """Don't trace modules that load before any of the traced packages was imported by them: it saves much time.

        Call it before the graph of imports is installed, whose hook has to see the importer.
        """
        tops = {file.partition("/")[0].removesuffix(".py") for file in self._files}
        self._pauses = _Pauses(self._enter, tops)
        self._pauses.install()

    def start(self) -> None:
        """Start to record."""
        if self._profile is not None:
            with contextlib.suppress(ValueError):  # another profiler is in use
                self._profile.enable()
        threading.settrace(self._enter)
        sys.settrace(self._enter)

    def stop(self) -> None:
        """Stop recording; keeps what was recorded."""
        if self._pauses is not None:
            self._pauses.end()
        sys.settrace(None)
        threading.settrace(None)
        if self._profile is not None:
            self._profile.disable()

    def report(self) -> dict[str, Any]:
        """Return the recording as plain data.

        `called` has for each file and function the rank of its last call, `lines` the line numbers of each file, and
        `counts`, if they were wanted, for each file and function how often it was called and how many calls it made.
        """
        called: dict[str, dict[str, int]] = {}
        for rank, code in enumerate(list(self._called)):
            called.setdefault(self._file(code), {})[_name(code)] = rank
        lines: dict[str, set[int]] = {}
        for code, numbers in list(self._lines.items()):
            lines.setdefault(self._file(code), set()).update(numbers)
        report = {"called": called, "lines": {file: sorted(found) for file, found in lines.items()}}
        return report if self._profile is None else {**report, "counts": self._counts()}

    def _counts(self) -> dict[str, dict[str, list[int]]]:
        counts: dict[str, dict[str, list[int]]] = {}
        for entry in self._profile.getstats() if self._profile is not None else ():
            if isinstance(entry.code, str) or not self._is_wanted(entry.code):
                continue
            name, *inside = _name(entry.code).split(".<")  # a comprehension belongs to the function around it
            row = counts.setdefault(self._file(entry.code), {}).setdefault(name, [0, 0])
            row[0] += 0 if inside else entry.callcount
            row[1] += sum(one.callcount for one in entry.calls or ())
        return counts

    def _file(self, code: CodeType) -> str:
        path = code.co_filename
        root = next((root for root in self._roots if path.startswith(root)), "")
        return path[len(root) :].replace(os.sep, "/") if root else ""

    def _is_wanted(self, code: CodeType) -> bool:
        # Look up the file name, because str caches its hash; the hash of a code object is computed each time.
        wanted = self._by_file.get(code.co_filename)
        if wanted is None:
            wanted = self._by_file[code.co_filename] = self._file(code) in self._files
        return wanted

    # The trace function, called for every function of the run.

    def _enter(self, frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        is_wanted = self._by_file.get(code.co_filename)  # known for most files
        if is_wanted is False or not self._is_wanted(code):
            return None
        self._called.pop(code, None)
        self._called[code] = None
        if event != "call" or self._quiet.get(code, 0) > _MOST_QUIET:
            return None
        self._quiet[code] = self._quiet.get(code, 0) + 1
        self._lines.setdefault(code, set())
        return self._inside

    def _inside(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            lines = self._lines[frame.f_code]
            if frame.f_lineno not in lines:
                lines.add(frame.f_lineno)
                self._quiet[frame.f_code] = 0
        return self._inside


class _Pauses:
    """Pauses a trace while a module loads, until it imports one of the packages `tops`, or what has imported them.

    Before that its code can't call them, unless one of them has given it something to call.
    """

    def __init__(self, trace: Any, tops: set[str]) -> None:
        self._trace, self._tops = trace, tops
        self._loading: list[str] = []  # since the trace was paused
        self._is_paused = False
        self._thread = threading.get_ident()
        self._import = builtins.__import__

    def install(self) -> None:
        """Begin to see imports."""
        paused_import = type(self)._paused_import
        paused_import.__code__ = paused_import.__code__.replace(co_filename=_IMPORTLIB)  # as for the graph of imports
        builtins.__import__ = self._paused_import  # type: ignore[assignment]
        sys.meta_path.insert(0, self)

    def end(self) -> None:
        """Don't pause any more."""
        self._thread, self._is_paused = 0, False

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:  # noqa: ARG002
        """See a module that is loaded without an import statement; returns None, so that another finder finds it."""
        if self._is_paused and name.partition(".")[0] in self._tops:
            self._resume()

    def _resume(self) -> None:
        """Trace again: what is being loaded has imported the packages."""
        if threading.get_ident() == self._thread:
            self._tops.update(self._loading)
            self._is_paused = False
            sys.settrace(self._trace)

    def _paused_import(
        self,
        name: str,
        globals: dict[str, Any] | None = None,  # noqa: A002 - Python's own names
        locals: dict[str, Any] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> types.ModuleType:
        if level or type(name) is not str or threading.get_ident() != self._thread:
            return self._import(name, globals, locals, fromlist, level)
        top = name.partition(".")[0]
        if top in self._tops:
            if self._is_paused:
                self._resume()
            return self._import(name, globals, locals, fromlist, level)
        if name in sys.modules or not (self._is_paused or sys.gettrace() == self._trace):
            return self._import(name, globals, locals, fromlist, level)
        was_paused = self._is_paused
        if not was_paused:
            self._is_paused = True
            sys.settrace(None)
        self._loading.append(top)
        try:
            return self._import(name, globals, locals, fromlist, level)
        finally:
            self._loading.pop()
            if self._is_paused and not was_paused:
                self._is_paused = False
                if sys.gettrace() is None:
                    sys.settrace(self._trace)


def _profile() -> Any:
    """The profiler below cProfile, None without it."""
    try:
        import _lsprof
    except ImportError:
        return None
    return _lsprof.Profiler()


def _name(code: CodeType) -> str:
    return str(getattr(code, "co_qualname", code.co_name)).replace(".<locals>", "")


class ImportGraph:
    """Records imports after `install`: new ones with a finder that finds nothing, the others with `__import__`.

    Each import while a module's own code runs is an edge from that module, even if the imported module was already
    loaded, and even if there is no such module. An import inside a function counts for every module whose own code is
    on the stack. What a module holds at the end of its own code is an edge, too: a package whose `__getattr__` keeps
    the names that it has imported hands them out without a further import.

    So is what its own code looks up: the specification of a module, a distribution (`dist:NAME`, or `dist:*` for all
    of them), the entry points of a group (`group:NAME`, or `group:*`), and any installed file that it opens (`entry:`
    and the first part of its path in site-packages).
    """

    def __init__(self) -> None:
        self._edges: dict[str, set[str]] = {}
        self._loading: dict[str, None] = {}
        self._import = builtins.__import__
        self._is_noting = True
        self._size = 0  # of sys.modules

    def install(self) -> None:
        """Start to record."""
        import importlib.metadata
        import importlib.util

        sys.meta_path.insert(0, self)
        # A warning about an import names the importer, for which it skips the frames of importlib: ours is one, too.
        noted_import = type(self)._noted_import
        noted_import.__code__ = noted_import.__code__.replace(co_filename=_IMPORTLIB)
        builtins.__import__ = self._noted_import  # type: ignore[assignment]
        find_spec, finder = importlib.util.find_spec, importlib.metadata.MetadataPathFinder
        find_distributions, entry_points = finder.find_distributions, importlib.metadata.entry_points

        def noted_spec(name: str, package: str | None = None) -> Any:
            self._note_use(name)
            return find_spec(name, package)

        def noted_distributions(*args: Any, **options: Any) -> Any:
            context = options.get("context", args[-1] if args else None)
            name = getattr(context, "name", None)
            self._note_use(f"dist:{_normalized(name)}" if type(name) is str else "dist:*")
            return find_distributions(*args, **options)

        def noted_entry_points(**params: Any) -> Any:
            self._note_use(f"group:{params.get('group', '*')}")
            was_noting, self._is_noting = self._is_noting, False  # it reads the files of all distributions
            try:
                return entry_points(**params)
            finally:
                self._is_noting = was_noting

        importlib.metadata.entry_points = noted_entry_points
        importlib.util.find_spec = noted_spec
        finder.find_distributions = staticmethod(noted_distributions)  # type: ignore[method-assign]
        sys.addaudithook(self._note_event)

    def _note_event(self, event: str, args: tuple[Any, ...]) -> None:
        """Audit hook, which is called very often: note the installed files and folders that are read as data."""
        if event in ("open", "os.listdir", "os.scandir") and args and type(args[0]) is str and "-packages" in args[0]:
            caller = sys._getframe().f_back  # None while the interpreter ends
            # The importer itself, and the search for a distribution, are recorded otherwise.
            if caller is None or "importlib" in caller.f_code.co_filename:
                return
            entry = args[0].rpartition("-packages")[2].lstrip(os.sep).partition(os.sep)[0]
            self._note_use(f"entry:{entry}" if entry else "dist:*")

    def _note_use(self, what: str) -> None:
        """Note what the code of modules that are being loaded imports or looks up."""
        if not self._is_noting:
            return
        frame: types.FrameType | None = sys._getframe()
        while frame is not None:
            if frame.f_code.co_name == _MODULE:
                self._note(frame.f_globals.get("__name__"), what)
            frame = frame.f_back

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:  # noqa: ARG002
        """Record a module that is about to be loaded; returns None, so that another finder finds it."""
        with _untraced():
            self._note_held()
            self._loading[name] = None
            self._note_use(name)

    def _note_held(self) -> None:
        """Record what modules hold as soon as they are loaded, because other modules give them names later."""
        for name in list(self._loading):
            module = sys.modules.get(name)
            if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
                self._loading.pop(name, None)
                for origin in _origins(name, vars(module) if isinstance(module, types.ModuleType) else {}):
                    self._note(name, origin)

    def _noted_import(
        self,
        name: str,
        globals: dict[str, Any] | None = None,  # noqa: A002 - Python's own names
        locals: dict[str, Any] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> types.ModuleType:
        module = self._import(name, globals, locals, fromlist or (), level)
        found, size = getattr(module, "__name__", ""), len(sys.modules)
        if size != self._size or found in self._loading or name in self._loading:
            self._size = size
            with _untraced():
                self._note_held()
        frame = sys._getframe().f_back  # None if the interpreter itself imports it, as `runpy`
        if frame is not None and frame.f_code.co_name == _MODULE:
            importer = frame.f_globals.get("__name__")
            whole = name if not level else found
            self._note(importer, whole if whole in sys.modules else found)
            for part in fromlist or ():
                if type(part) is str and f"{found}.{part}" in sys.modules:
                    self._note(importer, f"{found}.{part}")
        return module

    def _note(self, importer: object, imported: str) -> None:
        if type(importer) is str and importer != imported and not imported.startswith(_OURS):
            self._edges.setdefault(importer, set()).add(imported)

    def described(self) -> dict[str, Any]:
        """Return the loaded modules in loading order with their files, and the edges from them."""
        self._note_held()
        loaded = {}
        for name, module in list(sys.modules.items()):
            spec = getattr(module, "__spec__", None)
            origin = getattr(spec, "origin", None)
            is_named = type(name) is str and spec is not None and getattr(spec, "name", None) == name
            if is_named and not name.startswith(_OURS):
                loaded[name] = origin if type(origin) is str else ""
        return {
            "modules": loaded,
            "imports": {name: sorted(found) for name, found in self._edges.items() if name in loaded and found},
        }


@contextlib.contextmanager
def _untraced() -> Iterator[None]:
    """Do what takes long without a trace of ours, which makes all of Python slow until 3.11."""
    trace = sys.gettrace()
    is_ours = isinstance(getattr(trace, "__self__", None), Tracer) and sys.version_info < (3, 12)
    if is_ours:
        sys.settrace(None)
    try:
        yield
    finally:
        if is_ours:
            sys.settrace(trace)


def _normalized(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def _origins(module: str, values: dict[str, Any]) -> set[str]:
    """The modules that the values of a module come from: its bases, its decorators, what it keeps in collections.

    Nothing of the values is called, not even for their class: an attribute of a proxy may import what it stands for.
    There is one loop and hardly a call, because a trace that is also recorded makes each call slow.
    """
    origins: set[str] = set()
    every = list(values.values())
    for value in list(every):
        kind = type(value)
        if kind in _COLLECTIONS:
            every += list(value.values() if kind is dict else value)[:_MOST_VALUES]
        elif issubclass(kind, type):
            members = type.__getattribute__(value, "__dict__")
            if members.get("__module__") == module:
                every += members.values()
    for value in every:
        kind = type(value)
        while issubclass(kind, _WRAPPERS):
            value = value.__func__
            kind = type(value)
        if kind in _PLAIN:
            continue
        names: tuple[Any, ...]
        if kind is types.FunctionType:  # the second is that of its decorator
            names = (value.__module__, value.__globals__.get("__name__"))
        elif issubclass(kind, types.ModuleType):
            names = (object.__getattribute__(value, "__dict__").get("__name__"),)
        else:
            owner = value if issubclass(kind, type) else kind
            names = (_of_class.get(id(owner)) or _modules_of(owner))[1]
        for name in names:
            if type(name) is str:
                origins.add(name)
    return origins


_of_class: dict[int, tuple[type, tuple[str, ...]]] = {}  # by identity, because a class may not be hashable


def _modules_of(kind: type) -> tuple[type, tuple[str, ...]]:
    """A class, and the modules of it and its bases."""
    names = {type.__getattribute__(base, "__dict__").get("__module__") for base in type.mro(kind)}
    known = _of_class[id(kind)] = (kind, tuple(name for name in names if type(name) is str))
    return known
