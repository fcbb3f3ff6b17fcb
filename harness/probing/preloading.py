"""Which modules a process may import before it is known what a run changes: those that can't depend on it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from harness.environment.workspace import module_of
from harness.model import normalized_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet


def preloadable(
    modules: Mapping[str, str],
    imports: Mapping[str, Sequence[str]],
    candidates: AbstractSet[str],
    names: AbstractSet[str] = frozenset(),
) -> tuple[str, ...]:
    """The names of the modules that can be imported before the changed files are known, in the order of `modules`.

    A module is left out if a candidate may change its file, if it imports a module that is left out while it loads, or
    if its package is left out. All other modules are the same for every candidate.

    `modules` maps each module of a run to its file, in loading order. `imports` maps each module to what it imported,
    or looked up, while it loaded. `candidates` are the files that may change, `names` what else may (`names_of`).
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
    # A file that is missing may appear, and then what has looked for it in vain runs otherwise.
    reached |= {name for name in map(module_of, candidates) if name not in modules}
    reached |= {name for name in (*modules, *importers) if name in names or name.split(".")[0] in names}
    border = list(reached)
    while border:
        name = border.pop()
        for other in (importers.get(name, set()) | inside.get(name, set())) - reached:
            reached.add(other)
            border.append(other)
    return tuple(name for name in modules if name not in reached)


def before_any(candidates: AbstractSet[str], names: Sequence[str], modules: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the modules that were loaded before any file in `candidates` was: they can't need it to load."""
    before = set(itertools.takewhile(lambda name: modules[name] not in candidates, modules))
    return tuple(name for name in names if name in before)


def names_of(distributions: Iterable[str], entries: Iterable[str], groups: Iterable[str] = ()) -> frozenset[str]:
    """What a module may have imported or looked up of some distributions, as an import graph names it.

    `entries` are the first parts of the paths of their files in site-packages, `groups` those of their entry points.
    """
    entries = set(entries)
    modules = {entry.split(".")[0] for entry in entries if not entry.endswith((".dist-info", ".egg-info"))}
    looked_up = {f"dist:{normalized_name(name)}" for name in distributions} | {f"entry:{entry}" for entry in entries}
    return frozenset({*modules, *looked_up, *(f"group:{group}" for group in groups), "dist:*", "group:*"})
