"""Says in a sentence what a region changes, from its syntax: a parameter renamed, another default, a call. Pure."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from attrs import frozen

from harness.culprit.edits import module_of
from harness.culprit.syntax import parsed

if TYPE_CHECKING:
    from harness.culprit.edits import Edits, Unit

_TICKED = re.compile(r"`([^`]+)`")
_LONGEST = 60
_MOST = 3
_ORDINALS = ("first", "second", "third")

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
    within = list(_within(old, (a, b))), list(_within(new, (c, d)))
    told = tuple(_statements(*within, where, inside))
    told = told or tuple(_parts(_Around.of(old, (a, b)), _Around.of(new, (c, d)), where))
    told = told or tuple(_only(*within, inside))
    return told or tuple(_called_instead(_calls(within[0]), _calls(within[1]), inside))


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
    """What a region changes in the parameters, the decorators or the bases of a definition."""
    was, now = ({ast.unparse(one): one for one in node.decorator_list} for node in (old, new))
    for text, one in was.items():
        if text not in now and _is_on(one, older):
            yield f"the decorator `{_short(text)}` of `{name}` is gone"
    for text, one in now.items():
        if text not in was and _is_on(one, newer):
            yield f"`{name}` has the new decorator `{_short(text)}`"
    if isinstance(old, ast.ClassDef) and isinstance(new, ast.ClassDef):
        bases = [", ".join(map(ast.unparse, node.bases)) or "object" for node in (old, new)]
        if bases[0] != bases[1] and (_has_header_on(old, older) or _has_header_on(new, newer)):
            yield f"`{name}` derives from `{_short(bases[1])}` instead of `{_short(bases[0])}`"
    elif isinstance(old, _Function) and isinstance(new, _Function):
        yield from _parameters(name, _arguments(old, older), _arguments(new, newer))


def _is_on(node: ast.AST, lines: tuple[int, int]) -> bool:
    """Whether a node has any of the lines [first, last), counted from 0."""
    line = getattr(node, "lineno", 0)
    return line <= lines[1] and lines[0] < (getattr(node, "end_lineno", None) or line)


def _has_header_on(node: ast.ClassDef, lines: tuple[int, int]) -> bool:
    """Whether the header of a class, without decorators, has any of the lines [first, last), counted from 0."""
    return node.lineno <= lines[1] and lines[0] < max(node.body[0].lineno - 1, node.lineno)


def _arguments(node: _Function, lines: tuple[int, int]) -> dict[str, tuple[str, bool]]:
    """The parameters of a function: the default as source ("" without one), and whether it is on the lines."""
    told = node.args
    plain = [*told.posonlyargs, *told.args]
    defaults = [*[None] * (len(plain) - len(told.defaults)), *told.defaults, *told.kw_defaults]
    found = {
        one.arg: (ast.unparse(default), _is_on(one, lines) or _is_on(default, lines))
        if default is not None
        else ("", _is_on(one, lines))
        for one, default in zip([*plain, *told.kwonlyargs], defaults, strict=True)
    }
    return found | {f"*{one.arg}": ("", _is_on(one, lines)) for one in (told.vararg, told.kwarg) if one is not None}


def _parameters(name: str, was: dict[str, tuple[str, bool]], now: dict[str, tuple[str, bool]]) -> Iterator[str]:
    gone = [one for one, (_, is_on) in was.items() if is_on and one not in now]
    come = [one for one, (_, is_on) in now.items() if is_on and one not in was]
    if len(gone) == len(come) == 1 and list(was).index(gone[0]) == list(now).index(come[0]):
        yield f"the parameter `{gone[0]}` of `{name}` was renamed to `{come[0]}`"
        return
    for one in gone:
        yield f"the parameter `{one}` of `{name}` was removed"
    for one in come:
        yield f"`{name}` has the new parameter `{one}`"
    for one in was:
        if one in now and was[one][0] != now[one][0] and (was[one][1] or now[one][1]):
            old, new = (f"`{_short(told[one][0])}`" if told[one][0] else "none" for told in (was, now))
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
    whole = {id(node.value) for node in new if isinstance(node, ast.Assign | ast.AnnAssign | ast.Return)}
    for called in calls[0].keys() & calls[1].keys():
        one, other = calls[0][called], calls[1][called]
        yield from _call(called, one, other, where, is_told=id(other) in whole)
    for kind, told in (
        (_tests, lambda a, b: f"the condition `{a}`{where} became `{b}`"),
        (_returns, lambda a, b: f"`{inside}` returns `{b}` instead of `{a}`"),
    ):
        yield from _pair(kind(old), kind(new), told)
    values = [_values(nodes) for nodes in (old, new)]
    for target in values[0].keys() & values[1].keys():
        if values[0][target] != values[1][target]:
            yield f"`{target}`{where} was changed from `{_short(values[0][target])}` to `{_short(values[1][target])}`"
    modules = [_imports(nodes) for nodes in (old, new)]
    for name in modules[0].keys() & modules[1].keys():
        if modules[0][name] != modules[1][name]:
            yield f"`{name}`{where} is imported from `{modules[1][name]}` instead of `{modules[0][name]}`"
    for raised in _raises(new).keys() - _raises(old).keys():
        yield f"`{inside or where.strip()}` raises `{raised}`" if inside else f"`{raised}` is raised{where}"


def _only(old: list[ast.AST], new: list[ast.AST], inside: str) -> Iterator[str]:
    """What the one statement does that only one text has on some lines; nothing if both have some, or one several."""
    statements = [node for node in new or old if isinstance(node, ast.stmt)]
    last = max(((one.end_lineno or one.lineno) for one in statements), default=0)
    if inside and not (old and new) and statements and last == statements[0].end_lineno:
        does = _does(statements[0])
        if does:
            yield f"`{inside}` {does if new else f'no longer {does}'}"


def _does(statement: ast.stmt) -> str:
    """What a statement does, such as "sets `a` to `1`"; "" if that is not simple."""
    match statement:
        case ast.If(test=test, body=[one], orelse=[]) if does := _does(one):
            return f"{does} if `{_short(ast.unparse(test))}`"
        case ast.Assign(targets=[target], value=value):
            return f"sets `{_short(ast.unparse(target))}` to `{_short(ast.unparse(value))}`"
        case ast.AugAssign():
            return f"runs `{_short(ast.unparse(statement))}`"
        case ast.Return(value=ast.expr() as value):
            return f"returns `{_short(ast.unparse(value))}`"
        case ast.Expr(value=ast.Call(func=called)):
            return f"calls `{_short(ast.unparse(called))}`"
        case ast.Raise(exc=ast.expr() as raised):
            return f"raises `{_short(ast.unparse(raised.func if isinstance(raised, ast.Call) else raised))}`"
    return ""


def _called_instead(old: Collection[str], new: Collection[str], inside: str) -> Iterator[str]:
    """The one function that only one text calls on some lines, or one of each; nothing if there are more."""
    gone, come = [one for one in old if one not in new], [one for one in new if one not in old]
    if not inside or max(len(gone), len(come)) != 1:
        return
    if not gone:
        yield f"`{inside}` calls `{_short(come[0])}`"
    elif not come:
        yield f"`{inside}` no longer calls `{_short(gone[0])}`"
    else:
        yield f"`{inside}` calls `{_short(come[0])}` instead of `{_short(gone[0])}`"


def _imports(nodes: list[ast.AST]) -> dict[str, str]:
    """The module that each name is imported from."""
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    return {
        alias.asname or alias.name: f"{'.' * node.level}{node.module or ''}" for node in froms for alias in node.names
    }


def _pair(old: list[str], new: list[str], told: Callable[[str, str], str]) -> Iterator[str]:
    if len(old) == len(new) == 1 and old != new:
        yield told(_short(old[0]), _short(new[0]))


def _calls(nodes: list[ast.AST]) -> dict[str, ast.Call]:
    found: dict[str, ast.Call] = {}
    for node in nodes:
        if isinstance(node, ast.Call):
            found.setdefault(ast.unparse(node.func), node)
    return found


@frozen
class _Around:
    """The innermost call or dictionary with arguments or entries on the lines [first, last), counted from 0.

    `target` is the name that gets it, "" if none; `parts` are those on the lines, by their names, as source.
    """

    target: str
    called: str
    parts: dict[str, str]

    @classmethod
    def of(cls, tree: ast.AST, lines: tuple[int, int]) -> _Around | None:
        """The one around some lines of a text, None if there is none."""
        found: _Around | None = None
        target = ""
        for node in _around(tree, lines):
            if isinstance(node, ast.Assign | ast.AnnAssign):
                target = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
            named = list(_named_parts(node))
            if named:
                within = {name: ast.unparse(one) for name, one in named if lines[0] < one.lineno <= lines[1]}
                found = cls(target, ast.unparse(node.func) if isinstance(node, ast.Call) else "", within)
        return found


def _around(tree: ast.AST, lines: tuple[int, int]) -> Iterator[ast.AST]:
    """The statements and expressions around the lines, the outermost first."""
    for node in ast.iter_child_nodes(tree):
        if getattr(node, "lineno", math.inf) <= lines[0] + 1 and lines[1] <= (getattr(node, "end_lineno", 0) or 0):
            yield node
            yield from _around(node, lines)


def _named_parts(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Call):
        yield from ((one.arg, one.value) for one in node.keywords if one.arg)
    elif isinstance(node, ast.Dict):
        yield from ((ast.unparse(key), one) for key, one in zip(node.keys, node.values, strict=True) if key is not None)


def _parts(old: _Around | None, new: _Around | None, where: str) -> Iterator[str]:
    """What changed among the arguments of a call, or the entries of a dictionary, of several lines."""
    if old is None or new is None or (old.target, old.called) != (new.target, new.called):
        return
    kind = "argument" if old.called else "entry"
    of = f"of the call of `{_short(old.called)}`" if old.called else ""
    of = " ".join(one for one in (of, f"{'for' if of else 'of'} `{old.target}`" if old.target else "") if one)
    yield from _changes(kind, f"{of}{where}", old.parts, new.parts)


def _changes(kind: str, of: str, was: dict[str, str], now: dict[str, str]) -> Iterator[str]:
    for one in now.keys() - was.keys():
        yield f"the {kind} `{one}` {of} is new"
    for one in was.keys() - now.keys():
        yield f"the {kind} `{one}` {of} is gone"
    for one in was.keys() & now.keys():
        if was[one] != now[one]:
            yield f"the {kind} `{one}` {of} was changed from `{_short(was[one])}` to `{_short(now[one])}`"


def _call(called: str, old: ast.Call, new: ast.Call, where: str, *, is_told: bool) -> Iterator[str]:
    """What changed among the arguments of a call; with `is_told`, the whole call is told as a value that changed."""
    was, now = ({one.arg: ast.unparse(one.value) for one in node.keywords if one.arg} for node in (old, new))
    of = f"of the call of `{_short(called)}`{where}"
    placed = {ast.unparse(one) for one in old.args}
    if len(old.args) == len(new.args) and not is_told:
        for number, pair in zip(_ORDINALS, zip(old.args, new.args, strict=True), strict=False):
            first, second = map(ast.unparse, pair)
            if first != second:
                yield f"the {number} argument {of} was changed from `{_short(first)}` to `{_short(second)}`"
    by_name = {one for one in now.keys() - was.keys() if now[one] in placed and len(new.args) < len(old.args)}
    for one in by_name:
        yield f"the argument `{one}` {of} is passed by name"
    yield from _changes("argument", of, was, {one: value for one, value in now.items() if one not in by_name})


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
