"""The bugs to plant: changes of one line that ran."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from planting.text import (
    Tree,
    functions,
    line_starts,
    parsed,
    span,
)

_COMPARED = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
_COUNTED = {ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.FloorDiv: "*", ast.Mod: "+"}


def mutations(tree: Tree, ran: dict[str, list[int]]) -> Iterator[tuple[str, int, str, str]]:
    """Yield file, line, the file's new text and a description of each change of a line that ran in a function."""
    for path, lines in ran.items():
        text = tree.get(path, "")
        if not text.isascii() or not text:
            continue
        starts, executed = line_starts(text), set(lines)
        inside = dict.fromkeys(n for f in functions(parsed(text)) for s in f.body for n in ast.walk(s))
        for node in inside:
            line = getattr(node, "lineno", 0)
            if line not in executed or getattr(node, "end_lineno", 0) != line:
                continue
            for first, last, new in _replacements(node, text, starts):
                change = f"{text[first:last]!r} became {new!r}"
                yield path, line, text[:first] + new + text[last:], change


def _replacements(node: ast.AST, text: str, starts: list[int]) -> Iterator[tuple[int, int, str]]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        first, last = span(node.left, starts)[1], span(node.comparators[0], starts)[0]
        if "(" not in text[first:last] and ")" not in text[first:last]:
            yield first, last, f" {_COMPARED[type(node.ops[0])]} "
    elif isinstance(node, ast.BinOp) and type(node.op) in _COUNTED:
        first, last = span(node.left, starts)[1], span(node.right, starts)[0]
        if "(" not in text[first:last] and ")" not in text[first:last]:
            yield first, last, f" {_COUNTED[type(node.op)]} "
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield *span(node, starts), str(node.value + 1)
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield *span(node, starts), str(not node.value)
    elif isinstance(node, ast.BoolOp):
        first, last = span(node.values[0], starts)[1], span(node.values[1], starts)[0]
        if text[first:last].strip() in ("and", "or"):
            yield first, last, " or " if isinstance(node.op, ast.And) else " and "
    elif isinstance(node, ast.If):
        first, last = span(node.test, starts)
        if "\n" not in text[first:last]:
            yield first, last, f"not ({text[first:last]})"
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield *span(node, starts), "pass"
