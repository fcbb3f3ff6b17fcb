"""Refactorings of parameters and return values: each returns a package's new files, or None."""

from __future__ import annotations

import ast
import random

from planting.text import (
    Function,
    Source,
    Tree,
    calls_of,
    everywhere,
    functions,
    line_starts,
    of_one_file,
    parsed,
    plain_functions,
    span,
    spliced,
)


@of_one_file
def add_parameter(tree: Tree, rng: random.Random, source: Source) -> Tree | None:
    """Add a parameter to a function, and an argument to its calls."""
    path, text = source.path, source.text
    found = [
        f
        for f in plain_functions(tree, source.module)
        if not (f.args.vararg or f.args.kwarg or f.args.kwonlyargs) and f.args.args
    ]
    if not found:
        return None
    function = rng.choice(found)
    new = rng.choice(["mode", "strict", "options", "context"]) + "_"
    starts = line_starts(text)
    last = (function.args.defaults or function.args.args)[-1]
    last = last if not function.args.defaults or function.args.defaults[-1].lineno else function.args.args[-1]
    edits: dict[str, list[tuple[int, int, str]]] = {path: []}
    end = max(span(node, starts)[1] for node in (*function.args.args, *function.args.defaults))
    edits[path].append((end, end, f", {new}=None"))
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and len(function.body) > 1:
        first = function.body[1]
    start = starts[first.lineno - 1]
    if isinstance(first, Function | ast.ClassDef) or first.lineno == function.lineno:
        return None
    indent = " " * first.col_offset
    edits[path].append((start, start, f"{indent}if {new} is not None:\n{indent}    raise ValueError({new})\n"))
    for place, call, found_in in calls_of(tree, function.name):
        if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
            continue
        _, stop = span(call, line_starts(found_in))
        before = found_in[: stop - 1].rstrip()
        comma = "" if before.endswith((",", "(")) else ", "
        at = len(before)
        if "#" in found_in[found_in.rfind("\n", 0, at) + 1 : at]:
            return None
        edits.setdefault(place, []).append((at, at, f"{comma}{new}=None"))
    return {**tree, **{place: spliced(tree[place], found_edits) for place, found_edits in edits.items()}}


@of_one_file
def return_tuple(tree: Tree, rng: random.Random, source: Source) -> Tree | None:
    """Make a function return a pair, and its callers unpack it."""
    functions = plain_functions(tree, source.module)
    rng.shuffle(functions)
    for function in functions:
        returns = [n for n in ast.walk(function) if isinstance(n, ast.Return)]
        inner = sum(isinstance(n, Function | ast.Lambda) for n in ast.walk(function))
        if inner != 1 or not returns or any(n.value is None for n in returns):
            continue
        if any(isinstance(n, ast.Yield | ast.YieldFrom) for n in ast.walk(function)) or not isinstance(
            function.body[-1], ast.Return
        ):
            continue
        calls = list(calls_of(tree, function.name))
        assigned = {
            (path, node.value.lineno, node.value.col_offset): node
            for path, text in tree.items()
            if function.name in text and text.isascii()
            for node in ast.walk(parsed(text))
            if isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Call)
            and len(node.targets) == 1
            and isinstance(node.targets[0], ast.Name)
        }
        if not calls or not all((path, call.lineno, call.col_offset) in assigned for path, call, _ in calls):
            continue
        if everywhere(tree, function.name) - 1 > 2 * len(calls) + 2:
            continue
        edits: dict[str, list[tuple[int, int, str]]] = {}
        starts = line_starts(source.text)
        for one in returns:
            first, last = span(one.value, starts)
            edits.setdefault(source.path, []).append((first, last, f"({source.text[first:last]}), None"))
        for path, call, text in calls:
            target = assigned[(path, call.lineno, call.col_offset)].targets[0]
            _, last = span(target, line_starts(text))
            edits.setdefault(path, []).append((last, last, ", _unused"))
        return {**tree, **{path: spliced(tree[path], found) for path, found in edits.items()}}
    return None


@of_one_file
def name_the_result(tree: Tree, rng: random.Random, source: Source) -> Tree | None:
    """Assign results to a variable before they are returned."""
    path, text = source.path, source.text
    returns = [n for n in ast.walk(source.module) if isinstance(n, ast.Return) and n.value is not None]
    returns = [n for n in returns if text.splitlines()[n.lineno - 1].lstrip().startswith("return ")]
    if not returns:
        return None
    starts = line_starts(text)
    edits = []
    for one in rng.sample(returns, min(2, len(returns))):
        first, last = span(one, starts)
        start, stop = span(one.value, starts)
        value = text[start:stop]
        indent = " " * one.col_offset
        wrapped = f"({value})" if "\n" in value and not value.startswith(("(", "[", "{")) else value
        edits.append((first, last, f"found_ = {wrapped}\n{indent}return found_"))
    return {**tree, path: spliced(text, edits)}


@of_one_file
def new_helper(tree: Tree, rng: random.Random, source: Source) -> Tree | None:
    """Pass one result through a new function."""
    path, text = source.path, source.text
    returns = [
        n for f in functions(source.module) for n in ast.walk(f) if isinstance(n, ast.Return) and n.value is not None
    ]
    if not returns:
        return None
    name = f"_checked_{rng.randint(10, 99)}"
    starts = line_starts(text)
    one = rng.choice(returns)
    first, last = span(one.value, starts)
    changed = text[:first] + f"{name}({text[first:last]})" + text[last:]
    return {**tree, path: changed.rstrip("\n") + f"\n\n\ndef {name}(value):\n    return value\n"}
