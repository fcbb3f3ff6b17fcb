"""Refactorings that move code or add comments: each returns a package's new files, or None."""

from __future__ import annotations

import ast
import builtins
import random

from planting.text import (
    Function,
    Source,
    Tree,
    chunk,
    functions,
    of_one_file,
    plain_functions,
)


def _used_at_import(module: ast.Module, name: str) -> bool:
    for node in module.body:
        if isinstance(node, Function):
            parts: list[ast.AST] = [*node.decorator_list, *node.args.defaults]
        elif isinstance(node, ast.ClassDef):
            parts = [node]
        else:
            parts = [node]
        if any(isinstance(n, ast.Name) and n.id == name for part in parts for n in ast.walk(part)):
            return True
    return False


@of_one_file
def move_in_file(tree: Tree, rng: random.Random, source: Source) -> Tree | None:
    """Move a function to the end of its file."""
    path, text, module = source.path, source.text, source.module
    functions = [f for f in plain_functions(tree, module) if not _used_at_import(module, f.name)]
    if not functions:
        return None
    function = rng.choice(functions)
    first, last = chunk(text, function)
    rest = text[:first].rstrip("\n") + "\n\n\n" + text[last:].lstrip("\n")
    return {**tree, path: rest.rstrip("\n") + "\n\n\n" + text[first:last].rstrip("\n") + "\n"}


@of_one_file
def move_to_new_file(tree: Tree, rng: random.Random, source: Source) -> Tree | None:
    """Move a function that uses no other name of its module to a new file."""
    path, text = source.path, source.text
    found = []
    for function in plain_functions(tree, source.module):
        nodes = list(ast.walk(function))
        stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        stored |= {n.arg for n in nodes if isinstance(n, ast.arg)} | {n.name for n in nodes if isinstance(n, Function)}
        loaded = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        if loaded - stored <= set(dir(builtins)):
            found.append(function)
    if not found:
        return None
    function = rng.choice(found)
    first, last = chunk(text, function)
    module = f"_helpers_{rng.randint(10, 99)}"
    new = f"{path.rpartition('/')[0]}/{module}.py"
    if new in tree:
        return None
    dotted = new.removesuffix(".py").replace("/", ".")
    body = f'"""Helpers."""\n\n\n{text[first:last]}'
    return {**tree, path: f"{text[:first]}from {dotted} import {function.name}\n{text[last:]}", new: body}


@of_one_file
def new_base(tree: Tree, rng: random.Random, source: Source) -> Tree | None:
    """Move a method of a class to a new base class."""
    path, text = source.path, source.text
    classes = [
        n
        for n in source.module.body
        if isinstance(n, ast.ClassDef) and not n.bases and not n.decorator_list and not n.keywords
    ]
    if not classes:
        return None
    node = rng.choice(classes)
    methods = [
        m for m in node.body if isinstance(m, ast.FunctionDef) and not m.decorator_list and not m.name.startswith("__")
    ]
    methods = [m for m in methods if "super" not in ast.dump(m) and "__" not in ast.unparse(m)]
    if not methods or len(node.body) < 3:
        return None
    method = rng.choice(methods)
    first, last = chunk(text, method)
    start, _ = chunk(text, node)
    header = text[start : text.index(":", start)]
    if header != f"class {node.name}":
        return None
    base = f"class {node.name}Base:\n    __slots__ = ()\n\n{text[first:last].rstrip()}\n\n\n"
    changed = base + f"class {node.name}({node.name}Base)" + text[start + len(header) : first] + text[last:]
    return {**tree, path: text[:start] + changed}


@of_one_file
def comment(tree: Tree, rng: random.Random, source: Source) -> Tree | None:
    """Add comments before some statements."""
    path, text = source.path, source.text
    statements = [n for f in functions(source.module) for n in f.body if n.col_offset > 0]
    if not statements:
        return None
    lines = text.splitlines(keepends=True)
    for node in sorted(rng.sample(statements, min(3, len(statements))), key=lambda n: -n.lineno):
        if not isinstance(node, Function | ast.ClassDef):
            lines.insert(
                node.lineno - 1,
                " " * node.col_offset + f"# See the notes on {rng.choice(['speed', 'order', 'limits'])}.\n",
            )
    return {**tree, path: "".join(lines)}
