"""Records which module imported which in one run. The graph shows which modules a later process can preload.

Each import while a module's own code runs is an edge from that module, even if the imported module was already loaded.
An import inside a function counts for every module whose own code is on the stack.
"""

# ruff: noqa: SLF001

from __future__ import annotations

import builtins
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import types
    from collections.abc import Sequence
    from typing import Any

_MODULE = "<module>"


class ImportGraph:
    """Records imports after `install`: new ones with a finder that finds nothing, the others with `__import__`."""

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
