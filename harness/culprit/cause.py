"""Says in a sentence what a region changes: a definition, a parameter, a value, or else its lines if they fit. Pure."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from harness.culprit.regions import lines_of
from harness.culprit.syntax import Function, called, parsed
from harness.environment.workspace import module_of

if TYPE_CHECKING:
    from harness.culprit.edits import Edits, Unit
    from harness.culprit.regions import FileDifference

_TICKED = re.compile(r"`([^`]+)`")
_LONGEST = 60  # characters of a default
_LONGEST_LINE = 120
_MOST = 3

_Definition = Function | ast.ClassDef


def causes_of(edits: Edits, units: Collection[Unit], message: str = "") -> tuple[str, ...]:
    """At most three sentences, without an end, on what some regions change; () if their syntax says nothing simple.

    If only some of them are about names in the `message` of the failure, it is these.
    """
    sentences: dict[str, None] = {}
    for unit in sorted(units):
        if edits.is_region(unit) and edits.path_of(unit).endswith(".py"):
            number = int(unit.rpartition("#")[2])
            sentences |= dict.fromkeys(causes(edits.differences[edits.path_of(unit)], number))
    chosen = _named_in(message, tuple(sentences)) or tuple(sentences)
    return chosen if len(chosen) <= _MOST else ()


def _named_in(message: str, sentences: Sequence[str]) -> tuple[str, ...]:
    """The sentences with a name in the message that not all of them have."""
    names = [frozenset(_TICKED.findall(sentence)) for sentence in sentences]
    shared = frozenset[str]().union(*names).intersection(*names) if len(names) > 1 else frozenset[str]()
    chosen = (
        sentence
        for sentence, own in zip(sentences, names, strict=True)
        if any(re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", message) for name in own - shared)
    )
    return tuple(chosen)


def causes(difference: FileDifference, number: int) -> tuple[str, ...]:
    """What one region of a Python file changes."""
    old, new = parsed(difference.before), parsed(difference.after)
    if old is None or new is None:
        return ()
    a, b, c, d = difference.blocks[number]
    module = module_of(difference.path)
    older, newer = _definitions(old), _definitions(new)
    sentences = [*_whole(older, newer, (a, b), module, "was removed from")]
    sentences += _whole(newer, older, (c, d), module, "was added to")
    if sentences:
        return tuple(sentences)
    for name, was in older.items():
        now = newer.get(name)
        if isinstance(was, Function) and isinstance(now, Function):
            sentences += _parameters(name, _arguments(was, (a, b)), _arguments(now, (c, d)))
    where = difference.function_of(number) or module
    sentences = sentences or list(_values(old, new, (a, b), (c, d), where))
    lines = lines_of(difference.before)[a:b], lines_of(difference.after)[c:d]
    sentences = sentences or list(_quoted(*lines, where))
    return tuple(sentences or (f"`{where}` calls {what}" for what in _called(new, (c, d), older, newer, module)))


def _definitions(tree: ast.AST, prefix: str = "") -> dict[str, _Definition]:
    """The classes, functions and methods of a text by qualified name."""
    definitions: dict[str, _Definition] = {}
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, _Definition):
            definitions[f"{prefix}{node.name}"] = node
            definitions |= _definitions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.If | ast.Try | ast.With):
            definitions |= _definitions(node, prefix)
    return definitions


def _whole(
    having: dict[str, _Definition], lacking: dict[str, _Definition], lines: tuple[int, int], module: str, what: str
) -> Iterator[str]:
    """The outermost definitions in no function that only one text has, if all their lines are within these."""
    for name, definition in having.items():
        owner, _, last = name.rpartition(".")
        is_within = lines[0] < definition.lineno and (definition.end_lineno or definition.lineno) <= lines[1]
        is_outermost = not owner or (owner in lacking and isinstance(lacking[owner], ast.ClassDef))
        if is_within and name not in lacking and is_outermost:
            yield f"`{last}` {what} `{f'{module}.{owner}' if owner else module}`"


def _is_on(node: ast.expr | ast.arg, lines: tuple[int, int]) -> bool:
    """Whether a node has any of the lines [first, last), counted from 0."""
    return node.lineno <= lines[1] and lines[0] < (node.end_lineno or node.lineno)


def _arguments(node: Function, lines: tuple[int, int]) -> dict[str, tuple[str, bool]]:
    """The parameters of a function: the default as source ("" without one), and whether it is on the lines."""
    arguments = node.args
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = [*[None] * (len(plain) - len(arguments.defaults)), *arguments.defaults, *arguments.kw_defaults]
    parameters = {
        argument.arg: (ast.unparse(default), _is_on(argument, lines) or _is_on(default, lines))
        if default is not None
        else ("", _is_on(argument, lines))
        for argument, default in zip([*plain, *arguments.kwonlyargs], defaults, strict=True)
    }
    return parameters | {
        f"*{argument.arg}": ("", _is_on(argument, lines))
        for argument in (arguments.vararg, arguments.kwarg)
        if argument is not None
    }


def _parameters(name: str, was: dict[str, tuple[str, bool]], now: dict[str, tuple[str, bool]]) -> Iterator[str]:
    gone = [parameter for parameter, (_, is_on) in was.items() if is_on and parameter not in now]
    come = [parameter for parameter, (_, is_on) in now.items() if is_on and parameter not in was]
    if len(gone) == len(come) == 1 and list(was).index(gone[0]) == list(now).index(come[0]):
        yield f"the parameter `{gone[0]}` of `{name}` was renamed to `{come[0]}`"
        return
    for parameter in gone:
        yield f"the parameter `{parameter}` of `{name}` was removed"
    for parameter in come:
        yield f"`{name}` has the new parameter `{parameter}`"
    for parameter in was:
        if parameter in now and was[parameter][0] != now[parameter][0] and (was[parameter][1] or now[parameter][1]):
            old, new = (f"`{_short(side[parameter][0])}`" if side[parameter][0] else "none" for side in (was, now))
            yield f"the default of the parameter `{parameter}` of `{name}` was changed from {old} to {new}"


def _values(
    old: ast.Module, new: ast.Module, older: tuple[int, int], newer: tuple[int, int], where: str
) -> Iterator[str]:
    """The names that get another value on these lines."""
    was, now = _assigned(old, older), _assigned(new, newer)
    for name in was:
        if name in now and was[name] != now[name]:
            yield f"`{name}` in `{where}` was changed from `{_short(was[name])}` to `{_short(now[name])}`"


def _assigned(tree: ast.Module, lines: tuple[int, int]) -> dict[str, str]:
    """The first value, as source, of each name that is assigned on the lines [first, last), counted from 0."""
    values: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value and lines[0] < node.lineno <= lines[1]:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            values.setdefault(ast.unparse(target), ast.unparse(node.value))
    return values


def _called(
    tree: ast.Module, lines: tuple[int, int], older: Collection[str], newer: Collection[str], module: str
) -> Iterator[str]:
    """The definitions that only the newer text has and the lines [first, last) call, with where they are."""
    known = {name.rpartition(".")[2] for name in older}
    added = {name.rpartition(".")[2]: name.rpartition(".")[0] for name in newer}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and lines[0] < node.lineno <= lines[1]:
            name = called(node)
            if name in added and name not in known:
                yield f"`{name}`, which was added to `{f'{module}.{added[name]}'.rstrip('.')}`"


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _LONGEST else f"{plain[: _LONGEST - 1]}…"


def _quoted(before: Sequence[str], after: Sequence[str], where: str) -> Iterator[str]:
    """What some lines became, in their own words; nothing if they are more than one line or statement on a side."""
    old, new = _as_one_line(before), _as_one_line(after)
    if old is None or new is None:
        return
    if old and new:
        yield f"`{old}` became `{new}` in `{where}`"
    elif old:
        yield f"`{old}` was removed from `{where}`"
    elif new:
        yield f"`{new}` was added to `{where}`"


def _as_one_line(lines: Sequence[str]) -> str | None:
    """One line, or a statement of several, without comments beside it; None if it is more or too long."""
    filled = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    text = " ".join(filled)
    tree = parsed(textwrap.dedent("".join(lines))) if len(filled) > 1 else None
    is_single = len(filled) <= 1 or (tree is not None and len(tree.body) == 1)
    return text if is_single and len(text) <= _LONGEST_LINE else None
