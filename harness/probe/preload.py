"""Selects the modules that a process can import before it knows which files a candidate changes. Pure.

A module is left out if a candidate may change its file, if it imports a module that is left out while it loads, or if
its package is left out. All other modules are the same for every candidate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet


def preloadable(
    modules: Mapping[str, str], imports: Mapping[str, Sequence[str]], candidates: AbstractSet[str]
) -> tuple[str, ...]:
    """The names of the modules that can be preloaded, in the order of `modules`.

    `modules` maps each module of a run to its file, in loading order. `imports` maps each module to those that it
    imported while it loaded. `candidates` are the files that may change.
    """
    importers: dict[str, set[str]] = {}
    for name, imported in imports.items():
        for other in imported:
            importers.setdefault(other, set()).add(name)
    inside: dict[str, set[str]] = {}
    for name in modules:
        package = name.rpartition(".")[0]
        if package:
            inside.setdefault(package, set()).add(name)
    reached = {name for name, file in modules.items() if file in candidates}
    border = list(reached)
    while border:
        name = border.pop()
        for other in (importers.get(name, set()) | inside.get(name, set())) - reached:
            reached.add(other)
            border.append(other)
    return tuple(name for name in modules if name not in reached)
