"""Says in a sentence what a region changes, from its syntax: a parameter renamed, another default, a call. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from harness.culprit.edits import module_of
from harness.culprit.syntax import parsed

if TYPE_CHECKING:
    from harness.culprit.edits import Edits, Unit

_TICKED = re.compile(r"`([^`]+)`")
_LONGEST = 60
_MOST = 3

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def causes_of(edits: Edits, units: Collection[Unit], message: str = "") -> tuple[str, ...]:
    """At most three sentences, without an end, on what some regions change; () if their syntax says nothing simple.

    If only some of them are about names in the `message` of the failure, it is these.
    """
    found: dict[str, None] = {}
    for unit in sorted(units):
        if edits.is_region(unit) and edits.path_of(unit).endswith(".py"):
            difference = edits.differences[edits.path_of(unit)]
            found |= dict.fromkeys(
                causes(difference.before, difference.after, edits.block(unit), module_of(edits.path_of(unit)))
            )
    told = _named_in(message, tuple(found)) or tuple(found)
    return told if len(told) <= _MOST else ()


def _named_in(message: str, sentences: Sequence[str]) -> tuple[str, ...]:
    """The sentences with a name in the message that not all of them have."""
    names = [frozenset(_TICKED.findall(one)) for one in sentences]
    shared = frozenset[str]().union(*names).intersection(*names) if len(names) > 1 else frozenset[str]()
    found = (
        one
        for one, own in zip(sentences, names, strict=True)
        if any(re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", message) for name in own - shared)
    )
    return tuple(found)


def causes(before: str, after: str, block: tuple[int, int, int, int], module: str) -> tuple[str, ...]:
    """What the lines [a, b) before and [c, d) after of two texts change; `module` is the dotted name of the file."""
    old, new = parsed(before), parsed(after)
    if old is None or new is None:
        return ()
    a, b, c, d = block
    older, newer = _definitions(old), _definitions(new)
    found = [*_whole(older, newer, (a, b), module, "was removed from")]
    found += _whole(newer, older, (c, d), module, "was added to")
    if found:
        return tuple(found)
    for name in older.keys() & newer.keys():
        found += _headers(name, older[name], newer[name], (a, b), (c, d))
    if found:
        return tuple(found)
    inside = _owner(newer, (c, d)) or _owner(older, (a, b))
    where = f" in `{inside}`" if inside else f" in `{module}`"
    return tuple(_statements(list(_within(old, (a, b))), list(_within(new, (c, d))), where, inside))


def _definitions(tree: ast.AST, prefix: str = "") -> dict[str, _Definition]:
    """The classes, functions and methods of a text by qualified name."""
    found: dict[str, _Definition] = {}
    for one in ast.iter_child_nodes(tree):
        if isinstance(one, _Definition):
            found[f"{prefix}{one.name}"] = one
            found |= _definitions(one, f"{prefix}{one.name}.")
        elif isinstance(one, ast.If | ast.Try | ast.With):
            found |= _definitions(one, prefix)
    return found


def _whole(
    having: dict[str, _Definition], lacking: dict[str, _Definition], lines: tuple[int, int], module: str, what: str
) -> Iterator[str]:
    """The outermost definitions that only one text has, if all their lines are within these."""
    for name, one in having.items():
        owner, _, last = name.rpartition(".")
        is_within = lines[0] < one.lineno and (one.end_lineno or one.lineno) <= lines[1]
        if is_within and name not in lacking and (not owner or owner in lacking):
            yield f"`{last}` {what} `{f'{module}.{owner}' if owner else module}`"


def _headers(
    name: str, old: _Definition, new: _Definition, older: tuple[int, int], newer: tuple[int, int]
) -> Iterator[str]:
    """What changed in the parameters, the decorators or the bases of a definition with lines in a region."""
    if not (_touches(old, older) or _touches(new, newer)):
        return
    was, now = ({ast.unparse(one): None for one in node.decorator_list} for node in (old, new))
    for one in was.keys() - now.keys():
        yield f"the decorator `{_short(one)}` of `{name}` is gone"
    for one in now.keys() - was.keys():
        yield f"`{name}` has the new decorator `{_short(one)}`"
    if isinstance(old, ast.ClassDef) and isinstance(new, ast.ClassDef):
        bases = [", ".join(map(ast.unparse, node.bases)) or "object" for node in (old, new)]
        if bases[0] != bases[1]:
            yield f"`{name}` derives from `{_short(bases[1])}` instead of `{_short(bases[0])}`"
    elif isinstance(old, _Function) and isinstance(new, _Function):
        yield from _parameters(name, _arguments(old), _arguments(new))


def _touches(node: _Definition, lines: tuple[int, int]) -> bool:
    """Whether the header of a definition, decorators included, has any of the lines [first, last), counted from 0."""
    first = min((node.lineno, *(one.lineno for one in node.decorator_list)))
    return first <= lines[1] and lines[0] < max(node.body[0].lineno - 1, node.lineno)


def _arguments(node: _Function) -> dict[str, str]:
    """The parameters of a function with their defaults as source, "" without one."""
    told = node.args
    plain = [*told.posonlyargs, *told.args]
    defaults = [*[None] * (len(plain) - len(told.defaults)), *told.defaults, *told.kw_defaults]
    found = {
        one.arg: ast.unparse(default) if default is not None else ""
        for one, default in zip([*plain, *told.kwonlyargs], defaults, strict=True)
    }
    return found | {f"*{one.arg}": "" for one in (told.vararg, told.kwarg) if one is not None}


def _parameters(name: str, was: dict[str, str], now: dict[str, str]) -> Iterator[str]:
    gone, come = [one for one in was if one not in now], [one for one in now if one not in was]
    if len(gone) == len(come) == 1 and list(was).index(gone[0]) == list(now).index(come[0]):
        yield f"the parameter `{gone[0]}` of `{name}` was renamed to `{come[0]}`"
        return
    for one in gone:
        yield f"the parameter `{one}` of `{name}` was removed"
    for one in come:
        yield f"`{name}` has the new parameter `{one}`"
    for one in was.keys() & now.keys():
        if was[one] != now[one]:
            old, new = (f"`{_short(told)}`" if told else "none" for told in (was[one], now[one]))
            yield f"the default of the parameter `{one}` of `{name}` was changed from {old} to {new}"


def _owner(definitions: dict[str, _Definition], lines: tuple[int, int]) -> str:
    around = [
        (one.lineno, name)
        for name, one in definitions.items()
        if one.lineno <= lines[0] + 1 and lines[1] <= (one.end_lineno or one.lineno)
    ]
    return max(around)[1] if around and lines[1] > lines[0] else ""


def _within(tree: ast.AST, lines: tuple[int, int]) -> Iterator[ast.AST]:
    """The nodes that start on the lines [first, last), counted from 0, in order."""
    for node in ast.walk(tree):
        line = getattr(node, "lineno", None)
        if line is not None and lines[0] < line <= lines[1]:
            yield node


def _statements(old: list[ast.AST], new: list[ast.AST], where: str, inside: str) -> Iterator[str]:
    """What changed among the statements and calls of a region."""
    calls = [_calls(nodes) for nodes in (old, new)]
    for called in calls[0].keys() & calls[1].keys():
        yield from _call(called, calls[0][called], calls[1][called], where)
    for kind, told in (
        (_tests, lambda a, b: f"the condition `{a}`{where} became `{b}`"),
        (_returns, lambda a, b: f"`{inside}` returns `{b}` instead of `{a}`"),
    ):
        yield from _pair(kind(old), kind(new), told)
    values = [_values(nodes) for nodes in (old, new)]
    for target in values[0].keys() & values[1].keys():
        if values[0][target] != values[1][target]:
            yield f"`{target}`{where} was changed from `{_short(values[0][target])}` to `{_short(values[1][target])}`"
    for raised in _raises(new).keys() - _raises(old).keys():
        yield f"`{inside or where.strip()}` raises `{raised}`" if inside else f"`{raised}` is raised{where}"


def _pair(old: list[str], new: list[str], told: Callable[[str, str], str]) -> Iterator[str]:
    if len(old) == len(new) == 1 and old != new:
        yield told(_short(old[0]), _short(new[0]))


def _calls(nodes: list[ast.AST]) -> dict[str, ast.Call]:
    found: dict[str, ast.Call] = {}
    for node in nodes:
        if isinstance(node, ast.Call):
            found.setdefault(ast.unparse(node.func), node)
    return found


def _call(called: str, old: ast.Call, new: ast.Call, where: str) -> Iterator[str]:
    was, now = ({one.arg: ast.unparse(one.value) for one in node.keywords if one.arg} for node in (old, new))
    of = f"of the call of `{_short(called)}`{where}"
    placed = {ast.unparse(one) for one in old.args}
    for one in now.keys() - was.keys():
        by_name = now[one] in placed and len(new.args) < len(old.args)
        yield f"the argument `{one}` {of} is passed by name" if by_name else f"the argument `{one}` {of} is new"
    for one in was.keys() - now.keys():
        yield f"the argument `{one}` {of} is gone"
    for one in was.keys() & now.keys():
        if was[one] != now[one]:
            yield f"the argument `{one}` {of} was changed from `{_short(was[one])}` to `{_short(now[one])}`"


def _tests(nodes: list[ast.AST]) -> list[str]:
    return [ast.unparse(node.test) for node in nodes if isinstance(node, ast.If | ast.While)]


def _returns(nodes: list[ast.AST]) -> list[str]:
    return [ast.unparse(node.value) for node in nodes if isinstance(node, ast.Return) and node.value is not None]


def _values(nodes: list[ast.AST]) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            found.setdefault(ast.unparse(node.targets[0]), ast.unparse(node.value))
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            found.setdefault(ast.unparse(node.target), ast.unparse(node.value))
    return found


def _raises(nodes: list[ast.AST]) -> dict[str, None]:
    found: dict[str, None] = {}
    for node in nodes:
        if isinstance(node, ast.Raise) and node.exc is not None:
            raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            found[ast.unparse(raised)] = None
    return found


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _LONGEST else f"{plain[: _LONGEST - 1]}…"
