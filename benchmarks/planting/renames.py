"""Refactorings that rename: each takes a package's files and a random generator, and returns new files or None."""

from __future__ import annotations

import ast
import random
import re

from planting.text import (
    Function,
    Source,
    Tree,
    defined_once,
    everywhere,
    functions,
    line_starts,
    of_one_file,
    renamed_everywhere,
    span,
    spliced,
)


@of_one_file
def rename_local(tree: Tree, rng: random.Random, source: Source) -> Tree | None:
    """Rename a local variable."""
    path, text = source.path, source.text
    candidates = [f for f in functions(source.module) if sum(isinstance(n, Function) for n in ast.walk(f)) == 1]
    if not candidates:
        return None
    function = rng.choice(candidates)
    nodes = list(ast.walk(function))
    if any(
        isinstance(n, ast.JoinedStr | ast.Global | ast.Nonlocal | ast.ExceptHandler | ast.Import | ast.ImportFrom)
        for n in nodes
    ):
        return None
    arguments = {n.arg for n in nodes if isinstance(n, ast.arg)}
    names = sorted({n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} - arguments)
    if not names:
        return None
    name = rng.choice(names)
    new = rng.choice(["current_", "the_", "new_"]) + name.strip("_")
    starts = line_starts(text)
    edits = [(*span(n, starts), new) for n in nodes if isinstance(n, ast.Name) and n.id == name]
    return {**tree, path: spliced(text, edits)}


@of_one_file
def rename_function(tree: Tree, rng: random.Random, source: Source) -> Tree | None:
    """Rename a function and its callers."""
    names = [f.name for f in functions(source.module) if len(f.name) > 4 and not f.name.startswith("__")]
    names = [name for name in names if defined_once(tree, name) and 2 <= everywhere(tree, name) <= 12]
    if not names:
        return None
    name = rng.choice(sorted(set(names)))
    return renamed_everywhere(tree, name, f"{name}_{rng.choice(['of', 'impl', 'inner', 'for'])}")


@of_one_file
def rename_attribute(tree: Tree, rng: random.Random, source: Source) -> Tree | None:
    """Rename a private attribute."""
    names = sorted(set(re.findall(r"self\.(_[a-z]\w{3,})\s*=", source.text)))
    names = [name for name in names if everywhere(tree, name) <= 15]
    if not names:
        return None
    name = rng.choice(names)
    return renamed_everywhere(tree, name, f"{name}_kept")


def rename_file(tree: Tree, rng: random.Random) -> Tree | None:
    """Rename a module, and change the imports of it."""
    paths = [path for path in tree if not path.endswith("__init__.py") and len(tree[path]) > 300]
    if not paths:
        return None
    path = rng.choice(paths)
    module = path.rpartition("/")[2].removesuffix(".py")
    new = f"{module}_core"
    place = f"{path.rpartition('/')[0]}/{new}.py"
    dotted = path.rpartition("/")[0].replace("/", ".")
    patterns = (
        (rf"\bfrom \.{module} import", f"from .{new} import"),
        (rf"\bfrom \. import {module}$", f"from . import {new} as {module}"),
        (rf"\bfrom {re.escape(dotted)}\.{module} import", f"from {dotted}.{new} import"),
        (rf"\bfrom {re.escape(dotted)} import {module}$", f"from {dotted} import {new} as {module}"),
    )
    found = {}
    for other, text in tree.items():
        for pattern, into in patterns:
            text = re.sub(pattern, into, text, flags=re.MULTILINE)
        found[place if other == path else other] = text
    return found
