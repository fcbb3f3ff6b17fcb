"""Records what a run did in some installed files, and which module imported which.

A trace has functions called, lines run, arguments and return values. It is evidence of where two runs diverge, never a
proof, so everything is bounded: a few calls of each function, a few items of each value, and a time limit for
inspecting values. The graph of imports shows which modules a later process can preload.
"""

# ruff: noqa: SLF001 - frames have no public way to the caller

from __future__ import annotations

import builtins
import os
import sys
import threading
import time
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import CodeType, FrameType

_MOST_CALLS = 6  # of one function whose values are recorded
_MOST_QUIET = 40  # calls of one function without a new line, after which its lines are no longer traced
_MOST_ITEMS = 60  # of one value
_MOST_DEPTH = 4
_MOST_RECORDS = 4000
_MOST_NUMBERS = 4_000_000  # of one tensor
_TIME_S = 4.0
_TEXT = 200
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)
_APART = "\u241f"  # between the arguments of a call
_MODULE = "<module>"


class Tracer:
    """Records what runs in `files`, which are paths relative to one of `roots`."""

    def __init__(self, files: Iterable[str], roots: Iterable[str]) -> None:
        self._roots = tuple({root + os.sep for root in (*roots, *map(os.path.realpath, roots))})
        self._files = frozenset(files)
        self._by_file: dict[str, bool] = {}
        self._tops = frozenset(path.partition("/")[0].removesuffix(".py") for path in self._files)
        self._called: dict[CodeType, None] = {}
        self._lines: dict[CodeType, set[int]] = {}
        self._calls: dict[CodeType, int] = {}
        self._quiet: dict[CodeType, int] = {}
        self._entered: dict[int, str] = {}
        self._returned: list[tuple[CodeType, str, str]] = []
        self._raising: FrameType | None = None
        self._spent = 0.0
        self._is_set = False

    def start(self) -> None:
        """Start to record, with the first import of a wanted package: tracing slows down every function call."""
        sys.meta_path.insert(0, self)  # no code of a package runs before its import
        for name in self._tops.intersection(sys.modules):
            self.find_spec(name)

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:  # noqa: ARG002
        """Start to trace at the first import of a wanted package; returns None, so that another finder finds it."""
        if not self._is_set and name.partition(".")[0] in self._tops:
            self._is_set = True
            threading.settrace(self._enter)
            sys.settrace(self._enter)

    def stop(self) -> None:
        """Stop recording; keeps what was recorded."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        sys.settrace(None)
        threading.settrace(None)

    def report(self) -> dict[str, Any]:
        """Return the recording as plain data.

        `called` has for each file and function the rank of its last call, `lines` the line numbers of each file, and
        `returned` file, function, arguments and result of calls in the order of their returns.
        """
        called: dict[str, dict[str, int]] = {}
        for rank, code in enumerate(list(self._called)):
            called.setdefault(self._file(code), {})[_name(code)] = rank
        lines: dict[str, set[int]] = {}
        for code, numbers in list(self._lines.items()):
            lines.setdefault(self._file(code), set()).update(numbers)
        returned = [[self._file(code), _name(code), given, result] for code, given, result in self._returned]
        return {"called": called, "lines": {file: sorted(found) for file, found in lines.items()}, "returned": returned}

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
        self._note_entry(frame)
        return self._inside

    def _inside(self, frame: FrameType, event: str, value: Any) -> Any:
        if event == "line":
            lines = self._lines[frame.f_code]
            if frame.f_lineno not in lines:
                lines.add(frame.f_lineno)
                self._quiet[frame.f_code] = 0
            if frame is self._raising:
                self._raising = None
        elif event == "exception":
            self._raising = frame
        elif event == "return":
            # An exception that leaves a function is also reported as a return of None.
            self._note_exit(frame, value, is_raised=frame is self._raising)
            self._raising = None
        return self._inside

    # Arguments and return values.

    def _note_entry(self, frame: FrameType) -> None:
        code = frame.f_code
        count = self._calls.get(code, 0)
        if count >= _MOST_CALLS or code.co_name == _MODULE or len(self._returned) >= _MOST_RECORDS:
            return
        self._calls[code] = count + 1
        flags = bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)  # *args and **kwargs
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + flags]
        # Read it once: each access to f_locals builds it again.
        values = frame.f_locals
        self._entered[id(frame)] = _APART.join(f"{name}={self._digest(values.get(name))}" for name in names) or _APART

    def _note_exit(self, frame: FrameType, value: Any, *, is_raised: bool = False) -> None:
        given = self._entered.pop(id(frame), None)
        if given and not is_raised:
            self._returned.append((frame.f_code, given, self._digest(value)))

    def _digest(self, value: Any) -> str:
        if self._spent > _TIME_S:
            return ""
        begun = time.perf_counter()
        told = _Digest().of(value)
        self._spent += time.perf_counter() - begun
        return told


class _Digest:
    """Describes a value in a short text, which is the same in every process that has an equal value.

    It runs no code of the value, except of tensors and arrays: a lazy module or mapping would import what it is asked
    for. So attributes are looked up on types, and items of dictionaries with methods of `dict`.
    """

    def __init__(self) -> None:
        self._left = _MOST_ITEMS

    def of(self, value: Any, depth: int = _MOST_DEPTH) -> str:
        """Return the text; never raises."""
        self._left -= 1
        if self._left < 0 or depth < 0:
            return "..."
        try:
            return self._of(value, depth)
        except Exception:  # noqa: BLE001 - any code of the value may run and raise
            return f"<{type(value).__name__}>"

    def _of(self, value: Any, depth: int) -> str:
        kind = type(value)
        if value is None or kind in (bool, int):
            return repr(value)[:_TEXT]
        if kind is float:
            return f"{value:.5g}"
        if kind in (str, bytes):
            return repr(value[:_TEXT]) + str(len(value))
        if kind in (list, tuple):
            return f"{kind.__name__}{len(value)}[{','.join(self.of(one, depth - 1) for one in value[:_MOST_ITEMS])}]"
        if kind in (set, frozenset):
            return f"set{len(value)}[{','.join(sorted(self.of(one, depth - 1) for one in value))}]"
        if isinstance(value, types.ModuleType):
            return f"module {_own(value, '__dict__').get('__name__')}"
        if isinstance(value, dict):
            pairs = list(dict.items(value))[:_MOST_ITEMS]
            told = ",".join(f"{self.of(key, depth - 1)}:{self.of(one, depth - 1)}" for key, one in pairs)
            return f"dict{dict.__len__(value)}{{{told}}}"
        inside = _own(value, "__dict__")
        own = inside if type(inside) is dict else {}
        if all(name in own or hasattr(kind, name) for name in ("shape", "dtype")):
            return self._numbers(value)
        if isinstance(value, (type, *_FUNCTIONS)):
            return str(value.__qualname__)
        if inside is own:
            return f"{kind.__qualname__}{self.of(inside, depth - 1)}"
        slots = [name for one in kind.__mro__ for name in _names(getattr(one, "__slots__", ()))]
        told = ",".join(f"{name}={self.of(_own(value, name), depth - 1)}" for name in slots)
        return f"{kind.__qualname__}({told})"

    def _numbers(self, value: Any) -> str:
        """Shape, dtype and a few sums of a tensor or array, with only operations that all libraries support."""
        shape = tuple(int(size) for size in value.shape)
        told = f"{shape}{value.dtype}"
        count = 1
        for size in shape:
            count *= size
        if count > _MOST_NUMBERS:
            return told
        plain = value.detach() if hasattr(value, "detach") else value
        if "bool" in str(value.dtype) or "int" in str(value.dtype):
            return f"{told}{int(plain.sum().item())}"
        weighted = plain.reshape(-1)
        sums = (float(part.sum().item()) for part in (plain, abs(weighted), weighted[:1]))
        return f"{told}{','.join(f'{one:.4g}' for one in sums)}"


def _own(value: Any, name: str) -> Any:
    """An attribute of a value, None if it has none; `__getattr__` and `__getattribute__` of its class don't run."""
    try:
        return object.__getattribute__(value, name)
    except AttributeError:
        return None


def _names(slots: Any) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _name(code: CodeType) -> str:
    return str(getattr(code, "co_qualname", code.co_name)).replace(".<locals>", "")


class ImportGraph:
    """Records imports after `install`: new ones with a finder that finds nothing, the others with `__import__`.

    Each import while a module's own code runs is an edge from that module, even if the imported module was already
    loaded. An import inside a function counts for every module whose own code is on the stack.
    """

    def __init__(self) -> None:
        self._edges: dict[str, set[str]] = {}
        self._import = builtins.__import__

    def install(self) -> None:
        """Start to record."""
        sys.meta_path.insert(0, self)
        builtins.__import__ = self._noted_import  # type: ignore[assignment]

    def remove(self) -> None:
        """Stop recording and restore the original `__import__`."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        if builtins.__import__ == self._noted_import:
            builtins.__import__ = self._import

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:  # noqa: ARG002
        """Record a module that is about to be loaded; returns None, so that another finder finds it."""
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_name == _MODULE:
                self._note(frame.f_globals.get("__name__"), name)
            frame = frame.f_back

    def _noted_import(
        self,
        name: str,
        globals: dict[str, Any] | None = None,  # noqa: A002 - Python's own names
        locals: dict[str, Any] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> types.ModuleType:
        module = self._import(name, globals, locals, fromlist or (), level)
        frame = sys._getframe(1)
        if frame.f_code.co_name == _MODULE:
            importer = frame.f_globals.get("__name__")
            found = getattr(module, "__name__", "")
            whole = name if not level else found
            self._note(importer, whole if whole in sys.modules else found)
            for part in fromlist or ():
                if type(part) is str and f"{found}.{part}" in sys.modules:
                    self._note(importer, f"{found}.{part}")
        return module

    def _note(self, importer: object, imported: str) -> None:
        if type(importer) is str and importer != imported:
            self._edges.setdefault(importer, set()).add(imported)

    def described(self) -> dict[str, Any]:
        """Return the loaded modules in loading order with their files, and the edges between them."""
        loaded = {}
        for name, module in list(sys.modules.items()):
            spec = getattr(module, "__spec__", None)
            origin = getattr(spec, "origin", None)
            if type(name) is str and spec is not None and getattr(spec, "name", None) == name:
                loaded[name] = origin if type(origin) is str else ""
        return {
            "modules": loaded,
            "imports": {name: sorted(found & loaded.keys()) for name, found in self._edges.items() if name in loaded},
        }
