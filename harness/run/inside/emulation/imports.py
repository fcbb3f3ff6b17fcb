"""Runs a function right after another module is imported.

The stand-in must not import torch itself, because a repro may set variables that torch reads on import.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_waiting: dict[str, Callable[[Any], None]] = {}


def after_import(name: str, act: Callable[[Any], None]) -> None:
    """Call `act` with the module `name` as soon as it is imported, or now if it already is."""
    if name in sys.modules:
        act(sys.modules[name])
        return
    _waiting[name] = act
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder:
    """Finds watched modules with the other finders, and wraps their loaders."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in _waiting:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = None if finder is self or find is None else find(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


class _Loader:
    """Loads a module with the wrapped loader, restores that loader on the module, and then calls the function."""

    def __init__(self, within: Any) -> None:
        self._within = within

    def create_module(self, spec: Any) -> Any:
        return self._within.create_module(spec)

    def exec_module(self, module: Any) -> None:
        module.__spec__.loader = module.__loader__ = self._within
        self._within.exec_module(module)
        act = _waiting.pop(module.__name__, None)
        if act is not None:
            act(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._within, name)
